"""`ringcast record`: a member that writes a durable journal."""

from __future__ import annotations

import json
import signal
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable

from ringcast.cli.numbers import number, whole
from ringcast.cli.stack import (
    add_key_argument,
    add_stack_arguments,
    add_timeout_argument,
    chosen_stack,
)
from ringcast.cli.watching import add_watching_arguments, start_log


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast record`."""
    parser.description = (
        "Joins a group and writes all messages that it receives to Parquet files, until Ctrl-C or"
        "\nSIGTERM; then it leaves in order and seals its last file. In durable mode a message is"
        "\nacked when it is on disk, so that its sender keeps it until then."
    )
    parser.add_argument("group", metavar="GROUP", help="the name of the group")
    parser.add_argument("--to", required=True, metavar="DIR", help="the journal's directory")
    parser.add_argument(
        "--durable",
        action=BooleanOptionalAction,
        default=True,
        help="ack a message when it is on disk (the default), or when the operating system has it",
    )
    parser.add_argument("--name", default="recorder", help="its name in the views (%(default)s)")
    parser.add_argument(
        "--trace", metavar="DIR", help="write a trace as well, for `ringcast audit`"
    )
    parser.add_argument(
        "--roll-seconds",
        type=number,
        default=1.0,
        metavar="S",
        help="seal a segment every S seconds (%(default)g)",
    )
    parser.add_argument(
        "--keep-bytes",
        type=whole,
        metavar="N",
        help="keep N bytes, remove older segments (keep all)",
    )
    parser.add_argument(
        "--keep-seconds",
        type=number,
        metavar="S",
        help="keep S seconds, remove older segments (keep all)",
    )
    add_timeout_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    add_stack_arguments(parser)
    add_key_argument(parser)
    add_watching_arguments(parser)


def run(arguments: Namespace) -> int:
    """Record until a signal comes."""
    from ringcast.journal.write.recorder import Recording, record

    start_log(arguments)
    recording = Recording(
        group=arguments.group,
        directory=arguments.to,
        stack=chosen_stack(arguments),
        durable=arguments.durable,
        name=arguments.name,
        trace=arguments.trace,
        roll_seconds=arguments.roll_seconds,
        retention_bytes=arguments.keep_bytes,
        retention_seconds=arguments.keep_seconds,
        timeout=arguments.timeout,
        metrics=arguments.metrics,
        key_file=arguments.key_file,
    )
    done = record(recording, _on_signals, _say)
    if arguments.json:
        print(json.dumps(done))
    return 0


def _on_signals(stop: Callable[[], None]) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
