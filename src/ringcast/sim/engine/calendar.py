"""What will happen when, in virtual time: datagrams arrive, and members want to be woken."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast.sim.engine.member import Member


class Calendar:
    """A heap of arrivals and wake-ups; what is due at the same instant keeps its order."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Member, bytes | None]] = []
        self._entries = 0
        self.instants = 0
        """How many instants have passed."""

    def arrive(self, time: float, member: Member, data: bytes) -> None:
        """A datagram reaches a member at this time."""
        self._entries += 1
        heappush(self._heap, (time, self._entries, member, data))

    def wake(self, time: float, member: Member) -> None:
        """A member wants to be stepped at this time, whatever arrives."""
        self._entries += 1
        heappush(self._heap, (time, self._entries, member, None))

    @property
    def next(self) -> float:
        """The time of the next instant at which something happens."""
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> dict[Member, list[bytes]]:
        """All that is due at the next instant: members to step, each with its datagrams."""
        heap, now = self._heap, self._heap[0][0]
        self.instants += 1
        due: dict[Member, list[bytes]] = {}
        while heap and heap[0][0] == now:
            _, _, member, data = heappop(heap)
            datagrams = due.setdefault(member, [])
            if data is not None:
                datagrams.append(data)
        return due
