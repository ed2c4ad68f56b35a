"""Messages to one member, checked: once and in order, as long as both have each other in their
view.

When one of the two gets a view without the other, the connection between them ends, and what was
under way may be lost: that, and only that, is excused. The sender is told how many messages it may
have lost (`Undelivered`); calls do not count, since their callers are told `gone`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, Batch, Payload
from ringcast.core.model.events import Undelivered


class DirectStream:
    """What one member sent to another."""

    __slots__ = ("count", "excused", "lost", "read", "reportable", "told", "unread")

    def __init__(self) -> None:
        self.unread: deque[tuple[Payload, bool]] = deque()
        """What the receiver was not given yet, and whether it is a call."""
        self.lost = 0
        """How many messages the receiver has passed over, without calls."""
        self.told = 0
        """How many losses the sender was told of."""
        self.reportable = 0
        """How many messages were sent before the sender had a view without the receiver."""
        self.count = 0
        """How many messages were sent."""
        self.read = 0
        """How many of them the receiver is through with, or will never get."""
        self.excused = 0
        """How many were sent before the two were parted the last time."""

    def append(self, payloads: Sequence[Payload], are_calls: bool) -> None:
        """One more run was sent."""
        self.unread.extend((payload, are_calls) for payload in payloads)
        self.count += len(payloads)

    def take(self, payloads: Sequence[Payload]) -> bool:
        """The receiver was given these; False when they are not what may come next."""
        wanted = list(payloads)
        for skipped in range(max(0, self.excused - self.read) + 1):
            coming = islice(self.unread, skipped, skipped + len(wanted))
            if [payload for payload, _ in coming] == wanted:
                gone = [self.unread.popleft() for _ in range(skipped + len(wanted))]
                self.lost += sum(not is_call for _, is_call in gone[:skipped])
                self.read += skipped + len(wanted)
                return True
        return False

    @property
    def untold(self) -> int:
        """How many messages are lost that the sender, which has parted, was not told of."""
        ended = islice(self.unread, max(0, self.reportable - self.read))
        return self.lost + sum(not is_call for _, is_call in ended) - self.told


class Silence(NamedTuple):
    """Messages that were lost, and their sender was not told so."""

    sender: Address
    receiver: Address
    messages: int

    def __str__(self) -> str:
        return f"was not told that {self.receiver} lacks {self.messages} of its messages"


class Pairs:
    """All pairs of a world."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._pairs: dict[tuple[Address, Address], DirectStream] = {}

    def sent(
        self, source: Address, target: Address, payloads: Sequence[Payload], flags: int = 0
    ) -> None:
        """The stack of `source` has accepted a run for `target`."""
        pair = self._pairs.setdefault((source, target), DirectStream())
        pair.append(payloads, bool(flags & CALL))

    def parted(self, one: Address, other: Address) -> None:
        """The first of the two has a view without the other."""
        for key in ((one, other), (other, one)):
            if key in self._pairs:
                self._pairs[key].excused = self._pairs[key].count
        if (one, other) in self._pairs:
            self._pairs[one, other].reportable = self._pairs[one, other].count

    def told(self, sender: Address, event: Undelivered) -> None:
        """A sender was told of messages to one member that it may have lost."""
        for receiver in event.members:
            self._pairs[sender, receiver].told += event.count

    def silences(self, is_done: Callable[[Address], bool]) -> Iterator[Silence]:
        """What was lost without a word to its sender, if that one has taken all events; each
        once."""
        for (sender, receiver), pair in self._pairs.items():
            if is_done(sender) and pair.untold > 0:
                count, pair.told = pair.untold, pair.told + pair.untold
                yield Silence(sender, receiver, count)

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
