"""All that a part may touch: the time of this step, the dice, the timers, the outbox and the
counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.buffers import Buffers, NoBuffers
from ringcast.core.stack.datagram_size import DatagramSize
from ringcast.core.stack.timers import Timers
from ringcast.core.stack.tracer import Tracer
from ringcast.core.wire.outbox import MTU, Outbox
from ringcast.core.wire.seal import Seal

PACKET_BYTES_MAX = 10_000
"""Larger datagrams are no packets of a network: they stay on the machine, or TCP carries them."""

if TYPE_CHECKING:
    from ringcast.core.model.events import Notice
    from ringcast.core.stack.part import Part


class Dice(Protocol):
    """Chance, handed in so that a seed decides it; `random.Random` fits."""

    def random(self) -> float:
        """A number from 0 up to, but not including, 1."""
        ...

    def uniform(self, a: float, b: float, /) -> float:
        """A number between a and b."""
        ...

    def getrandbits(self, k: int, /) -> int:
        """A number of k bits."""
        ...


class Env:
    """The world of one member, as its parts see it; `now` stands still during a step."""

    __slots__ = (
        "buffers",
        "clock_offset",
        "counters",
        "datagram_size",
        "fingerprint",
        "listener",
        "me",
        "mtu",
        "now",
        "out",
        "peer",
        "rng",
        "seal",
        "sends_packets",
        "sends_trains",
        "timers",
        "tracer",
    )

    def __init__(
        self,
        peer: Peer,
        rng: Dice,
        clock_offset: float = 0.0,
        mtu: int = MTU,
        seal: Seal | None = None,
    ) -> None:
        self.peer = peer
        self.me: Address = peer.address
        self.rng = rng
        self.now = 0.0
        """Seconds since some start, never going back."""
        self.clock_offset = clock_offset
        """What to add to `now` for the time of day."""
        self.resize(mtu)
        self.datagram_size = DatagramSize(mtu, is_given=False)
        """Where that number comes from; the wire sets it."""
        self.seal = seal
        """Seals what leaves and opens what arrives, in a closed group."""
        self.buffers: Buffers = NoBuffers()
        """Lends memory for large messages."""
        self.sends_trains = False
        """Whether the transport sends datagrams of one size as one buffer; its owner sets it."""
        self.timers: Timers[Part] = Timers()
        self.out = Outbox()
        self.counters: Counter[str] = Counter()
        self.fingerprint = ""
        """What all members of the group need to have alike; see `fingerprint`."""
        self.tracer: Tracer | None = None
        """Hears what the protocols do; None where nothing is traced."""
        self.listener: Callable[[Notice], None] | None = None
        """Is told at once of all events but messages, before the application takes them."""

    def resize(self, mtu: int) -> None:
        """Set the bytes of the largest datagram without its seal: the transport's, until the wire
        has set another; it may change, see `Part.on_resize`."""
        self.mtu = mtu
        self.sends_packets = mtu <= PACKET_BYTES_MAX
        """Whether datagrams are packets of a network, whose paths may be congested."""

    @property
    def clock(self) -> int:
        """The time of day in microseconds, for stamps that others read."""
        return int((self.now + self.clock_offset) * 1e6)
