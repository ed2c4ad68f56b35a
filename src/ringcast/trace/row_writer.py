"""Turns what is noted about a member into rows of its trace, each in its view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.trace.writer import NO_DIGEST, NO_PLACE, TraceWriter, digest

Note = tuple[ViewId | None, Callable[[], None]]
"""What is to be written, and the view of the protocols; None where it is the application's."""


class RowWriter:
    """Writes the notes of one member, in the order in which they were made.

    Runs are written as they were delivered, also where they leave a hole or come again: the audit
    can find only what is written.
    """

    def __init__(self, writer: TraceWriter, digests: bool) -> None:
        self.writer = writer
        self._digests = digests
        self._view: View | None = None
        self._held: list[Note] = []
        """Notes of a view that the application has not come to yet."""
        self._reached: dict[Address, int] = {}
        """Sender → the last message that was gone through."""
        self._taken = 0
        """How many messages the application has taken in its view."""
        self._absorbed: dict[Address, list[Batch]] = {}
        """Fragments that arrived behind messages which the application has not taken yet."""

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
        self._taken = 0
        self._reached = {m: last for m, last in self._reached.items() if m in view}
        self._absorbed.clear()
        held, self._held = self._held, []
        for note in held:
            self.write(note)

    def taken(self, run: Batch, at: int) -> None:
        """The application has taken a run."""
        place, self._taken = self._taken, self._taken + len(run)
        self.delivered(run, at, place=place)

    def delivered(
        self, run: Batch, at: int, given: Sequence[Payload] | None = None, place: int = NO_PLACE
    ) -> None:
        """A run counts as taken; `given` is what was given to the stack for an own run that does
        not come back, `place` the first one's among all that the application has taken."""
        self._reached[run.sender] = max(self._reached.get(run.sender, 0), run.last)
        summed = self._digest(run, run.payloads if given is None else given)
        nbytes = _nbytes(run, given)
        self.writer.append_delivered(
            run.sender, run.first, len(run), nbytes, run.sent_at, at, summed, place
        )
        self._release(run.sender, at)

    def absorbed(self, run: Batch, at: int, waits: bool) -> None:
        """Fragments have come; `waits` says that the application has not taken all before them.

        What it takes is written down before the protocols hear of it, so it may have by now.
        """
        if waits and self._reached.get(run.sender, -1) + 1 < run.first:
            self._absorbed.setdefault(run.sender, []).append(run)
        else:
            self.delivered(run, at)

    def _release(self, sender: Address, at: int) -> None:
        """Fragments count as delivered when all before them is."""
        waiting = self._absorbed.get(sender)
        if waiting and waiting[0].first <= self._reached[sender] + 1:
            run = waiting.pop(0)
            if not waiting:
                del self._absorbed[sender]
            self.delivered(run, at)

    def sent(self, run: Batch, given: Sequence[Payload]) -> None:
        """This member has numbered a run, of messages that its application gave like this."""
        summed = self._digest(run, given)
        nbytes = _nbytes(run, given)
        self.writer.append_sent(run.first, len(run), nbytes, run.sent_at, summed)

    def skipped(self, skip: Skipped, at: int) -> None:
        """Messages will not come."""
        self._reached[skip.sender] = max(self._reached.get(skip.sender, 0), skip.last)
        self.writer.append_skipped(skip.sender, skip.first, skip.last - skip.first + 1, at)
        self._release(skip.sender, at)

    def close(self, at: int, in_order: bool, has_all: bool) -> None:
        """Write what there is; a member that was alone has all, if it left in order."""
        if in_order and self._view is not None and (has_all or len(self._view) == 1):
            self.writer.append_closed(at)
        self.writer.close()

    def _digest(self, run: Batch, payloads: Sequence[Payload]) -> int:
        return digest(payloads) if self._digests and not run.flags & FRAGMENT else NO_DIGEST


def _nbytes(run: Batch, given: Sequence[Payload] | None) -> int:
    """The size of what a run carries: of what was given, where layers may have changed it."""
    if given is None or run.flags & FRAGMENT:
        return run.nbytes
    return sum(map(len, given))
