"""What a sender says while somebody may lack its last messages: nobody asks for what it never heard
of.

On the tick, when nothing was sent since the one before and something is outstanding, it announces
how far it is. And once in every pause it does so much sooner (`core.reliable.Tail`), so that a lost
last message is repaired within a few round trips and not within an interval.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.address import Address
from ringcast.core.env import Env
from ringcast.core.frames import Last
from ringcast.core.ports import Tracker
from ringcast.core.reliable import Tail
from ringcast.core.view import NO_VIEW
from ringcast.layers.multicast.flushing import Flushing


class Announcing(Flushing):
    """The announcements of a reliable multicast."""

    _tracker: Tracker | None

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._view = NO_VIEW
        self._start = 0
        """Where this view begins, in the own seqnos."""
        self._tail = Tail()
        self._announced_low = 0

    def _last(self) -> Last:
        return Last(self._view, self._start, self.sent.low, self.sent.high)

    def _tick(self) -> None:
        if not self._alone and (self.sent.outstanding or self.sent.low > self._announced_low):
            if not self._tail.is_fresh and not self.above.pausing:
                # The last of them, when nothing is outstanding any more, lets receivers free what
                # they keep.
                self._announced_low = self.sent.low
                self._announce()
            self._arm()
        self._tail.is_fresh = False

    def _announce(self) -> None:
        self.env.out.send(self._last())

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        return ((self._tail, None),)

    def _announce_tail(self, dest: Address | None) -> None:
        # To all, the way that the messages went, so that it overtakes none of them. Where large
        # messages are acked as a whole, somebody else asks about their ends.
        if self._tracker is None and self.sent.outstanding and not (self._alone or self._frozen):
            self.env.out.send(self._last())

    @property
    def _alone(self) -> bool:
        return not self.windows
