"""Messages to one member, checked: once and in order, as long as both have each other in their
view.

When one of the two gets a view without the other, the connection between them ends, and what was
under way may be lost: that, and only that, is excused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload


class DirectStream:
    """What one member sent to another."""

    __slots__ = ("count", "excused", "read", "unread")

    def __init__(self) -> None:
        self.unread: deque[Payload] = deque()
        self.count = 0
        """How many messages were sent."""
        self.read = 0
        """How many of them the receiver is through with, or will never get."""
        self.excused = 0
        """How many were sent before the two were parted the last time."""

    def append(self, payloads: Sequence[Payload]) -> None:
        """One more run was sent."""
        self.unread.extend(payloads)
        self.count += len(payloads)

    def take(self, payloads: Sequence[Payload]) -> bool:
        """The receiver was given these; False when they are not what may come next."""
        wanted = list(payloads)
        for skipped in range(max(0, self.excused - self.read) + 1):
            if list(islice(self.unread, skipped, skipped + len(wanted))) == wanted:
                for _ in range(skipped + len(wanted)):
                    self.unread.popleft()
                self.read += skipped + len(wanted)
                return True
        return False


class Pairs:
    """All pairs of a world."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._pairs: dict[tuple[Address, Address], DirectStream] = {}

    def sent(self, source: Address, target: Address, payloads: Sequence[Payload]) -> None:
        """The stack of `source` has accepted a run for `target`."""
        self._pairs.setdefault((source, target), DirectStream()).append(payloads)

    def parted(self, one: Address, other: Address) -> None:
        """One of the two has a view without the other."""
        for key in ((one, other), (other, one)):
            if key in self._pairs:
                self._pairs[key].excused = self._pairs[key].count

    def delivered(self, name: str, batch: Batch) -> None:
        """An application was given messages that were for it alone."""
        assert batch.dest is not None
        pair = self._pairs.get((batch.sender, batch.dest))
        if pair is None or not pair.take(batch.payloads):
            self._report(name, f"was given {batch}, which are not the messages that were due")

    def behind(self, together: Callable[[Address, Address], bool]) -> list[tuple[Address, Address]]:
        """The pairs, of members that are together, whose messages have not all been given."""
        return [
            key
            for key, pair in self._pairs.items()
            if pair.count > max(pair.read, pair.excused) and together(*key)
        ]
