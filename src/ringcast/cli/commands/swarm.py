"""`ringcast swarm`: many simulated runs with random stacks, networks, faults and workloads."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from random import Random
from shlex import quote
from time import monotonic

from ringcast.cli.numbers import whole
from ringcast.cli.stack import add_change_arguments, changed_spec
from ringcast.errors import ConfigError
from ringcast.sim.swarm.plan import Change, draw_plan, load_plan
from ringcast.sim.swarm.run import SeedVerdict, describe, replay, run_seed, run_seeds
from ringcast.sim.swarm.shrink import shrink_seed
from ringcast.sim.text.show import HIDDEN, Show

PROGRESS_SECONDS = 5.0
LACKS = "the stack has no "
"""How the reason begins that a stack lacks a protocol."""
TOLD_MAX = 10
"""Failures that are told in full; of more only the seeds."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast swarm`."""
    parser.add_argument("--seeds", type=whole, default=100, help="how many seeds (%(default)s)")
    parser.add_argument("--first", type=whole, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--jobs", type=whole, default=2, help="processes to use (%(default)s)")
    add_change_arguments(parser)
    parser.add_argument(
        "--shrink",
        type=whole,
        metavar="SEED",
        help="print the smallest plan found that fails as this seed does, as JSON",
    )
    parser.add_argument("--replay", metavar="FILE", help="run a plan that --shrink has printed")
    parser.add_argument(
        "--show", action="store_true", help="print all that happens, of one seed or a replay"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def run(arguments: Namespace) -> int:
    """Run them; 0 when no guarantee broke with any seed."""
    if arguments.seeds < 1 or arguments.jobs < 1:
        raise ConfigError("--seeds and --jobs have to be at least 1")
    if arguments.shrink is not None:
        return _shrink(arguments.shrink, _change(arguments))
    if arguments.replay is not None:
        return _replay(arguments)
    if arguments.show:
        return _show(arguments)
    began, told = monotonic(), monotonic()
    failed: list[SeedVerdict] = []
    done, delivered, views = 0, 0, 0
    left_out = Counter[str]()
    change = _change(arguments)
    traces = blake2b(digest_size=16)
    for verdict in run_seeds(arguments.first, arguments.seeds, arguments.jobs, change):
        done, delivered, views = done + 1, delivered + verdict.delivered, views + verdict.views
        left_out.update([verdict.left_out] if verdict.left_out else [])
        traces.update(verdict.trace_hash.encode())
        if verdict.problems:
            failed.append(verdict)
            text = _failure(verdict, _change_text(arguments))
            _say(text if len(failed) <= TOLD_MAX else f"seed {verdict.seed} failed")
        if monotonic() - told > PROGRESS_SECONDS:
            told = monotonic()
            _say(f"{done:,} of {arguments.seeds:,} seeds, {len(failed)} failed")
    if left_out.total() == done:
        raise ConfigError(f"no stack of these seeds can have that: {_main_reason(left_out)}")
    summary = (
        f"{done:,} seeds, {delivered:,} messages delivered, {views:,} views installed,"
        f" {len(failed)} failed, {monotonic() - began:.0f} seconds"
        + (f"; {left_out.total():,} left out, whose stacks cannot have that" if left_out else "")
    )
    if arguments.json:
        counts = {"seeds": done, "left_out": left_out.total()}
        counts |= {"delivered": delivered, "views": views}
        failures = [asdict(verdict) for verdict in failed]
        print(json.dumps({**counts, "trace_hash": traces.hexdigest(), "failed": failures}))
    else:
        print(f"{summary}\ntrace hash of all seeds: {traces.hexdigest()}")
    return 1 if failed else 0


def _main_reason(reasons: Counter[str]) -> str:
    """The most frequent reason; a wrong value says more than a protocol that most stacks lack."""
    return max(reasons, key=lambda reason: (not reason.startswith(LACKS), reasons[reason]))


def _failure(verdict: SeedVerdict, change: str) -> str:
    problems = "\n".join(f"    {problem}" for problem in verdict.problems[:5])
    more = len(verdict.problems) - 5
    rest = f"\n    … and {more} more" if more > 0 else ""
    command = f"ringcast swarm{change} --first {verdict.seed} --seeds 1 --show"
    shrink = f"ringcast swarm{change} --shrink {verdict.seed} > plan.json"
    return (
        f"seed {verdict.seed} failed; repeat it with: {command}\n"
        f"shrink it with: {shrink}\n{problems}{rest}"
    )


def _show(arguments: Namespace) -> int:
    if arguments.seeds != 1:
        raise ConfigError("--show prints one seed: add --seeds 1")
    seed = arguments.first
    change = _change(arguments)
    print(describe(draw_plan(seed, Random(f"{seed}/swarm"), change)))
    return _told(run_seed(seed, Show(print, HIDDEN), change))


def _change(arguments: Namespace) -> Change | None:
    """What --with, --without and --set do to every stack; None without them. Raises ConfigError."""
    if not (arguments.added or arguments.dropped or arguments.settings):
        return None
    choices = Namespace(
        added=arguments.added, dropped=arguments.dropped, settings=arguments.settings
    )
    return partial(changed_spec, arguments=choices)


def _change_text(arguments: Namespace) -> str:
    """The arguments that change every stack, as they were written."""
    options = (
        ("--with", arguments.added),
        ("--without", arguments.dropped),
        ("--set", arguments.settings),
    )
    return "".join(f" {option} {quote(text)}" for option, texts in options for text in texts)


def _shrink(seed: int, change: Change | None) -> int:
    """Print the plan that is left of a failing seed; 1 when the seed does not fail."""
    told = monotonic()

    def progress(tries: int, actions: int) -> None:
        nonlocal told
        if monotonic() - told > PROGRESS_SECONDS:
            told = monotonic()
            _say(f"{tries:,} replays, {actions:,} actions left")

    shrunk = shrink_seed(seed, progress, change=change)
    if shrunk is None:
        _say(f"seed {seed} does not fail: there is nothing to shrink")
        return 1
    print(shrunk.plan.to_json())
    _say(
        f"seed {seed}: {len(shrunk.plan.actions)} of {shrunk.before} actions are left after"
        f" {shrunk.tries:,} replays. They fail with:\n    {shrunk.problem}\n"
        "repeat it with: ringcast swarm --replay FILE --show"
    )
    return 0


def _replay(arguments: Namespace) -> int:
    plan = load_plan(arguments.replay)
    if arguments.show:
        print(describe(plan))
    _, verdict = replay(plan, Show(print, HIDDEN) if arguments.show else None)
    return _told(verdict)


def _told(verdict: SeedVerdict) -> int:
    print("\n".join(verdict.problems) or f"no problem; trace hash {verdict.trace_hash}")
    return 1 if verdict.problems else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
