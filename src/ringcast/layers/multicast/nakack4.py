"""NAKACK4: a window of fixed size, and acks. Flow control is built in, and no stability protocol is
needed.

The sender waits while the window is full; a receiver drops what does not fit. A receiver acks what
its application has taken, at once after `ack_threshold` messages (or a quarter of the window's
bytes), else on the tick (`AckSender`). The sender keeps the highest ack per member (`AckMap`); when
the minimum rises, it purges, and sending continues.

Two bounds of bytes hold a sender back. `max_bytes` is what it keeps, and what a receiver may have
to hold behind a gap. `flight_bytes` is what may be in flight at once (`FlightControl`), so that a
burst does not overrun the receivers' socket buffers. A loss stops no sender while it is repaired,
unless the first bound is hit.

With `retain` receivers keep what they delivered until the sender says that all members have it:
then the survivors of a crash can give each other the sender's last messages, and all of them
deliver the same. Without it a receiver frees a message as soon as its application has it, and
survivors of a crash may differ in the crashed sender's last messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Receipt
from ringcast.core.stack.ports import (
    Brake,
    Flush,
    GroupDelivery,
    Numbering,
    SilenceListener,
    StableMarks,
)
from ringcast.core.stack.registry import protocol
from ringcast.core.wire.frames import Ack, Last
from ringcast.errors import ConfigError
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.group_windows import MulticastSnapshot
from ringcast.layers.multicast.settings import MulticastSpec

UNICAST_ANNOUNCEMENTS_MAX = 4
"""Up to this many members are sent an announcement each; for more it goes to the group."""


@protocol(
    role="multicast",
    under="flow",
    offers=(Flush, Numbering, GroupDelivery, Brake, StableMarks, SilenceListener),
)
@dataclass(frozen=True, kw_only=True)
class NakAck4(MulticastSpec):
    """Fixed windows and acks."""

    alike: ClassVar[tuple[str, ...]] = ("retain",)

    max_bytes: int = 16_000_000
    """Bytes that may be outstanding per sender: what it keeps until all members have it, and what a
    receiver may have to hold behind a gap."""
    flight_bytes: int = 4_000_000
    """Bytes that may be in flight at once, of all active senders together: what a burst may put
    into the receivers' socket buffers. More hides longer round trips, and is lost where buffers
    are small."""
    ack_threshold: int = 1_024
    """A receiver acks at once after this many delivered messages, at most a quarter of the
    capacity. Fewer acks cost less, and a sender with a small window waits longer."""
    retain: bool = True
    """Whether receivers keep messages until all members have them, so that survivors of a crash
    agree on the crashed sender's last messages. Costs up to a window of memory per sender."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ack_threshold < 1:
            raise ConfigError(f"NakAck4.ack_threshold is {self.ack_threshold}: give at least 1")
        if self.flight_bytes < 1:
            raise ConfigError(f"NakAck4.flight_bytes is {self.flight_bytes}: give at least 1")

    def build(self, env: Env) -> NakAck4Layer:
        """The layer with these settings."""
        return NakAck4Layer(env, self)


@dataclass(frozen=True, kw_only=True)
class NakAck4Snapshot(MulticastSnapshot):
    """The windows, the acks that they wait for, and what congestion control allows."""

    acks: Mapping[Address, int]
    """By member: the last of this member's messages that it has acked."""
    waits_for: tuple[Address, ...]
    """The members whose acks a full window waits for."""
    congestion_window: int
    """Bytes that may be in flight."""
    paced_rate: int
    """Bytes per second that may leave; 0 while there is no such bound."""


class NakAck4Layer(ReliableMulticast):
    """Reliable multicast with an ack map (ports.Brake)."""

    def __init__(self, env: Env, spec: NakAck4) -> None:
        super().__init__(env, spec, spec.retain, spec)
        self.acks = self._ack_map.acks
        self._on_delivered = self._ack_sender.on_delivered

    @property
    def _is_full(self) -> bool:
        return not self._flush.is_frozen and self.room(None)[0] <= 0

    def _announce_to(self) -> Sequence[Address] | None:
        """Where only whole messages are acked: the members whose ack is wanted, if they are few."""
        if self._tracker is None:
            return None
        below = self.sent.low + 1 if self._is_full else self.sent.high
        behind = self._ack_map.below(below, self.env.me)
        if not behind or len(behind) > UNICAST_ANNOUNCEMENTS_MAX:
            return None
        told = self._ack_map  # Released and excused members hear every tick.
        return [m for m in behind if m not in told.released and m not in told.excused]

    # Acks ----------------------------------------------------------------------------------------

    def _on_ack(self, frame: Ack, source: Address) -> None:
        if source not in self.windows:
            self.env.counters["dropped_foreign_ack"] += 1
            return
        delivered = frame.delivered
        if self._flight.on_arrived(source, delivered + frame.ahead):
            self.above.resume()
        self._on_taken(source, delivered)

    def acked(self, member: Address, up_to: int) -> None:
        """A member's application has taken the own messages up to here."""
        if member in self.acks and self._flight.on_arrived(member, up_to):
            self.above.resume()
        self._on_taken(member, up_to)

    def _on_taken(self, member: Address, up_to: int) -> None:
        known, high = self.acks.get(member, up_to), self.sent.high
        excused = self._ack_map.excused
        if excused and member in excused and known <= up_to <= high:
            del excused[member]
            self.env.counters["caught_up"] += 1
        if known < up_to <= high:
            self.acks[member] = up_to
            if self.env.tracer is not None:
                self.env.tracer.acked(member, up_to)
            if member in self._ack_map.released:
                self._take_back(member, up_to)
            self._purge_acked(known)

    def _on_self_delivered(self) -> None:
        known = self.acks.get(self.env.me)
        if known is not None and known < self.sent.delivered:
            self.acks[self.env.me] = self.sent.delivered
            self._purge_acked(known)

    def _purge_acked(self, risen_from: int) -> None:
        """Purge if the minimum has risen, which takes an ack that rose from it."""
        if risen_from <= self.sent.low and self._purge_sent(self._ack_map.minimum):
            self.above.resume()

    def acked_by_large(self, sender: Address, up_to: int) -> None:
        """This member has acked a whole large message of a sender that ends here."""
        self._ack_sender.acked_by_large(sender, up_to)

    def suppress_acks_until(self, sender: Address, up_to: int) -> None:
        """The ack of a whole large message will cover this sender's messages up to here."""
        self._ack_sender.suppress_until(sender, up_to)

    def _on_last(self, frame: Last, source: Address) -> None:
        super()._on_last(frame, source)
        self._ack_sender.on_last(frame, source)

    def _tick(self) -> None:
        super()._tick()
        for member in (*self._ack_map.released, *self._ack_map.excused):
            self.env.out.send(self._last_seqno.frame(), member)
            self._ticker.arm()

    # What is stable (ports.StableMarks) ----------------------------------------------------------

    rounds_done = 0

    def begin_round(self) -> int:
        """There is none to start: each sender learns by acks what all members have."""
        return 0

    def stable_seqnos(self) -> dict[Address, int]:
        """What all members have acked; of other senders what those have announced of it, which is
        known while messages are kept for other members (`retain`)."""
        known = {m: window.low for m, window in self.windows.items() if window.keep}
        return {self.env.me: self.sent.low, **known}

    def receipt(self) -> Receipt:
        mark, known, me = self.sent.high, self._ack_map, self.env.me
        return lambda: [m for m in known.below(mark, me) if m not in known.released]

    @property
    def waits_for(self) -> tuple[Address, ...]:
        """The members at the minimum: a sender with a full window waits for them."""
        return self._ack_map.waits_for(self.sent.high)

    # Members that are not waited for (ports.Brake, ports.Numbering) ------------------------------

    def positions(self) -> dict[Address, int]:
        """While the window is full: the acks of all members that are waited for."""
        if not self._is_full:
            return {}
        low, high = self.sent.low, self.sent.high
        # A receiver that has acked half of the window may have all of it, and suppress its acks
        # until a large message is whole.
        enough = high if self._tracker is None else (low + high) // 2
        return self._ack_map.positions(enough, high)

    def release(self, member: Address) -> None:
        """Free what only this member lacks, and announce what is left until it has caught up."""
        if member in self.acks and member != self.env.me and member not in self._ack_map.released:
            self._ack_map.released.add(member)
            self._ack_map.excused.pop(member, None)
            self.env.counters["released"] += 1
            self._ticker.arm()
            self._flight.on_released()
            self._purge_sent(self._ack_map.minimum)
            self.above.resume()

    def _take_back(self, member: Address, acked: int) -> None:
        """Wait for a member again that takes messages and does not only skip them, or has all."""
        if acked > self._last_seqno.announced_low or acked == self.sent.high:
            self._ack_map.released.discard(member)
            self._flight.on_released()
            self.env.counters["caught_up"] += 1

    def forget(self, up_to: int, without: Iterable[Address]) -> None:
        """Free the own messages up to here as soon as all members but these have them."""
        for member in without:
            known = self.acks.get(member, up_to)
            if known < up_to <= self.sent.high and member not in self._ack_map.released:
                self._ack_map.excused[member] = self.acks[member] = up_to
                self.env.counters["excused"] += 1
                self._flight.on_arrived(member, up_to)
                self._ticker.arm()
        if self._purge_sent(self._ack_map.minimum):
            self.above.resume()

    # Views ---------------------------------------------------------------------------------------

    def _on_members(self, installation: Installation) -> None:
        self._purge_sent(self._ack_map.minimum)

    def snapshot(self) -> NakAck4Snapshot:
        windows = super().snapshot()
        return NakAck4Snapshot(
            sent=windows.sent,
            windows=windows.windows,
            acks=dict(self.acks),
            waits_for=self.waits_for if self._is_full else (),
            congestion_window=self._flight.window,
            paced_rate=self._flight.paced_rate,
        )
