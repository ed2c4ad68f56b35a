"""Announcements of the last seqno: a receiver cannot request a message that it never heard of.

On a tick, when nothing was sent since the tick before and messages are outstanding, the sender
announces its last seqno. Once per pause it does so much sooner (`TailProbe`), so that a lost last
message is repaired within a few round trips and not within an interval.

Multicast may end on the way to a member that unicast reaches: a switch has forgotten who listens.
That member hears no announcement and acks nothing. So after some ticks on which nothing more has
arrived at a member, it is sent the announcement by itself as well; it requests what it lacks, and
is answered by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ringcast.core.model.address import Address
from ringcast.core.reliable.tail_probe import Tail, TailProbe
from ringcast.core.reliable.ticker import Ticker
from ringcast.core.stack.part import Layer
from ringcast.core.stack.ports import Tracker
from ringcast.core.wire.frames import Last
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.view_flush import ViewFlush

UNREACHED_TICKS = 5
"""After this many announcements in succession without an arrival at a member, one also goes to that
member alone; so does each one after as many more."""
UNREACHED_MAX = 16
"""Up to this many members are sent an announcement each on a tick; when there are more, they take
turns."""


class LastSeqno:
    """The announcements of one sender."""

    __slots__ = (
        "_env",
        "_flush",
        "_group",
        "_lacking",
        "_layer",
        "_targets",
        "_ticked_low",
        "_ticker",
        "_turn",
        "_unanswered",
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
        lacking: Callable[[], Mapping[Address, int]],
    ) -> None:
        """targets: the members that a tick's announcement goes to, None for the group; lacking: the
        members at which not all has arrived, and up to where it has."""
        self._layer = layer
        self._env = layer.env
        self._group = group
        self._flush = flush
        self._ticker = ticker
        self._targets = targets
        self._lacking = lacking
        self._unanswered: dict[Address, tuple[int, int]] = {}
        """Per member at which not all has arrived: up to where it has, and the announcements since
        then."""
        self._turn = 0
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
            targets = self._unreached()
        for member in targets:
            self._env.out.send(self.frame(), member)

    def _unreached(self) -> Sequence[Address]:
        """The members that the announcements to the group do not seem to reach."""
        before, never = self._unanswered, (-1, 0)
        self._unanswered = {
            member: (
                arrived,
                before[member][1] + 1 if before.get(member, never)[0] == arrived else 0,
            )
            for member, arrived in self._lacking().items()
        }
        counts = self._unanswered.items()
        unreached = [
            member for member, (_, count) in counts if count and count % UNREACHED_TICKS == 0
        ]
        if len(unreached) > UNREACHED_MAX:
            self._turn = (self._turn + UNREACHED_MAX) % len(unreached)
            unreached = [*unreached[self._turn :], *unreached[: self._turn]][:UNREACHED_MAX]
        return unreached

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        return ((self.tail, None),)

    def _announce_tail(self, dest: Address | None) -> None:
        # To the group, as the messages went, so that it overtakes none of them. Where large
        # messages are acked as a whole, the tracker asks for the acks of their ends.
        if self.tracker is not None or self._flush.is_frozen or self._group.is_alone:
            return
        if self._group.sent.outstanding:
            self._env.out.send(self.frame(), dest)
