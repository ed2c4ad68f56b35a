"""The arguments by which a member can be watched: its log, and its figures for Prometheus."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace

from ringcast.runtime.ops.logs import FORMATS, LEVELS, log, show_log

JOINS = "ringcast.join"
"""The logger that says whom a join waits for."""
PLAIN = "ringcast: %(message)s"


def add_watching_arguments(parser: ArgumentParser) -> None:
    """The arguments, the same for every command that is a member."""
    watching = parser.add_argument_group("watching it")
    watching.add_argument(
        "--log",
        choices=FORMATS,
        help="write a log to standard error: views, suspicions, merges, each with its facts",
    )
    watching.add_argument(
        "--log-level",
        choices=LEVELS,
        default="info",
        help="the lowest level that is logged (%(default)s)",
    )
    watching.add_argument(
        "--metrics",
        type=_where,
        metavar="[HOST:]PORT",
        help="serve /metrics for Prometheus, at 127.0.0.1 unless a host is given",
    )


def start_log(arguments: Namespace, tells_events: bool = False) -> None:
    """Log as asked for; without --log, only what calls for an action of the user.

    tells_events: the command itself tells what happens in the group.
    """
    if arguments.log:
        show_log(arguments.log, arguments.log_level)
        return
    logging.basicConfig(level=logging.WARNING, format=PLAIN)
    if tells_events:
        log.setLevel(logging.ERROR)
        logging.getLogger(JOINS).setLevel(logging.WARNING)


def start_log_of_joins() -> None:
    """Say whom a join waits for that takes longer than usual, and nothing else."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(PLAIN))
    logging.getLogger(JOINS).addHandler(handler)


def _where(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
