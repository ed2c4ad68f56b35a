"""The end of patience: a sender that no longer keeps what somebody lacks, a receiver that no longer
waits for it.

Reliable multicast by itself waits for ever, and that is right for most groups. Where one member
must not hold up all others, the layers above decide when it is enough, and this is what they ask
for. What was given up is never silent: the receiver hands up a hole in the place of the messages,
and its application is told."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.ranges import RangeSet
from ringcast.core.reliable import Reliable
from ringcast.core.windows import Hole, ReceiveWindow, SendWindow

GONE = "the sender no longer has it"
"""The usual reason for a hole."""


class Patience(Reliable):
    """What a reliable multicast offers to the layers above (ports.Numbering)."""

    sent: SendWindow
    windows: dict[Address, ReceiveWindow]

    @property
    def sent_high(self) -> int:
        return self.sent.high

    def forget(self, up_to: int, without: Iterable[Address]) -> None:
        if self._purge_sent(min(up_to, self.sent.delivered)):
            self.above.resume()

    def acked(self, member: Address, up_to: int) -> None:
        """Only a multicast that counts acks has a use for this."""

    def answered(self, sender: Address, up_to: int) -> None:
        """The same."""

    def hush(self, sender: Address, up_to: int) -> None:
        """The same."""

    def expect(self, sender: Address, up_to: int) -> None:
        window = self.windows.get(sender)
        if window is not None and up_to > window.high:
            window.expect(up_to)
            self._look(sender, window)

    def arrived(self, sender: Address) -> int:
        window = self.windows.get(sender)
        if window is None:
            return 0
        if not window.gaps or window.gaps.last < window.high:
            return window.high
        *_, tail = window.gaps.ranges()
        return tail[0] - 1

    def lacks(self, sender: Address, seqno: int) -> bool:
        window = self.windows.get(sender)
        return window is not None and seqno in window.gaps

    def behind_gap(self, sender: Address) -> Batch | None:
        window = self.windows.get(sender)
        if window is None or not window.gaps:
            return None
        behind = next(window.gaps.ranges())[1] + 1
        return next(iter(window.get(RangeSet([(behind, behind)]))), None)

    def give_up(self, sender: Address, up_to: int | None, reason: str) -> None:
        window = self.windows.get(sender)
        if window is None or not window.gaps:
            return
        if up_to is None:
            up_to = next(window.gaps.ranges())[1]
        up_to = min(up_to, window.high)  # What is not known to exist cannot be given up.
        before = window.gaps.count
        window.skip(up_to)
        self.env.counters["gave_up"] += max(1, before - window.gaps.count)
        self._hand_up(sender, window.hand(), reason)
        self._look(sender, window)
        self._check_aims()

    # What the multicast has of its own -----------------------------------------------------------

    def _look(self, origin: Address, window: ReceiveWindow) -> None:
        raise NotImplementedError

    def _hand_up(self, origin: Address, runs: list[Batch | Hole], reason: str = GONE) -> None:
        raise NotImplementedError

    def _check_aims(self) -> None:
        raise NotImplementedError

    def _purge_sent(self, up_to: int) -> bool:
        raise NotImplementedError
