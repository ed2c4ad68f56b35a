"""What a newcomer's application must not be given, since the state that it took contains it."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, StateTaken, ViewChange
from ringcast.core.model.view import ViewId


class StateCutoff:
    """Leaves out the messages of earlier views than the state's, and of its view those up to the
    marks.

    All of them had arrived before the state was taken, so it is over at that place in the order.
    """

    def __init__(self, view: ViewId, marks: dict[Address, int]) -> None:
        self._view = view
        self._marks = marks
        self._is_there = False
        """Whether the application has reached the view of the state."""
        self.over = False

    def filter(self, events: Iterable[Event]) -> list[Event]:
        """What is left for the application."""
        return [kept for event in events if (kept := self._keep(event)) is not None]

    def _keep(self, event: Event) -> Event | None:
        if isinstance(event, StateTaken):
            self.over = True
            return None
        if isinstance(event, ViewChange):
            self._is_there = event.view.id.number >= self._view.number
        elif isinstance(event, Batch) and event.dest is None and not self.over:
            last = self._marks.get(event.sender, 0) if self._is_there else event.last
            if last >= event.last:
                return None
            if last >= event.first:
                return event.part(last + 1, event.last)
        return event
