"""Announcements of the last seqno: a receiver cannot request a message that it never heard of.

On a tick, when nothing was sent since the tick before and messages are outstanding, the sender
announces its last seqno. Once per pause it does so much sooner (`TailProbe`), so that a lost last
message is repaired within a few round trips and not within an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.reliable.tail_probe import Tail, TailProbe
from ringcast.core.reliable.ticker import Ticker
from ringcast.core.stack.part import Layer
from ringcast.core.stack.ports import Tracker
from ringcast.core.wire.frames import Last
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.view_flush import ViewFlush


class LastSeqno:
    """The announcements of one sender."""

    __slots__ = (
        "_env",
        "_flush",
        "_group",
        "_layer",
        "_targets",
        "_ticked_low",
        "_ticker",
        "announced_low",
        "probe",
        "tail",
        "tracker",
    )

    def __init__(
        self,
        layer: Layer,
        group: GroupWindows,
        flush: ViewFlush,
        ticker: Ticker,
        interval: float,
        targets: Callable[[], Sequence[Address] | None],
    ) -> None:
        """targets: the members that a tick's announcement goes to, None for the group."""
        self._layer = layer
        self._env = layer.env
        self._group = group
        self._flush = flush
        self._ticker = ticker
        self._targets = targets
        self._ticked_low = 0
        """The `low` that the last tick announced."""
        self.announced_low = 0
        """The `low` of the last announcement of any kind."""
        self.tail = Tail()
        self.probe = TailProbe(layer, interval, ticker, self._tails, self._announce_tail)
        self.tracker: Tracker | None = None
        """The layer that follows large messages as a whole; set when the stack is wired."""

    def frame(self) -> Last:
        """The announcement."""
        group = self._group
        self.announced_low = group.sent.low
        return Last(group.view, group.start, group.sent.low, group.sent.high)

    def tick(self) -> None:
        """Announce the last seqno, if it is due."""
        sent = self._group.sent
        if not self._group.is_alone and (sent.outstanding or sent.low > self._ticked_low):
            if not self.tail.is_fresh and not self._layer.above.pausing:
                # The last announcement, with nothing outstanding, lets receivers free what they
                # keep for others.
                self._ticked_low = sent.low
                self._announce()
            self._ticker.arm()
        self.tail.is_fresh = False

    def _announce(self) -> None:
        targets = self._targets()
        if targets is None:
            self._env.out.send(self.frame())
            return
        for member in targets:
            self._env.out.send(self.frame(), member)

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        return ((self.tail, None),)

    def _announce_tail(self, dest: Address | None) -> None:
        # To the group, as the messages went, so that it overtakes none of them. Where large
        # messages are acked as a whole, the tracker asks for the acks of their ends.
        if self.tracker is not None or self._flush.is_frozen or self._group.is_alone:
            return
        if self._group.sent.outstanding:
            self._env.out.send(self.frame(), dest)
