"""`ringcast soak`: a real group for a long time, under load and faults."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from ringcast.cli.numbers import number, whole
from ringcast.cli.stack import add_with_argument, added_protocols
from ringcast.soak.plan import TRANSPORTS, SoakPlan


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast soak`."""
    parser.description = (
        "A real group of processes on this machine, under load; at random members are killed,"
        "\nstopped and attacked, join and leave. Their traces are checked for every guarantee"
        "\nmeanwhile, the memory and descriptors of members that stay are watched, and at the end"
        "\na state that all members keep is compared. The exit status is 0 only if every guarantee"
        "\nheld, the states are equal, no member was stuck, and nothing grew."
    )
    add = parser.add_argument
    add(
        "--minutes",
        type=number,
        default=SoakPlan.minutes,
        metavar="MINUTES",
        help="how long the load lasts (%(default)g)",
    )
    add(
        "--seed",
        type=whole,
        default=SoakPlan.seed,
        metavar="N",
        help="of all random choices (%(default)s)",
    )
    add(
        "--steady",
        type=whole,
        default=SoakPlan.steady,
        metavar="N",
        help="members that stay (%(default)s)",
    )
    add(
        "--guests",
        type=whole,
        default=SoakPlan.guests,
        metavar="N",
        help="members that join and leave, at most (%(default)s)",
    )
    add(
        "--rate",
        type=whole,
        default=SoakPlan.rate,
        metavar="N",
        help="messages per second and member (%(default)s)",
    )
    add(
        "--size",
        type=whole,
        default=SoakPlan.size,
        metavar="BYTES",
        help="bytes per message (%(default)s)",
    )
    add(
        "--loss",
        type=number,
        default=SoakPlan.loss,
        metavar="CHANCE",
        help="chance that a datagram is lost (%(default)g)",
    )
    add(
        "--transport",
        choices=TRANSPORTS,
        default=SoakPlan.transport,
        help="TCP, or UDP multicast on loopback (%(default)s)",
    )
    add(
        "--network",
        action="store_true",
        help="a namespace for each member, with links and disks that fail; needs ip and nft",
    )
    add_with_argument(parser)
    add(
        "--audit",
        action="store_true",
        help="the continuous audit on Spark watches as well: DIR/now.html, DIR/alarms",
    )
    add(
        "--out",
        type=Path,
        default=Path("ringcast-soak"),
        metavar="DIR",
        help="for traces and logs; cleared if an earlier soak made it (%(default)s)",
    )
    add("--json", action="store_true", help="print one JSON object, nothing else")


def run(arguments: Namespace) -> int:
    """Run it; 0 when all was well."""
    from ringcast.soak.run import soak

    def say(line: str) -> None:
        print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    names = ("out", "minutes", "seed", "steady", "guests", "rate", "size", "loss", "transport")
    values = {name: getattr(arguments, name) for name in (*names, "audit", "network")}
    plan = SoakPlan(**values)
    added = tuple(added_protocols(arguments.added, plan.stack()))
    outcome = soak(replace(plan, added=added), say)
    if arguments.json:
        print(json.dumps(outcome.plain(), indent=2))
    else:
        print()
        for line in outcome.vitals.table():
            print(line)
        done = ", ".join(f"{count} × {action}" for action, count in outcome.actions.items())
        print(f"\n{done}; at the longest {outcome.slowest_view:.1f} s to one view")
        print(outcome.verdict())
        for problem in outcome.problems():
            print(f"  {problem}")
        if not outcome.is_clean:
            print(f"The traces and logs are in {arguments.out.resolve()}")
    return 0 if outcome.is_clean else 1
