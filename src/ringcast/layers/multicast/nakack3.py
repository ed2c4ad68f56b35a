"""NAKACK3: one retransmission table per sender, kept until stable.

Sent, received and delivered messages lie in one table with three marks: low, up to where all
members have delivered; delivered, up to where the own application has taken; high, the last that is
known to exist. Delivery only moves a mark; delivered messages stay, so that any member can give
them to another when their sender has crashed. Stability frees messages: the members vote how far
they are, and the minimum is purged everywhere. Acks say what has arrived, for congestion control
only, and flow control is another layer's work; the table is bounded all the same, and at its bound
the sender waits for a round.

With `discard_delivered` a receiver frees a message as soon as its application has it. Then the
survivors of a crash may differ in the crashed sender's last messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Receipt
from ringcast.core.stack.ports import (
    Flush,
    GroupDelivery,
    Numbering,
    Rounds,
    SilenceListener,
    Table,
)
from ringcast.core.stack.registry import protocol
from ringcast.core.wire.frames import SenderMarks
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.settings import MulticastSpec

FLIGHT_BYTES = 4_000_000
"""Bytes that may be in flight at once, of all active senders together."""


@protocol(
    role="multicast",
    under="flow",
    offers=(Flush, Numbering, GroupDelivery, Table, SilenceListener),
    needs={Rounds: "rounds of stability that purge its table"},
)
@dataclass(frozen=True, kw_only=True)
class NakAck3(MulticastSpec):
    """One table per sender, purged by stability."""

    alike: ClassVar[tuple[str, ...]] = ("discard_delivered",)

    capacity: int = 65_536
    """Messages of one sender that the table holds; at this bound the sender waits for the next
    round of stability. A round should free far less than this, or senders stop and go."""
    max_bytes: int = 64_000_000
    """Bytes of one sender that the table holds, at every member."""
    discard_delivered: bool = False
    """Whether receivers free messages when their application has taken them, instead of when they
    are stable. Saves memory, and lets survivors of a crash differ in its last messages."""

    def build(self, env: Env) -> NakAck3Layer:
        """The layer with these settings."""
        return NakAck3Layer(env, self)


class _AckBounds(NamedTuple):
    """What acks of arrivals depend on (AckSpec)."""

    capacity: int
    max_bytes: int
    flight_bytes: int
    ack_threshold: int = 1


class NakAck3Layer(ReliableMulticast):
    """Reliable multicast with a table that stability purges (ports.Table)."""

    def __init__(self, env: Env, spec: NakAck3) -> None:
        acks = _AckBounds(spec.capacity, spec.max_bytes, min(FLIGHT_BYTES, spec.max_bytes))
        super().__init__(env, spec, not spec.discard_delivered, acks)
        self._rounds: Rounds | None = None
        self._highs: dict[Address, int] = {}
        """Per sender the highest seqno that any member knew of in the last round."""

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
                self._expect_known(sender, window)
                self._highs[sender] = high
            elif sender == self.env.me:
                has_room = self._purge_sent(min(delivered, self.sent.delivered))
        # All members have voted in this view, so none lacks a message of an earlier one.
        self._group.departed.clear()
        if has_room:
            self.above.resume()

    def _expect_known(self, sender: Address, window: ReceiveWindow) -> None:
        """Request what existed a round ago and has not arrived since."""
        window.expect(self._highs.get(sender, 0))
        if self._flush.is_aiming:
            window.expect(self._flush.aims.get(sender, 0))
        if window.gaps:
            self._gaps.note(sender, window)

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
        if self._group.is_alone and self._purge_sent(self.sent.delivered):
            self.above.resume()

    def _on_announced(self, sender: Address) -> None:
        super()._on_announced(sender)
        if self._rounds is not None:
            self._rounds.stirred()

    def receipt(self) -> Receipt:
        mark = self.sent.high
        return lambda: self._lacking(mark)

    def _lacking(self, mark: int) -> list[Address]:
        """None once this is stable; before that only the coordinator knows the member."""
        if self.sent.low >= mark or not self.windows:
            return []
        return [*self.windows] if self.sent.delivered >= mark else [self.env.me]

    # Views ---------------------------------------------------------------------------------------

    def _on_members(self, installation: Installation) -> None:
        self._highs.clear()
        if self._group.is_alone:
            self._purge_sent(self.sent.delivered)
