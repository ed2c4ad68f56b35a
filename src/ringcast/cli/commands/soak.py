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

NUMBERS = (
    ("minutes", number, "MINUTES", "how long the load lasts"),
    ("seed", whole, "N", "of all random choices"),
    ("steady", whole, "N", "members that stay"),
    ("guests", whole, "N", "members that join and leave, at most"),
    ("rate", whole, "N", "messages per second and member"),
    ("size", whole, "BYTES", "bytes per message"),
    ("loss", number, "CHANCE", "chance that a datagram is lost"),
)
"""Arguments that are numbers, each with what it counts; the defaults are those of a plan."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast soak`."""
    parser.description = (
        "A real group of processes on this machine, under load; at random members are killed,"
        "\nstopped and attacked, join and leave. Their traces are checked for every guarantee"
        "\nmeanwhile, the memory and descriptors of members that stay are watched, and at the end"
        "\na state that all members keep is compared. The exit status is 0 only if every guarantee"
        "\nheld, the states are equal, no member was stuck, and nothing grew."
    )
    for name, kind, metavar, about in NUMBERS:
        parser.add_argument(
            f"--{name}",
            type=kind,
            default=getattr(SoakPlan, name),
            metavar=metavar,
            help=f"{about} (%(default)g)",
        )
    add = parser.add_argument
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
