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
  count as a part of the run that ends with the whole message, in the view in which it is whole.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT, Batch
from ringcast.core.events import Event, Skipped, ViewChange
from ringcast.core.ranges import RangeSet
from ringcast.core.stack import Stack
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.errors import ConfigError
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.runtime.blame import waits_for
from ringcast.trace.writer import NO_DIGEST, TraceSpec, TraceWriter, digest

WRITE_INTERVAL = 0.1
"""Seconds between two looks of the writing thread."""
SAMPLE_US = 100_000
"""Microseconds between two samples of the windows."""
NOTES_MAX = 500_000
"""Notes that wait to be written; with more, the disk is not up to it and the trace ends."""
END_WAIT = 60.0
"""Seconds that the last rows may take to be written."""

Note = tuple[ViewId | None, Callable[[], None]]
"""What is to be written, and the view of the protocols; None where it is the application's."""

log = logging.getLogger("ringcast.trace")


class LiveTrace:
    """Watches one member (`join(…, observer=LiveTrace(path))`) and writes its trace to `path`."""

    def __init__(
        self, path: str | Path, spec: TraceSpec | None = None, *, digests: bool = True
    ) -> None:
        """digests: whether payloads are summed up, so that an audit can compare what they say."""
        self._path, self._spec, self._digests = path, spec, digests
        self._notes: deque[Note] = deque()
        self._ending = threading.Event()
        self._vouched = self._over = False
        self._blocked_since: int | None = None
        self._blocked_by: Address | None = None
        self._purged, self._sample_at = 0, 0

    def vouch(self) -> None:
        """The application knows that it has all that was sent in its view: the last row says so.

        Without it, an audit does not ask whether a leaver has got the last messages of others,
        since whoever leaves under load need not get them.
        """
        self._vouched = True

    # What the member says (runtime.observer.Observer), under its lock -----------------------------

    def begin(self, stack: Stack) -> None:
        """Start to listen. Raises ConfigError when there can be no trace at this place."""
        load_parquet()
        self._stack, self._me = stack, stack.env.me
        writer = TraceWriter(self._path, self._me, self._spec)
        self._pen = _Pen(writer, self._digests)
        self._layer = next(part for part in stack.parts if isinstance(part, ReliableMulticast))
        stack.env.tap = self
        self._thread = threading.Thread(target=self._write, name="ringcast-trace", daemon=True)
        self._thread.start()

    def taken(self, events: Sequence[Event]) -> None:
        """The application gets these now, before any of them is acked."""
        at, pen = now_us(), self._pen
        for event in events:
            if isinstance(event, Batch):
                if event.dest is None:
                    self._note(None, partial(pen.delivered, event, at))
            elif isinstance(event, ViewChange):
                self._note(None, partial(pen.view, event.view, at))
            elif isinstance(event, Skipped) and not event.direct:
                self._note(None, partial(pen.skipped, event, at))

    def settled(self, is_blocked: bool) -> None:
        """Notice when sending stops for want of room, and look at the windows now and then."""
        at = now_us()
        if is_blocked:
            if self._blocked_since is None:
                self._blocked_since = at
            self._blocked_by = self._slowest()
        elif self._blocked_since is not None:
            self._unblock(at)
        if at >= self._sample_at:
            self._sample_at = at + SAMPLE_US
            self._sample(at)

    def end(self) -> None:
        """Write the rest."""
        self._ending.set()
        self._thread.join(END_WAIT)
        if self._thread.is_alive():
            log.warning("the trace in %s is not whole: the disk is too slow", self._path)

    # What the protocols say (core.tap.Tap), under the same lock ----------------------------------

    def sent(self, view: ViewId, run: Batch) -> None:
        """This member has sent a run."""
        if self._blocked_since is not None:
            self._unblock(now_us())
        self._note(view, partial(self._pen.sent, run))
        if not self._layer.spec.loopback:
            self._note(view, partial(self._pen.delivered, run, now_us()))

    def requested(self, origin: Address, ranges: RangeSet) -> None:
        """This member lacks messages."""
        at, append = now_us(), self._pen.writer.append_requested
        for first, last in ranges:
            self._note(self._view, partial(append, origin, first, last - first + 1, origin, at))

    def resent(self, run: Batch, to: Address | None) -> None:
        """This member has sent a run again."""
        append, what = self._pen.writer.append_resent, (run.sender, run.first, len(run), run.nbytes)
        self._note(self._view, partial(append, *what, to, now_us()))

    def acked(self, member: Address, up_to: int) -> None:
        """A member has this member's messages up to here."""
        self._note(self._view, partial(self._pen.writer.append_acked, member, up_to, now_us()))

    def purged(self, view: ViewId, low: int, delivered: int, high: int) -> None:
        """This member has freed its messages up to `low`."""
        append, first, self._purged = self._pen.writer.append_purged, self._purged + 1, low
        self._note(view, partial(append, first, low - first + 1, delivered, high, now_us()))

    # Noting ---------------------------------------------------------------------------------------

    def _note(self, view: ViewId | None, write: Callable[[], None]) -> None:
        if not self._over:
            self._notes.append((view, write))
            if len(self._notes) > NOTES_MAX:
                self._stop(f"{NOTES_MAX:,} rows wait to be written")

    @property
    def _view(self) -> ViewId:
        view = self._stack.view
        return NO_VIEW if view is None else view.id

    def _slowest(self) -> Address | None:
        """Who is waited for, others rather than this one; None while a view is being made."""
        if self._layer.sent.room()[0] > 0:
            return None
        members = waits_for(self._stack)
        return next((m for m in members if m != self._me), members[0] if members else None)

    def _unblock(self, at: int) -> None:
        since, self._blocked_since = self._blocked_since or at, None
        append = self._pen.writer.append_blocked
        self._note(self._view, partial(append, self._blocked_by, since, at))

    def _sample(self, at: int) -> None:
        append, view = self._pen.writer.append_window, self._view
        for sender, marks in self._layer.digest().items():
            self._note(view, partial(append, sender, *marks, at))

    # Writing, in a thread of its own --------------------------------------------------------------

    def _write(self) -> None:
        try:
            while not self._ending.wait(WRITE_INTERVAL):
                self._drain()
                self._pen.writer.tick(now_us())
            self._drain()
            if not self._over:
                self._pen.close(self._left_in_order(), self._vouched)
        except Exception as error:  # Whatever it is, the member is not to suffer from it.
            self._stop(f"{type(error).__name__}: {error}")

    def _left_in_order(self) -> bool:
        """Whether the member left by its own will, with nothing that its application let lie."""
        return self._stack.closed == "left" and not self._stack.pending

    def _drain(self) -> None:
        notes, pen = self._notes, self._pen
        while notes and not self._over:
            pen.write(notes.popleft())

    def _stop(self, reason: str) -> None:
        self._over = True
        self._notes.clear()
        log.warning("the trace in %s ends here, and the member goes on: %s", self._path, reason)


class _Pen:
    """Turns notes into rows, each in its view; used by the writing thread only."""

    def __init__(self, writer: TraceWriter, digests: bool) -> None:
        self.writer = writer
        self._digests = digests
        self._view: View | None = None
        self._held: list[Note] = []
        """Notes of a view that the application has not come to yet."""
        self._reached: dict[Address, int] = {}
        """Sender → the last message that was gone through."""

    def write(self, note: Note) -> None:
        """Write a note, or hold it."""
        view, write = note
        if view is None or (self._view is not None and view == self._view.id):
            write()
        elif view != NO_VIEW:
            self._held.append(note)

    def view(self, view: View, at: int) -> None:
        """The application is in another view."""
        names = [peer.name for peer in view.peers]
        self.writer.append_view(view.id.number, view.id.coordinator, view.members, names, at)
        self._view = view
        self._reached = {m: last for m, last in self._reached.items() if m in view}
        held, self._held = self._held, []
        for note in held:
            self.write(note)

    def delivered(self, run: Batch, at: int) -> None:
        """The application has taken a run, and with it the fragments before it, if any."""
        first = self._reached.get(run.sender, run.first - 1) + 1
        self._reached[run.sender] = run.last
        whole = first == run.first and not run.flags & FRAGMENT
        self.writer.append_delivered(
            run.sender, first, run.last - first + 1, run.nbytes, run.sent_at, at,
            self._digest(run) if whole else NO_DIGEST,
        )  # fmt: skip

    def sent(self, run: Batch) -> None:
        """This member has numbered a run."""
        self.writer.append_sent(run.first, len(run), run.nbytes, run.sent_at, self._digest(run))

    def skipped(self, skip: Skipped, at: int) -> None:
        """Messages will not come."""
        first = self._reached.get(skip.sender, skip.first - 1) + 1
        self._reached[skip.sender] = skip.last
        self.writer.append_skipped(skip.sender, first, skip.last - first + 1, at)

    def close(self, in_order: bool, has_all: bool) -> None:
        """Write what there is; a member that was alone has all, if it left in order."""
        if in_order and self._view is not None and (has_all or len(self._view) == 1):
            self.writer.append_closed(now_us())
        self.writer.close()

    def _digest(self, run: Batch) -> int:
        return digest(run.payloads) if self._digests and not run.flags & FRAGMENT else NO_DIGEST


def load_parquet() -> None:
    """Load pyarrow now, which takes a while, and not in the middle of the first messages.

    Raises ConfigError when it is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError("Parquet needs pyarrow: install ringcast[spark]") from error
    # Where it is installed, pyarrow would load it with its first table.
    with suppress(ImportError):
        import_module("pandas")


def now_us() -> int:
    """Microseconds since 1970: a clock that the processes of a machine share."""
    return time.time_ns() // 1_000
