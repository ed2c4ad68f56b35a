"""Timers as named values: a part says when it wants to be woken, and the stack's owner only needs
the next deadline."""

from __future__ import annotations

import heapq
import math
from typing import Generic, TypeVar

Owner = TypeVar("Owner")

NEVER = math.inf


class Timers(Generic[Owner]):
    """One deadline per (owner, name); setting it again moves it. Ties go by the order of
    setting."""

    __slots__ = ("_count", "_due", "_heap", "_next")

    def __init__(self) -> None:
        self._due: dict[tuple[Owner, str], tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Owner, str]] = []
        self._count = 0
        self._next: float | None = NEVER
        """The next deadline, or None when it has to be looked for."""

    def set(self, owner: Owner, name: str, at: float) -> None:
        """Wake the owner at this time, instead of any time set before under this name."""
        self._count += 1
        if self._next is not None:
            known = self._due.get((owner, name))
            if known is not None and known[0] <= self._next:
                self._next = None
            elif at < self._next:
                self._next = at
        self._due[owner, name] = (at, self._count)
        heapq.heappush(self._heap, (at, self._count, owner, name))
        if len(self._heap) > 64 + 4 * len(self._due):
            self._compact()

    def set_earlier(self, owner: Owner, name: str, at: float) -> None:
        """Wake the owner at this time, or at the time set before when that is sooner."""
        known = self._due.get((owner, name))
        if known is None or at < known[0]:
            self.set(owner, name, at)

    def cancel(self, owner: Owner, name: str) -> None:
        """Forget a timer, if it is set."""
        if self._due.pop((owner, name), None) is not None:
            self._next = None

    def is_set(self, owner: Owner, name: str) -> bool:
        """Whether this timer is running."""
        return (owner, name) in self._due

    @property
    def deadline(self) -> float:
        """When the next timer is due; NEVER when none is set."""
        if self._next is None:
            self._next = self._look()
        return self._next

    def _look(self) -> float:
        heap, due = self._heap, self._due
        while heap:
            at, count, owner, name = heap[0]
            if due.get((owner, name)) == (at, count):
                return at
            heapq.heappop(heap)  # It was moved or cancelled.
        return NEVER

    def pop_due(self, now: float) -> tuple[Owner, str] | None:
        """The next timer that is due, which is then no longer set; None when no more is."""
        if self.deadline > now or self._look() == NEVER:
            return None
        _, _, owner, name = heapq.heappop(self._heap)
        del self._due[owner, name]
        self._next = None
        return owner, name

    def _compact(self) -> None:
        """Throw out what was moved or cancelled, so that the heap stays as small as the table."""
        self._heap = [(at, count, *key) for key, (at, count) in self._due.items()]
        heapq.heapify(self._heap)
