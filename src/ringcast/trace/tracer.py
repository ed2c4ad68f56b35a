"""Listens to one member and notes what happens to messages; who writes the notes down differs.

A live member's notes are written by a thread beside it, a simulated one's on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Event, Skipped, ViewChange
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.stack.stack import Stack
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.trace.given import Given
from ringcast.trace.row_writer import RowWriter
from ringcast.trace.writer import TraceWriter

SAMPLE_US = 100_000
"""Microseconds between two samples of the windows."""


class TraceListener:
    """A tracer that knows the rows of a trace. Subclasses say what becomes of a note."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """clock: microseconds, the same for all members of a run."""
        self._clock = clock
        self._blocked_since: int | None = None
        self._blocked_by: Address | None = None
        self._purged, self._sample_at = 0, 0
        self._given = Given()

    def note(self, view: ViewId | None, write: Callable[[], None]) -> None:
        """Something has happened, in this view of the protocols or, None, of the application."""
        raise NotImplementedError

    def listen(self, stack: Stack, writer: TraceWriter, digests: bool) -> None:
        """Hear from now on what the stack does."""
        self._stack, self._me = stack, stack.env.me
        self._row_writer = RowWriter(writer, digests)
        self._layer = next(part for part in stack.parts if isinstance(part, ReliableMulticast))
        stack.env.tracer = self

    # What the member says -------------------------------------------------------------------------

    def taken(self, events: Sequence[Event]) -> None:
        """The application gets these now, before any of them is acked."""
        at, row_writer = self._clock(), self._row_writer
        for event in events:
            if isinstance(event, Batch):
                if event.dest is None:
                    self.note(None, partial(row_writer.taken, event, at))
            elif isinstance(event, ViewChange):
                self.note(None, partial(row_writer.view, event.view, at))
            elif isinstance(event, Skipped) and not event.direct:
                self.note(None, partial(row_writer.skipped, event, at))

    def settled(self, is_blocked: bool) -> None:
        """Notice when sending stops for want of room, and look at the windows now and then."""
        at = self._clock()
        if is_blocked:
            if self._blocked_since is None:
                self._blocked_since = at
            self._blocked_by = self._slowest()
        elif self._blocked_since is not None:
            self._unblock(at)
        if at >= self._sample_at:
            self._sample_at = at + SAMPLE_US
            self._sample(at)

    # What the protocols say (core.stack.tracer.Tracer) --------------------------------------------

    def given(self, payloads: Sequence[Payload]) -> None:
        """The application has given the stack these messages."""
        self._given.add(payloads)

    def sent(self, view: ViewId, run: Batch) -> None:
        """This member has sent a run."""
        if self._blocked_since is not None:
            self._unblock(self._clock())
        given = self._given.take(run)
        self.note(view, partial(self._row_writer.sent, run, given))
        if not self._layer.spec.loopback:
            self.note(view, partial(self._row_writer.delivered, run, self._clock(), given))

    def absorbed(self, run: Batch) -> None:
        """Fragments have arrived."""
        own = run.sender == self._me
        window = self._layer.sent if own else self._layer.windows.get(run.sender)
        waits = window is not None and window.delivered < run.first - 1
        self.note(self._view, partial(self._row_writer.absorbed, run, self._clock(), waits))

    def requested(self, origin: Address, ranges: RangeSet) -> None:
        """This member lacks messages."""
        at, append = self._clock(), self._row_writer.writer.append_requested
        for first, last in ranges:
            self.note(self._view, partial(append, origin, first, last - first + 1, origin, at))

    def resent(self, run: Batch, to: Address | None) -> None:
        """This member has sent a run again."""
        append, what = (
            self._row_writer.writer.append_resent,
            (run.sender, run.first, len(run), run.nbytes),
        )
        self.note(self._view, partial(append, *what, to, self._clock()))

    def acked(self, member: Address, up_to: int) -> None:
        """A member has this member's messages up to here."""
        self.note(
            self._view, partial(self._row_writer.writer.append_acked, member, up_to, self._clock())
        )

    def purged(self, view: ViewId, low: int, delivered: int, high: int) -> None:
        """This member has freed its messages up to `low`."""
        append, first, self._purged = self._row_writer.writer.append_purged, self._purged + 1, low
        self.note(view, partial(append, first, low - first + 1, delivered, high, self._clock()))

    def agreed(self, view: ViewId, before: ViewId, left: Collection[Address]) -> None:
        """This member knows that a majority has agreed on a view."""
        append = self._row_writer.writer.append_agreed
        known = None if before == NO_VIEW else (before.number, before.coordinator)
        self.note(view, partial(append, known, sorted(left), self._clock()))

    # Single notes ---------------------------------------------------------------------------------

    @property
    def _view(self) -> ViewId:
        view = self._stack.view
        return NO_VIEW if view is None else view.id

    def _slowest(self) -> Address | None:
        """The member that is waited for, rather not this one; None while a view is being made."""
        if self._layer.sent.room()[0] > 0:
            return None
        members = self._stack.waits_for
        return next((m for m in members if m != self._me), members[0] if members else None)

    def _unblock(self, at: int) -> None:
        since, self._blocked_since = self._blocked_since or at, None
        append = self._row_writer.writer.append_blocked
        self.note(self._view, partial(append, self._blocked_by, since, at))

    def _sample(self, at: int) -> None:
        append, view = self._row_writer.writer.append_window, self._view
        for sender, marks in self._layer.digest().items():
            self.note(view, partial(append, sender, *marks, at))
