"""`ringcast status`: what the members on this machine say about themselves."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace

from ringcast.cli.numbers import seconds
from ringcast.core.model.text import printable
from ringcast.runtime.ops.metrics import render
from ringcast.runtime.ops.status import running_members
from ringcast.runtime.ops.status_text import explanation, overview

CLEAR = "\x1b[H\x1b[J"


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
        "--watch",
        type=seconds,
        nargs="?",
        const=2.0,
        metavar="SECONDS",
        help="repeat every 2 seconds, or every SECONDS, until Ctrl-C",
    )
    output.add_argument(
        "--explain",
        action="store_true",
        help="explain the columns and the reasons for drops; without a member, all reasons",
    )
    output.add_argument(
        "--prometheus", action="store_true", help="print counters and marks for Prometheus"
    )


def run(arguments: Namespace) -> int:
    """Ask and print; 1 when no member answered."""
    while arguments.watch:
        print(CLEAR if sys.stdout.isatty() else "", end="")
        print(f"at {time.strftime('%H:%M:%S')}\n")
        _show(arguments)
        print(flush=True)
        time.sleep(arguments.watch)
    return _show(arguments)


def _show(arguments: Namespace) -> int:
    members = running_members(arguments.group)
    answered = [member for member in members if "error" not in member]
    if arguments.json:
        print(json.dumps({"members": members}, indent=2))
    elif arguments.prometheus:
        print(render(*answered), end="")
    elif members:
        print(overview(members), end="\n\n" if arguments.explain else "\n")
    if arguments.explain:
        print(explanation(answered))
    if not members:
        print(f"ringcast status: {printable(_nothing_found(arguments.group))}", file=sys.stderr)
    return 0 if answered else 1


def _nothing_found(group: str | None) -> str:
    """Why nothing is shown, and what to do."""
    where = f" of {group}" if group else ""
    groups = sorted({str(member["group"]) for member in running_members() if "group" in member})
    do = "start one with `ringcast node`, as this user"
    if group and groups:
        do = f"there are members of {', '.join(groups)}"
    return f"no member{where} that can be asked runs here: {do}"
