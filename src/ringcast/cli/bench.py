"""`ringcast bench`: throughput and latency."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from ringcast import presets
from ringcast.sim.speed import Speed, measure


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast bench`."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    sim = what.add_parser(
        "sim", help="messages that the simulator delivers in a second of real time"
    )
    sim.add_argument("--members", type=int, default=4, help="how many members (%(default)s)")
    sim.add_argument("--size", type=int, default=100, help="bytes of a message (%(default)s)")
    sim.add_argument("--messages", type=int, default=200_000, help="in total (%(default)s)")
    sim.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: Namespace) -> int:
    """Measure and print."""
    speeds = [
        _measure(arguments, 64, arguments.messages),
        _measure(arguments, 1, arguments.messages // 10),
    ]
    if arguments.json:
        print(json.dumps([vars(speed) | {"per_second": speed.per_second} for speed in speeds]))
        return 0
    print(
        f"The simulator, {arguments.members} members, messages of {arguments.size} bytes, no loss:"
    )
    for speed in speeds:
        print(
            f"  in runs of {speed.batch:>2}: {speed.per_second:>12,.0f} messages delivered a second"
        )
    return 0


def _measure(arguments: Namespace, batch: int, messages: int) -> Speed:
    size, members = arguments.size, arguments.members
    return measure(presets.lan(), batch=batch, messages=messages, members=members, size=size)
