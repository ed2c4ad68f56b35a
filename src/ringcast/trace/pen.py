"""Turns what is noted about a member into rows of its trace, each in its view."""

from __future__ import annotations

from collections.abc import Callable

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT, Batch
from ringcast.core.events import Skipped
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.trace.writer import NO_DIGEST, TraceWriter, digest

Note = tuple[ViewId | None, Callable[[], None]]
"""What is to be written, and the view of the protocols; None where it is the application's."""


class Pen:
    """Writes the notes of one member, in the order in which they were made."""

    def __init__(self, writer: TraceWriter, digests: bool) -> None:
        self.writer = writer
        self._digests = digests
        self._view: View | None = None
        self._held: list[Note] = []
        """Notes of a view that the application has not come to yet."""
        self._reached: dict[Address, int] = {}
        """Sender → the last message that was gone through."""
        self._absorbed: dict[Address, list[Batch]] = {}
        """Fragments that came behind messages which the application has not taken yet."""

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
        self._absorbed.clear()
        held, self._held = self._held, []
        for note in held:
            self.write(note)

    def delivered(self, run: Batch, at: int) -> None:
        """The application has taken a run, or it counts as taken."""
        first = self._reached.get(run.sender, run.first - 1) + 1
        self._reached[run.sender] = run.last
        whole = first == run.first and not run.flags & FRAGMENT
        self.writer.append_delivered(
            run.sender, first, run.last - first + 1, run.nbytes, run.sent_at, at,
            self._digest(run) if whole else NO_DIGEST,
        )  # fmt: skip
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

    def sent(self, run: Batch) -> None:
        """This member has numbered a run."""
        self.writer.append_sent(run.first, len(run), run.nbytes, run.sent_at, self._digest(run))

    def skipped(self, skip: Skipped, at: int) -> None:
        """Messages will not come."""
        first = self._reached.get(skip.sender, skip.first - 1) + 1
        self._reached[skip.sender] = skip.last
        self.writer.append_skipped(skip.sender, first, skip.last - first + 1, at)
        self._release(skip.sender, at)

    def close(self, at: int, in_order: bool, has_all: bool) -> None:
        """Write what there is; a member that was alone has all, if it left in order."""
        if in_order and self._view is not None and (has_all or len(self._view) == 1):
            self.writer.append_closed(at)
        self.writer.close()

    def _digest(self, run: Batch) -> int:
        return digest(run.payloads) if self._digests and not run.flags & FRAGMENT else NO_DIGEST
