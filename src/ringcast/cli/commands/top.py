"""`ringcast top`: the whole group in the terminal, every second."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from ringcast import sync
from ringcast.cli.colour import RED, YELLOW, paint
from ringcast.cli.numbers import count, seconds
from ringcast.cli.observer import add_observer_arguments, join_as_observer
from ringcast.runtime.live.text import LEGEND, SORTS, details_of, lines_of, ordered
from ringcast.runtime.live.watch import GroupWatch, Snapshot

CLEAR, HIDE, SHOW = "\x1b[H\x1b[J", "\x1b[?25l", "\x1b[?25h"
FIRST_PAUSE = 0.3
"""Seconds between the first two questions."""
MEMBERS_MIN, OTHER_LINES = 3, 12
"""Rows that the table has at least, and lines of a screen that others need."""
KEYS = "q quit · f freeze · s sort · n next member's details · h help"


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast top`."""
    parser.description = (
        "Joins the group as a member that sends and reads nothing, and shows all members every"
        "\nsecond: rates, windows, which member waits for which and since when, losses, and views"
        "\nwith their reasons. It works in a group whose sends are blocked, too."
        f"\n\nKeys: {KEYS}"
    )
    add_observer_arguments(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--sort", choices=SORTS, default="seniority", help="the column to sort by (%(default)s)"
    )
    output.add_argument(
        "--interval",
        type=seconds,
        default=1.0,
        metavar="SECONDS",
        help="seconds between two looks (%(default)g)",
    )
    output.add_argument(
        "--count", type=count, metavar="N", help="stop after N looks (none: go on until Ctrl-C)"
    )
    output.add_argument("--json", action="store_true", help="print one JSON object per look")


def run(arguments: Namespace) -> int:
    """Show the group until the user has enough."""
    signal.signal(signal.SIGTERM, _end)
    with join_as_observer(arguments) as group:
        watch = GroupWatch(group)
        watch.look()  # A member that has not heard of this one yet gives no answer.
        time.sleep(min(FIRST_PAUSE, arguments.interval))
        watch.look()
        if arguments.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print(watch, arguments)
        else:
            _Screen(watch, arguments).run(group)
    return 0


def _end(*_: object) -> None:
    """Leave the group, and the terminal as it was, as at Ctrl-C."""
    raise KeyboardInterrupt


def _print(watch: GroupWatch, arguments: Namespace) -> None:
    """One look after the other, for files and pipes."""
    looks = 0
    while arguments.count is None or looks < arguments.count:
        time.sleep(arguments.interval)
        snapshot = watch.look()
        text = (
            json.dumps(snapshot)
            if arguments.json
            else "\n".join(lines_of(snapshot, arguments.sort))
        )
        print(text if arguments.json else f"{text}\n", flush=True)
        looks += 1


class _Screen:
    """The terminal: redrawn at every look and at every key."""

    def __init__(self, watch: GroupWatch, arguments: Namespace) -> None:
        self._watch, self._arguments = watch, arguments
        self._sort: str = arguments.sort
        self._frozen = self._helps = False
        self._chosen = -1

    def run(self, group: sync.Group) -> None:
        """Until the user quits or the group is closed."""
        snapshot, looks = self._watch.look(), 0
        with _cbreak():
            while group.closed is None:
                self._draw(snapshot)
                key = _key(self._arguments.interval)
                if key == "q" or (self._arguments.count and looks >= self._arguments.count):
                    return
                self._on_key(key)
                if not key:
                    looks += 1
                    latest = self._watch.look()
                    snapshot = snapshot if self._frozen else latest

    def _on_key(self, key: str) -> None:
        if key == "f":
            self._frozen = not self._frozen
        elif key == "s":
            names = list(SORTS)
            self._sort = names[(names.index(self._sort) + 1) % len(names)]
        elif key == "n":
            self._chosen += 1
        elif key == "h":
            self._helps = not self._helps

    def _draw(self, snapshot: Snapshot) -> None:
        width, height = shutil.get_terminal_size()
        aside = self._aside(snapshot)
        many = max(MEMBERS_MIN, height - OTHER_LINES - len(aside))
        lines = list(lines_of(snapshot, self._sort, self._frozen, width - 1, many))
        lines[2:2] = aside
        shown = [_painted(line[: width - 1]) for line in lines[: height - 2]]
        print(
            CLEAR + "\n".join([*shown, "", f"sorted by {self._sort} · {KEYS}"[: width - 1]]), end=""
        )
        sys.stdout.flush()

    def _aside(self, snapshot: Snapshot) -> list[str]:
        """What the user asked for by a key; it stands first, since the table may be long."""
        members = ordered(snapshot["members"], self._sort)
        if self._chosen >= len(members):
            self._chosen = -1
        aside = [*LEGEND.split(" · "), ""] if self._helps else []
        if self._chosen >= 0:
            aside += [*details_of(members[self._chosen]), ""]
        return aside


def _painted(line: str) -> str:
    """A line with a trouble in red or yellow."""
    if line.startswith(("ALONE", "WAITS", "SILENT", "SUSPECTS")):
        return paint(line, RED)
    return paint(line, YELLOW) if line.startswith(("DROPS", "APART")) else line


@contextlib.contextmanager
def _cbreak() -> Iterator[None]:
    """Give each key at once, and hide the cursor; the terminal is as it was afterwards.

    Ctrl-Z is ignored: a stopped member acks nothing, and would hold the senders of its group back.
    """
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    stop = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        tty.setcbreak(sys.stdin)
        print(HIDE, end="")
        yield
    finally:
        signal.signal(signal.SIGTSTP, stop)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print(SHOW)


def _key(timeout: float) -> str:
    """The next key; empty when none was pressed in time, `q` when the terminal is gone.

    Arrow and function keys are several bytes, and one key that means nothing here.
    """
    terminal = sys.stdin.fileno()  # What Python's reader holds back, `select` would not see.
    if not select.select([terminal], [], [], timeout)[0]:
        return ""
    typed = os.read(terminal, 1)
    if typed == b"\x1b":
        _read_sequence(terminal)
    return typed.decode(errors="replace") or "q"


def _read_sequence(terminal: int) -> None:
    """Read what follows the escape of an arrow or function key: ESC [ … letter, ESC O letter."""
    introducer, last = b"", b""
    while select.select([terminal], [], [], 0)[0] and (last := os.read(terminal, 1)):
        if not introducer and last in (b"[", b"O"):
            introducer = last
        elif introducer != b"[" or b"@" <= last <= b"~":
            return
