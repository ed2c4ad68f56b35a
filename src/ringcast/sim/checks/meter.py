"""Measures how long messages take, from the application that sends to each that is given them.

The clock of a message starts when its sender's application has it ready. Where the sending is
spread over time that is the planned moment, whether or not there was room for it: who leaves the
waiting out praises small windows. Where an application sends as fast as it can, it has its next
message ready when there is room, and not before.

A message is known by its place in the stream of its sender and view, as the checks count it.
Deliveries to the sender itself take no time and are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.sim.checks.spread import Spread


class Meter:
    """What the checks tell it, as one distribution over all deliveries."""

    def __init__(self, *, paced: bool) -> None:
        """paced: whether messages have a planned time, or are ready when there is room."""
        self.latency = Spread()
        self.last_at: float | None = None
        """When the last message was delivered."""
        self._paced = paced
        self._accepted: dict[Address, deque[tuple[int, float]]] = {}
        self._streams: dict[tuple[ViewId, Address], _Times] = {}

    def accepted(self, sender: Address, count: int, asked_at: float, now: float) -> None:
        """A stack has accepted messages that its application wanted to send at `asked_at`."""
        ready_at = asked_at if self._paced else now
        self._accepted.setdefault(sender, deque()).append((count, ready_at))

    def numbered(self, view: ViewId, sender: Address, count: int) -> None:
        """The next of the accepted messages belong to this view."""
        waiting = self._accepted.get(sender)
        times = self._streams.setdefault((view, sender), _Times())
        while count and waiting:
            there, ready_at = waiting.popleft()
            taken = min(there, count)
            times.add(taken, ready_at)
            count -= taken
            if there > taken:
                waiting.appendleft((there - taken, ready_at))

    def delivered(
        self, view: ViewId, sender: Address, receiver: Address, span: range, now: float
    ) -> None:
        """An application was given these messages of a stream, by their places."""
        self.last_at = now
        times = self._streams.get((view, sender))
        if sender != receiver and times is not None:
            for ready_at, count in times.between(span.start, span.stop):
                self.latency.add(now - ready_at, count)

    def forget(self, view: ViewId) -> None:
        """No member is in this view any more."""
        for key in [key for key in self._streams if key[0] == view]:
            del self._streams[key]


class _Times:
    """When the messages of one stream were ready, run by run."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times: list[float] = []

    def add(self, count: int, ready_at: float) -> None:
        end = (self._ends[-1] if self._ends else 0) + count
        if self._times and self._times[-1] == ready_at:
            self._ends[-1] = end
        else:
            self._ends.append(end)
            self._times.append(ready_at)

    def between(self, start: int, stop: int) -> list[tuple[float, int]]:
        """The times of the messages from one place to another, each with how many have it."""
        found = []
        place = bisect_right(self._ends, start)
        while start < stop and place < len(self._ends):
            end = min(self._ends[place], stop)
            found.append((self._times[place], end - start))
            start, place = end, place + 1
        return found
