"""Giving up: what the layers above ask about missing messages, and how they end the wait for them.

By itself reliable multicast waits for ever, which is right for most groups. Where one member must
not hold up all others, a layer above decides when to stop waiting. Giving up is never silent: the
receiver hands up a hole in the place of the messages, and its application is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.windows import Hole
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.multicast.view_flush import ViewFlush

FREED_BY_SENDER = "the sender no longer has it"
"""The usual reason for a hole."""


class GiveUp:
    """The part of ports.Numbering that is about the messages of other members."""

    __slots__ = ("_counters", "_flush", "_gaps", "_group", "_hand_up")

    def __init__(
        self,
        group: GroupWindows,
        gaps: SenderGaps,
        flush: ViewFlush,
        hand_up: Callable[[Address, list[Batch | Hole], str], None],
        counters: Counter[str],
    ) -> None:
        self._group = group
        self._gaps = gaps
        self._flush = flush
        self._hand_up = hand_up
        self._counters = counters

    def expect(self, sender: Address, up_to: int) -> None:
        """This sender's messages up to here exist: request those that are missing."""
        window = self._group.windows.get(sender)
        if window is not None and up_to > window.high:
            window.expect(up_to)
            self._gaps.note(sender, window)

    def arrived(self, sender: Address) -> int:
        """The highest message of a sender that has arrived, in order or not."""
        window = self._group.windows.get(sender)
        if window is None:
            return 0
        if not window.gaps or window.gaps.last < window.high:
            return window.high
        *_, last_gap = window.gaps.ranges()
        return last_gap[0] - 1

    def lacks(self, sender: Address, first: int, last: int) -> bool:
        """Whether any of these messages is known to exist and has not arrived."""
        window = self._group.windows.get(sender)
        return window is not None and window.gaps.overlaps(first, last)

    def beside_gap(self, sender: Address, seqno: int) -> list[Batch]:
        """The messages before and behind the gap that this one lies in; not those handed up."""
        window = self._group.windows.get(sender)
        gap = None if window is None else window.gaps.range_at(seqno)
        if window is None or gap is None:
            return []
        sides = RangeSet([(at, at) for at in (gap[0] - 1, gap[1] + 1)])
        return window.get(sides.clip(window.handed + 1, window.high))

    def give_up(self, sender: Address, first: int, last: int, reason: str) -> None:
        """Wait no longer for the messages among these that are known to exist and are missing."""
        window = self._group.windows.get(sender)
        lost = 0 if window is None else window.skip_within(first, last)
        if window is None or not lost:
            return
        self._counters["gave_up"] += lost
        self._hand_up(sender, window.hand(), reason)
        self._gaps.note(sender, window)
        self._flush.check()
