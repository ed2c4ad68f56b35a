"""`ringcast swarm`: many simulated runs with random stacks, networks, faults and workloads."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from time import monotonic

from ringcast.errors import ConfigError
from ringcast.sim.show import HIDDEN, Show
from ringcast.sim.swarm import Verdict, describe, run_seed, run_seeds

PROGRESS_SECONDS = 5.0
TOLD_MAX = 10
"""So many failures are told in full; of more only the seeds."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast swarm`."""
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use (%(default)s)")
    parser.add_argument("--show", action="store_true", help="print all that happens, of one seed")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def run(arguments: Namespace) -> int:
    """Run them; 0 when no guarantee broke with any seed."""
    if arguments.seeds < 1 or arguments.jobs < 1:
        raise ConfigError("--seeds and --jobs have to be at least 1")
    if arguments.show:
        return _show(arguments)
    began, told = monotonic(), monotonic()
    failed: list[Verdict] = []
    done, delivered, views = 0, 0, 0
    for verdict in run_seeds(arguments.first, arguments.seeds, arguments.jobs):
        done, delivered, views = done + 1, delivered + verdict.delivered, views + verdict.views
        if verdict.problems:
            failed.append(verdict)
            _say(_failure(verdict) if len(failed) <= TOLD_MAX else f"seed {verdict.seed} failed")
        if monotonic() - told > PROGRESS_SECONDS:
            told = monotonic()
            _say(f"{done:,} of {arguments.seeds:,} seeds, {len(failed)} failed")
    summary = (
        f"{done:,} seeds, {delivered:,} messages delivered, {views:,} views installed,"
        f" {len(failed)} failed, {monotonic() - began:.0f} seconds"
    )
    if arguments.json:
        failures = [asdict(verdict) for verdict in failed]
        print(
            json.dumps({"seeds": done, "delivered": delivered, "views": views, "failed": failures})
        )
    else:
        print(summary)
    return 1 if failed else 0


def _failure(verdict: Verdict) -> str:
    problems = "\n".join(f"    {problem}" for problem in verdict.problems[:5])
    more = len(verdict.problems) - 5
    rest = f"\n    … and {more} more" if more > 0 else ""
    command = f"ringcast swarm --first {verdict.seed} --seeds 1 --show"
    return f"seed {verdict.seed} failed; repeat it with: {command}\n{problems}{rest}"


def _show(arguments: Namespace) -> int:
    if arguments.seeds != 1:
        raise ConfigError("--show prints one seed: add --seeds 1")
    print(describe(arguments.first))
    verdict = run_seed(arguments.first, Show(print, HIDDEN))
    print("\n".join(verdict.problems) or f"no problem; trace hash {verdict.trace_hash}")
    return 1 if verdict.problems else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
