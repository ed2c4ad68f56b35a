"""Paced repairs: what receivers requested is sent again at the pace of the messages, and first."""

from __future__ import annotations

from collections.abc import Callable

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.congestion import Congestion
from ringcast.core.reliable.repair_queue import RepairQueue
from ringcast.core.reliable.windows import SendWindow
from ringcast.core.stack.part import Part

PACE = "pace"
BURST_UNPACED = 1_000_000
"""Bytes of repairs that are taken at once while nothing is paced."""


class PacedRepairs:
    """The repairs of one window; the part calls `send` on PACE timers."""

    __slots__ = (
        "_congestion",
        "_env",
        "_part",
        "_queue",
        "_requested",
        "_resend",
        "_sent",
        "pending",
    )

    def __init__(
        self,
        part: Part,
        sent: SendWindow,
        congestion: Congestion,
        queue: RepairQueue,
        resend: Callable[[RangeSet, Address | None], int],
    ) -> None:
        """resend: sends messages again, to a receiver or to the group; how many bytes."""
        self._part = part
        self._env = part.env
        self._sent = sent
        self._congestion = congestion
        self._queue = queue
        self.pending = queue.pending
        """What waits, to be looked at for whether there is any."""
        self._resend = resend
        self._requested: dict[Address, RangeSet] = {}
        """By receiver: what it has requested of the messages that some receiver may lack."""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def request(self, receiver: Address, ranges: RangeSet, delay_min: float) -> None:
        """A receiver has requested messages; delay_min: the least round trip that is assumed."""
        congestion, sent = self._congestion, self._sent
        round_trip = max(congestion.round_trip(receiver), delay_min)
        wanted = ranges.clip(sent.low + 1, sent.high)
        self._queue.request(receiver, wanted, self._env.now, round_trip)
        lost = self._first_requested(receiver, wanted)
        if lost:
            calm = self._count_lost(lost.clip(*congestion.calm))
            congestion.on_lost(receiver, self._count_lost(lost), sent.message_bytes, calm)
        self.send()

    def _first_requested(self, receiver: Address, wanted: RangeSet) -> RangeSet:
        """What of this the receiver has not requested before. The rest says nothing of the path: it
        waits for the pace, or its repair was lost."""
        known = self._requested.get(receiver)
        if known is None:
            known = self._requested[receiver] = RangeSet()
        elif known and known.first <= self._sent.low:
            known.discard(known.first, self._sent.low)
        lost = wanted.difference(known)
        for first, last in lost:
            known.add(first, last)
        return lost

    def _count_lost(self, wanted: RangeSet) -> int:
        """How many messages the lost datagrams held. Of a packed run, a gap has about one more: its
        first and its last message were lost in part."""
        if not self._env.out.is_packing or not wanted:
            return wanted.count
        gaps = wanted.count_ranges
        return max(gaps, wanted.count - gaps)

    def send(self) -> None:
        """Send again what the pace allows now; the timer does the rest."""
        congestion = self._congestion
        while self._queue:
            budget = congestion.budget() if congestion.is_paced else BURST_UNPACED
            if not budget:
                self.await_pace()
                return
            count = max(1, int(budget / max(1.0, self._sent.message_bytes)))
            receiver, wanted = self._queue.take(count, self._env.now)
            nbytes = self._resend(wanted, receiver)
            if congestion.is_paced:
                congestion.on_repaired(nbytes)

    def await_pace(self) -> None:
        """Set the timer, if the pace is what sending waits for."""
        if self._congestion.ready_at > self._env.now:
            self._env.timers.set_earlier(self._part, PACE, self._congestion.ready_at)

    def forget(self, receiver: Address) -> None:
        """The receiver has left."""
        self._queue.forget(receiver)
        self._requested.pop(receiver, None)
