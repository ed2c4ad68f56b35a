"""The repair queue of a sender: what receivers requested and was not sent again yet.

A message goes to the same receiver once in a round trip, however often it is requested. What
several receivers wait for goes to the group, once.
"""

from __future__ import annotations

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet


class _Recent:
    """What was sent again to one receiver, in the last one to two intervals."""

    __slots__ = ("before", "now", "since")

    def __init__(self, since: float) -> None:
        self.before, self.now = RangeSet(), RangeSet()
        self.since = since

    def age(self, now: float, interval: float) -> None:
        """Forget what is older than two intervals."""
        elapsed = now - self.since
        if elapsed >= interval:
            self.before = self.now if elapsed < 2 * interval else RangeSet()
            self.now = RangeSet()
            self.since = now


class RepairQueue:
    """Requests by receiver, in the order of arrival."""

    __slots__ = ("_is_unicast", "_recent", "_to_group", "pending")

    def __init__(self, is_unicast: bool = False) -> None:
        """is_unicast: whether nothing goes to the group."""
        self._is_unicast = is_unicast
        self._to_group = _Recent(0.0)
        self.pending: dict[Address, RangeSet] = {}
        """What is queued per receiver; always the same dictionary, without empty entries."""
        self._recent: dict[Address, _Recent] = {}

    def __bool__(self) -> bool:
        return bool(self.pending)

    def request(self, receiver: Address, wanted: RangeSet, now: float, round_trip: float) -> int:
        """Queue what is neither queued nor sent again within the round trip; how many that is."""
        for recent in (self._to_group, self._recent.get(receiver)):
            if recent is not None:
                recent.age(now, round_trip)
                wanted = wanted.difference(recent.now).difference(recent.before)
        pending = self.pending.get(receiver)
        if pending is not None:
            wanted = wanted.difference(pending)
        elif wanted:
            pending = self.pending[receiver] = RangeSet()
        if pending is not None:
            for first, last in wanted:
                pending.add(first, last)
            assert pending, "a receiver is queued that waits for nothing"
        return wanted.count

    def take(self, max_messages: int, now: float) -> tuple[Address | None, RangeSet]:
        """The next messages to send again, and the receiver that requested them; None for the
        group, when another one waits for at least half of them."""
        assert self.pending, "nothing is queued"
        receiver, pending = next(iter(self.pending.items()))
        part = pending.limited(None, max_messages)
        assert part, "nothing may be sent"
        if not self._is_unicast and any(
            2 * other.intersection(part).count >= part.count
            for waiting, other in self.pending.items()
            if waiting != receiver
        ):
            for waiting in list(self.pending):
                self._discard(waiting, part)
            for first, last in part:
                self._to_group.now.add(first, last)
            return None, part
        self._discard(receiver, part)
        recent = self._recent.get(receiver)
        if recent is None:
            recent = self._recent[receiver] = _Recent(now)
        for first, last in part:
            recent.now.add(first, last)
        return receiver, part

    def _discard(self, receiver: Address, part: RangeSet) -> None:
        pending = self.pending[receiver]
        for first, last in part:
            pending.discard(first, last)
        if not pending:
            del self.pending[receiver]

    def forget(self, receiver: Address) -> None:
        """The receiver has left."""
        self.pending.pop(receiver, None)
        self._recent.pop(receiver, None)
