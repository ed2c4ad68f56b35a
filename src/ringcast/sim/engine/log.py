"""What one application was given: batches as they came, messages when they are looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from ringcast.core.model.batch import Batch, Message
from ringcast.core.model.events import Event, Skipped, ViewChange
from ringcast.core.model.view import View
from ringcast.errors import LocalError


class Delivered(Sequence[Message]):
    """The messages of stored batches, in the order of delivery; made on iteration, never kept.

    With `keep` off nothing is stored: the length is right, and looking at a message raises
    LocalError.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._batches: list[Batch] = []
        self._ends: list[int] = []
        self._count = 0

    def add(self, batch: Batch) -> None:
        """One more batch was delivered."""
        self._count += len(batch)
        if self._keep:
            batch.drop_views()
            self._batches.append(batch)
            self._ends.append(self._count)

    @property
    def batches(self) -> Sequence[Batch]:
        """The batches as they were delivered."""
        self._check_kept()
        return self._batches

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Message]:
        self._check_kept()
        for batch in self._batches:
            yield from batch

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        self._check_kept()
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise IndexError(f"there is no message {index} among {self._count}")
        place = bisect_right(self._ends, index)
        batch = self._batches[place]
        offset = index - (self._ends[place] - len(batch))
        return Message(batch.sender, batch.first + offset, batch.payloads[offset])

    def __repr__(self) -> str:
        return f"Delivered({self._count} messages)"

    def _check_kept(self) -> None:
        if not self._keep:
            raise LocalError("this world keeps no messages: make it with keep=True to look at them")


class Log:
    """Everything that one application was told."""

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self.delivered = Delivered(keep)
        self.views: list[View] = []
        self.skipped: list[Skipped] = []
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        """The application was given one more event."""
        if isinstance(event, Batch):
            self.delivered.add(event)
            if not self._keep:
                return
        elif isinstance(event, ViewChange):
            self.views.append(event.view)
        elif isinstance(event, Skipped):
            self.skipped.append(event)
        self.events.append(event)
