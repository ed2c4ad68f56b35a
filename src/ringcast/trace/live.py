"""The trace of a running member: what happens is noted in passing, and written by another thread.

    with ringcast.sync.join("prices", observer=LiveTrace("trace/")) as group: ...

Rules:

- A member's thread spends one append a run, under the lock that it holds anyway. Checksums, rows
  and Parquet are left to the thread of the trace.
- A message is delivered in the view that the application is in: the last ViewChange that it took.
  The protocols may be a view ahead of it; what they do is held until the application gets there.
- A trace that cannot go on (the disk is full, the thread is too far behind) ends, and the member
  does not. To an audit that is a crash: it expects nothing more of this member.
- Messages too large for a datagram come as fragments, which the application does not see. They
  count as delivered once they have arrived and all before them was taken, in the view of arrival.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ringcast.core.model.view import ViewId
from ringcast.core.stack.stack import Stack
from ringcast.errors import ConfigError
from ringcast.trace.row_writer import Note
from ringcast.trace.tracer import TraceListener
from ringcast.trace.writer import TraceSpec, TraceWriter
from ringcast.wall_clock import wall_offset_ns

WRITE_INTERVAL = 0.1
"""Seconds between two looks of the writing thread."""
NOTES_MAX = 500_000
"""Notes that wait to be written; with more, the disk is not up to it and the trace ends."""
END_WAIT = 60.0
"""Seconds that the last rows may take to be written."""

log = logging.getLogger("ringcast.trace")


class LiveTrace(TraceListener):
    """Watches one member (`join(…, observer=LiveTrace(path))`) and writes its trace to `path`.

    All but `vouch` and `end` is called under the member's lock (runtime.member.observer).
    """

    def __init__(
        self, path: str | Path, spec: TraceSpec | None = None, *, digests: bool = True
    ) -> None:
        """digests: whether payloads are summed up, so that an audit can compare what they say."""
        self._wall = SteadyClock()
        super().__init__(self._wall.now_us)
        self._path, self._spec, self._digests = path, spec, digests
        self._notes: deque[Note] = deque()
        self._ending = threading.Event()
        self._vouched = self._over = False

    def vouch(self) -> None:
        """The application knows that it has all that was sent in its view: the last row says so.

        Without it, an audit does not ask whether a leaver has got the last messages of others,
        since a member that leaves under load need not get them.
        """
        self._vouched = True

    def begin(self, stack: Stack) -> None:
        """Start to listen. Raises ConfigError when there can be no trace at this place."""
        load_parquet()
        self.listen(stack, TraceWriter(self._path, stack.env.me, self._spec), self._digests)
        self._thread = threading.Thread(target=self._write, name="ringcast-trace", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Write the rest."""
        self._ending.set()
        self._thread.join(END_WAIT)
        if self._thread.is_alive():
            log.warning("the trace in %s is not whole: the disk is too slow", self._path)

    def note(self, view: ViewId | None, write: Callable[[], None]) -> None:
        """Leave it to the thread."""
        if not self._over:
            self._notes.append((view, write))
            if len(self._notes) > NOTES_MAX:
                self._stop(f"{NOTES_MAX:,} rows wait to be written")

    # Writing, in a thread of its own --------------------------------------------------------------

    def _write(self) -> None:
        try:
            while not self._ending.wait(WRITE_INTERVAL):
                self._drain()
                self._row_writer.writer.tick(self._wall.now_us())
            self._drain()
            if not self._over:
                self._row_writer.close(self._wall.now_us(), self._left_in_order(), self._vouched)
        except Exception as error:  # Whatever it is, the member is not to suffer from it.
            self._stop(f"{type(error).__name__}: {error}")

    def _left_in_order(self) -> bool:
        """Whether the member left by its own will, with nothing that its application let lie."""
        return self._stack.closed == "left" and not self._stack.waiting

    def _drain(self) -> None:
        notes, row_writer = self._notes, self._row_writer
        while notes and not self._over:
            row_writer.write(notes.popleft())

    def _stop(self, reason: str) -> None:
        self._over = True
        self._notes.clear()
        log.warning("the trace in %s ends here, and the member goes on: %s", self._path, reason)


def load_parquet() -> None:
    """Load pyarrow now, which takes a while, and not in the middle of the first messages.

    Raises ConfigError when it is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError("Parquet needs pyarrow: run `pip install 'ringcast[journal]'`") from error
    # Where it is installed, pyarrow would load it with its first table.
    with suppress(ImportError):
        import_module("pandas")


class SteadyClock:
    """Microseconds since 1970, by the clock of the machine as it was when this one was made.

    Checks compare times of one member with each other, and with the times that messages carry. So
    a clock that is set forward or back in the middle does not count.
    """

    def __init__(self) -> None:
        self._offset = wall_offset_ns()

    def now_us(self) -> int:
        """The time."""
        return (time.monotonic_ns() + self._offset) // 1_000
