"""`ringcast status`: what the members on this machine say about themselves."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from ringcast.runtime.metrics import render
from ringcast.runtime.overview import overview
from ringcast.runtime.status import running_members


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast status`."""
    parser.description = (
        "Asks the members that this user runs on this machine: `ringcast node` answers, and so does"
        "\na program that joins with ringcast.join(…, status=True)."
    )
    parser.add_argument("group", metavar="GROUP", nargs="?", help="only members of this group")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    output.add_argument(
        "--prometheus", action="store_true", help="print counters and marks for Prometheus"
    )


def run(arguments: Namespace) -> int:
    """Ask and print; 1 when nobody answered."""
    members = running_members(arguments.group)
    answered = [member for member in members if "error" not in member]
    if arguments.json:
        print(json.dumps({"members": members}, indent=2))
    elif arguments.prometheus:
        print(render(*answered), end="")
    elif members:
        print(overview(members))
    if not members:
        where = f" of {arguments.group}" if arguments.group else ""
        print(
            f"ringcast status: no member{where} that can be asked runs here:"
            " start one with `ringcast node`, as this user",
            file=sys.stderr,
        )
    return 0 if answered else 1
