"""A member whose application is a terminal or a pipe: lines go out, messages come in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from queue import SimpleQueue

from ringcast.core.model.events import Event
from ringcast.errors import Closed, LocalError
from ringcast.sync import Group

READ_SIZE = 65_536
LINE_MAX = 16_000_000
"""The longest line, in bytes: more than that is not kept in memory."""


class _End(Enum):
    """What comes to its end."""

    INPUT = "input"
    OUTPUT = "output"
    STOP = "stop"
    """The user wants it to stop."""
    MEMBERSHIP = "membership"


class Console:
    """Sends what is read from a descriptor, and shows what comes, until one of them ends."""

    def __init__(self, group: Group, show: Callable[[Event], None]) -> None:
        self._group = group
        self._show = show
        self._ends: SimpleQueue[tuple[_End, BaseException | None]] = SimpleQueue()

    def stop(self) -> None:
        """Leave in order; at once when said again. May be called by a signal's handler."""
        self._ends.put((_End.STOP, None))

    def run(self, fd: int, stay: bool = False) -> None:
        """Until the input ends (unless told to stay), `stop`, or the group is closed; then leave.

        Raises what went wrong.
        """
        self._start(_End.OUTPUT, self._show_events)
        self._start(_End.INPUT, lambda: self._send_lines(fd))
        ended, failure = self._ends.get()
        while stay and ended is _End.INPUT and failure is None:
            ended, failure = self._ends.get()
        self._start(_End.MEMBERSHIP, self._group.leave)
        waited_for = {_End.OUTPUT, _End.MEMBERSHIP} - {ended}
        while waited_for:
            ended, error = self._ends.get()
            if ended is _End.STOP:
                self._group.close()
                break
            waited_for.discard(ended)
            failure = failure or error
        if failure is not None:
            raise failure

    def _start(self, end: _End, work: Callable[[], None]) -> None:
        """Work in a thread of its own, whose end is told."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._ends.put((end, error))
            else:
                self._ends.put((end, None))

        threading.Thread(target=run, name=f"ringcast-{end.value}", daemon=True).start()

    def _show_events(self) -> None:
        for event in self._group.events():
            self._show(event)

    def _send_lines(self, fd: int) -> None:
        try:
            for lines in read_lines(fd):
                self._group.send_many(lines)
        except Closed:
            pass  # The display of events says why, if it was not wanted.


def read_lines(fd: int) -> Iterator[list[bytes]]:
    """Lines without their ends, as many at once as there are; the last one may have no end.

    Reads the descriptor itself: a thread that waits in a buffered file cannot be left behind.
    Raises LocalError for a line that is too long, and for what cannot be read.
    """
    rest = b""
    while chunk := _read(fd):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            lines = (rest + head).split(b"\n")
            rest = tail
            yield [line.removesuffix(b"\r") for line in lines]
        else:
            rest += chunk
        if len(rest) > LINE_MAX:
            raise LocalError(f"a line is longer than {LINE_MAX:,} bytes: split it")
    if rest:
        yield [rest]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, READ_SIZE)
    except OSError as error:
        raise LocalError(f"the input cannot be read ({error.strerror}): give another") from None
