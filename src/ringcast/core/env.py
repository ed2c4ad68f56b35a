"""All that a part may touch: the time of this step, the dice, the timers, the outbox and the
counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ringcast.core.address import Address, Peer
from ringcast.core.landing import Landing
from ringcast.core.outbox import Outbox
from ringcast.core.rooms import NoRooms, Rooms
from ringcast.core.tap import Tap
from ringcast.core.timers import Timers

if TYPE_CHECKING:
    from ringcast.core.events import Event
    from ringcast.core.part import Part


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
        "clock_offset",
        "counters",
        "landing",
        "me",
        "mtu",
        "now",
        "out",
        "peer",
        "rng",
        "rooms",
        "tap",
        "timers",
        "witness",
    )

    def __init__(self, peer: Peer, rng: Dice, clock_offset: float = 0.0, mtu: int = 60_000) -> None:
        self.peer = peer
        self.me: Address = peer.address
        self.rng = rng
        self.now = 0.0
        """Seconds since some start, never going back."""
        self.clock_offset = clock_offset
        """What to add to `now` for the time of day."""
        self.mtu = mtu
        """The largest datagram that carries messages, in bytes."""
        self.rooms: Rooms = NoRooms()
        """Who lends memory for large messages."""
        self.landing = Landing()
        """Where the next fragment belongs, for whoever reads datagrams."""
        self.timers: Timers[Part] = Timers()
        self.out = Outbox()
        self.counters: Counter[str] = Counter()
        self.tap: Tap | None = None
        """Who listens to what the protocols do, if anybody does."""
        self.witness: Callable[[Event], None] | None = None
        """Who is told at once of all events but messages, before the application takes them."""

    @property
    def clock(self) -> int:
        """The time of day in microseconds, for stamps that others read."""
        return int((self.now + self.clock_offset) * 1e6)
