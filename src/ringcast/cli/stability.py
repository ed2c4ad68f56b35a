"""`ringcast stability`: a round of stability, and what all members have delivered."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from ringcast.cli.observer import add_observer_arguments, join_as_observer
from ringcast.core.model.text import printable
from ringcast.errors import JoinFailed
from ringcast.runtime.live.troubles import alone_text


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast stability`."""
    parser.description = (
        "Joins the group as a member that sends and reads nothing, and starts a round of stability:"
        "\nall members vote, and what all of them have delivered is freed. Prints per sender up to"
        "\nwhere that is. Exit status 1: no other member was found, or one did not vote in time."
        "\nWith NakAck4 no round is needed: acks say it."
    )
    add_observer_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(arguments: Namespace) -> int:
    """Start the round and wait for its end, for as long as --timeout says."""
    with join_as_observer(arguments) as group:
        stable = group.stability(arguments.timeout)
        marks = {group.view.name(sender): seqno for sender, seqno in stable.items()}
        marks.pop(group.name, None)
        if not marks:
            raise JoinFailed(printable(alone_text(arguments.group)))
        if arguments.json:
            print(json.dumps({"group": arguments.group, "stable": marks}))
            return 0
        for name, seqno in marks.items():
            print(f"{name}: all members have delivered up to message {seqno:,}")
        return 0
