"""NAKACK3: one retransmission table per sender, kept until stable.

Sent, received and delivered messages lie in one table, with three marks: low, up to where everybody
has delivered; delivered, up to where the own application has taken; high, the last that is known
to exist. Delivery only moves a mark; what was delivered stays, so that any member can give it to
another when its sender has crashed. What frees messages is stability: the members vote how far they
are, and the minimum of that is purged everywhere. There are no acks, and flow control is another
layer's work; the table is bounded all the same, and at its bound the sender waits for a round.

With `discard_delivered` a receiver frees a message as soon as its application has it. Then the
survivors of a crash may differ in the crashed sender's last messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringcast.core.address import Address
from ringcast.core.env import Env
from ringcast.core.frames import SenderMarks
from ringcast.core.part import Installation
from ringcast.core.ports import Rounds
from ringcast.core.windows import ReceiveWindow
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.settings import MulticastSpec


@dataclass(frozen=True, kw_only=True)
class NakAck3(MulticastSpec):
    """One table per sender, purged by stability."""

    capacity: int = 65_536
    """Messages of one sender that the table holds; at this bound the sender waits for the next
    round of stability. A round should free far less than this, or senders stop and go."""
    max_bytes: int = 64_000_000
    """Bytes of one sender that the table holds, at everybody."""
    discard_delivered: bool = False
    """Whether receivers free messages when their application has taken them, instead of when they
    are stable. Saves memory, and lets survivors of a crash differ in its last messages."""

    def build(self, env: Env) -> NakAck3Layer:
        """The layer with these settings."""
        return NakAck3Layer(env, self)


class NakAck3Layer(ReliableMulticast):
    """Reliable multicast with a table that stability purges (ports.Table)."""

    def __init__(self, env: Env, spec: NakAck3) -> None:
        super().__init__(env, spec, keep=not spec.discard_delivered)
        self._rounds: Rounds | None = None
        self._highs: dict[Address, int] = {}
        """Per sender the highest seqno that anybody knew of in the last round."""

    def watch(self, rounds: Rounds) -> None:
        self._rounds = rounds

    @property
    def bounds(self) -> tuple[int, int]:
        return self.spec.capacity, self.spec.max_bytes

    def marks(self) -> Iterator[SenderMarks]:
        yield SenderMarks(self.env.me, self.sent.delivered, self.sent.high)
        for sender, window in self.windows.items():
            yield SenderMarks(sender, window.delivered, window.high)

    def stable(self, marks: Iterable[SenderMarks]) -> None:
        has_room = False
        for sender, delivered, high in marks:
            window = self.windows.get(sender)
            if window is not None:
                window.purge(delivered)
                self._expect(sender, window)
                self._highs[sender] = high
            elif sender == self.env.me:
                has_room = self._purge_sent(min(delivered, self.sent.delivered))
        # Everybody has voted in this view, so nobody asks for what came before it any more.
        self._departed.clear()
        if has_room:
            self.above.resume()

    def _expect(self, sender: Address, window: ReceiveWindow) -> None:
        """Ask for what existed a round ago and has not come since."""
        window.expect(self._highs.get(sender, 0))
        if self._aiming:
            window.expect(self._aims.get(sender, 0))
        if window.gaps:
            self._look(sender, window)

    # What the application takes ------------------------------------------------------------------

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        before = self._delivered(sender)
        super().deliver(sender, up_to, nbytes)
        count = self._delivered(sender) - before
        if count > 0 and self._rounds is not None:
            self._rounds.taken(count, nbytes)

    def _delivered(self, sender: Address) -> int:
        window = self.sent if sender == self.env.me else self.windows.get(sender)
        return 0 if window is None else window.delivered

    def _on_self_delivered(self) -> None:
        if self._alone and self._purge_sent(self.sent.delivered):
            self.above.resume()

    def _on_announced(self, sender: Address, window: ReceiveWindow) -> None:
        if self._rounds is not None:
            self._rounds.stirred()

    # Views ---------------------------------------------------------------------------------------

    def _on_members(self, installation: Installation) -> None:
        self._highs.clear()
        if self._alone:
            self._purge_sent(self.sent.delivered)

    def _forget_stable(self, window: ReceiveWindow, low: int) -> None:
        """Purge by a result that the sender has seen and this member perhaps has not."""
        if window.keep:
            window.purge(low)
