"""`ringcast node`: one member that sends the lines it reads and prints what arrives."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from io import TextIOBase

from ringcast import sync
from ringcast.cli.stack import (
    add_key_argument,
    add_stack_arguments,
    add_timeout_argument,
    chosen_stack,
    is_found_by_seeds_only,
)
from ringcast.cli.watching import add_watching_arguments, start_log
from ringcast.errors import ConfigError
from ringcast.runtime.ops.console import Console
from ringcast.runtime.ops.event_text import JsonEventWriter, TextEventWriter
from ringcast.runtime.ops.key_reload import reload_at_hangup
from ringcast.runtime.ops.status import serve_status

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast node`."""
    parser.description = (
        "Joins a group. Each line of standard input is sent to all members; messages are printed as"
        "\n`name: text`, views and the like go to standard error. At the end of the input, or at"
        "\nCtrl-C, the member leaves in order; at a second Ctrl-C, at once."
    )
    parser.add_argument("group", metavar="GROUP", help="the name of the group")
    parser.add_argument(
        "--name",
        default="",
        help="the name of this member for others (the first digits of its address)",
    )
    add_timeout_argument(parser)
    parser.add_argument("--stay", action="store_true", help="go on when the input has ended")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: one object per line for each message and event, nothing else",
    )
    add_stack_arguments(parser)
    add_key_argument(parser)
    add_watching_arguments(parser)


def run(arguments: Namespace) -> int:
    """Be a member until the input ends or a signal comes."""
    spec = chosen_stack(arguments)
    text = (
        JsonEventWriter(_to_output) if arguments.json else TextEventWriter(_to_output, _to_errors)
    )
    start_log(arguments, tells_events=True)
    with _on_signals(_interrupt):
        group = sync.join(
            arguments.group,
            spec,
            name=arguments.name,
            timeout=arguments.timeout,
            metrics=arguments.metrics,
            key_file=arguments.key_file,
        )
        console = Console(group, text.show)
        reload_at_hangup(group)
        with _on_signals(console.stop), _answering(group):
            text.joined(arguments.group, group.name, group.me, group.endpoint)
            if is_found_by_seeds_only(spec):
                text.hint(f"others join with --seeds {group.endpoint}")
            console.run(_input(), arguments.stay)
            text.left()
    return 0


@contextlib.contextmanager
def _on_signals(handle: Callable[[], None]) -> Iterator[None]:
    before = [signal.signal(number, lambda *_: handle()) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def _answering(group: sync.Group) -> Iterator[None]:
    """Answer `ringcast status`; a member is none the worse when that cannot be."""
    try:
        server = serve_status(group)
    except ConfigError as error:
        logging.getLogger("ringcast.status").warning("`ringcast status` will not work: %s", error)
        yield
        return
    with server:
        yield


def _input() -> int:
    """The descriptor of standard input; of nothing, when there is none."""
    is_there = isinstance(sys.stdin, TextIOBase)
    return sys.stdin.fileno() if is_there else os.open(os.devnull, os.O_RDONLY)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _to_output(line: str) -> None:
    print(line, flush=True)


def _to_errors(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
