"""`ringcast demo`: the main job, end to end."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from ringcast.cli.numbers import number, whole
from ringcast.cli.stack import add_with_argument, added_protocols
from ringcast.demo.play import DemoPlan


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast demo`."""
    parser.description = (
        "A real group of processes on this machine, under injected loss; one member is killed and"
        "\none joins under load. A recorder writes a journal, all members write traces, and Spark"
        "\naudits them: did every guarantee hold? The exit status is 0 only if so."
    )
    parser.add_argument(
        "--members",
        type=whole,
        default=DemoPlan.members,
        metavar="N",
        help="members that send from the start, besides the recorder (%(default)s)",
    )
    parser.add_argument(
        "--messages",
        type=whole,
        default=DemoPlan.messages,
        metavar="N",
        help="messages per member (%(default)s)",
    )
    parser.add_argument(
        "--size",
        type=whole,
        default=DemoPlan.size,
        metavar="BYTES",
        help="bytes per message (%(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=number,
        default=DemoPlan.seconds,
        metavar="SECONDS",
        help="time over which they send (%(default)g)",
    )
    parser.add_argument(
        "--loss",
        type=number,
        default=DemoPlan.loss,
        metavar="CHANCE",
        help="chance that a datagram is dropped (%(default)g)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("ringcast-demo"),
        metavar="DIR",
        help="for traces, journal and report; cleared if an earlier demo made it (%(default)s)",
    )
    add_with_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(arguments: Namespace) -> int:
    """Run it; 0 when every guarantee held."""
    from ringcast.demo.run import DemoResult, run_demo

    def say(line: str) -> None:
        print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    names = ("out", "members", "messages", "size", "seconds", "loss")
    plan = DemoPlan(**{name: getattr(arguments, name) for name in names})
    added = tuple(added_protocols(arguments.added, plan.stack()))
    outcome: DemoResult = run_demo(replace(plan, added=added), say)
    if arguments.json:
        print(json.dumps(outcome.plain(), indent=2, default=str))
    else:
        print()
        for name, value in outcome.table().items():
            print(f"{name + ':':<17}{value}")
        print(f"\n{outcome.verdict()}")
        for line in outcome.violations():
            print(f"  {line}")
        print(f"The report, with plots: {outcome.page.resolve()}")
    return 0 if outcome.is_clean else 1
