"""The simulated network: which copies of a datagram arrive at a receiver, and when.

Links are directed, one per pair. By default they keep order, whatever the delay; `reorder` is the
chance that a datagram is held back and overtaken. Before the link a datagram passes the switch
(see `ports`), where it takes its turn and may find a full queue. All chance comes from the one
generator of the world, and is only drawn where a setting asks for it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from random import Random

from ringcast.core.wire.frames import Frame
from ringcast.errors import ConfigError
from ringcast.sim.engine.faults import Drop, Parcel, Partitions, dropped, spoil
from ringcast.sim.engine.ports import Switch

RECEIVE_BUFFER = 4 << 20
"""Bytes that wait in the socket of a paused member before the kernel throws away what arrives."""
HOLD = 3.0
"""A datagram that is reordered takes up to this many times the longest delay more."""
MTU = 1_500
"""Bytes of a packet on Ethernet."""


@dataclass(slots=True)
class Link:
    """How one direction between two members behaves."""

    loss: float = 0.0
    """The chance that a datagram does not arrive."""
    delay: tuple[float, float] = (0.0001, 0.0005)
    """The shortest and the longest time that a datagram takes, in seconds."""
    duplicate: float = 0.0
    """The chance that a datagram arrives twice."""
    reorder: float = 0.0
    """The chance that a datagram is held back, so that later ones overtake it."""
    corrupt: float = 0.0
    """The chance that a datagram is damaged on its way."""
    packet_loss: float = 0.0
    """The chance that a packet does not arrive: a datagram of many packets is lost more often."""
    mtu: int = MTU
    """Bytes of a packet; a larger datagram is cut into several, and is lost with any of them."""
    multicast_loss: float = 0.0
    """The chance that a datagram to all members does not arrive: multicast may end on a path that
    unicast still passes."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, _checked(name, value))


def _checked(name: str, value: object) -> object:
    """The value of a link's setting; ConfigError when it makes no sense."""
    if name == "delay":
        if isinstance(value, int | float):
            value = (float(value), float(value))
        if not (isinstance(value, tuple) and len(value) == 2 and _is_span(*value)):
            raise ConfigError(f"delay is {value}: give (shortest, longest) in seconds")
    elif name == "mtu":
        if not (isinstance(value, int | float) and 1 <= value < math.inf):
            raise ConfigError(f"mtu is {value}: give bytes of a packet, say {MTU}")
    elif not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ConfigError(f"{name} is {value}: give a chance from 0 to 1")
    return value


def parse_delay(text: str) -> tuple[float, float]:
    """The delay that "0.001-0.005" or "0.001" means, in seconds. Raises ConfigError."""
    # The minus of an exponent, as in 1e-05, is not a dash.
    ends = re.split(r"(?<![eE])-", text.strip())
    try:
        low, high = float(ends[0]), float(ends[-1])
    except ValueError:
        low, high = 1.0, 0.0
    if len(ends) > 2 or not _is_span(low, high):
        raise ConfigError(f'delay is "{text}": give seconds, "0.001", or from-to, "0.001-0.005"')
    return low, high


def _is_span(low: float, high: float) -> bool:
    return 0 <= low <= high < math.inf


@dataclass(frozen=True, slots=True)
class Arrival:
    """A datagram that will arrive."""

    time: float
    data: bytes


@dataclass(slots=True)
class Fate:
    """What becomes of one datagram on its way to one receiver."""

    arrivals: tuple[Arrival, ...] = ()
    reason: str = ""
    """Empty, or why it does not arrive as it was sent: "lost", "cut off", "dropped" …"""
    lost: tuple[Frame, ...] = ()
    """The frames that a rule took out; the rest arrives."""


CUT_OFF = Fate(reason="cut off")
LOST = Fate(reason="lost")
QUEUE_FULL = Fate(reason="queue full")
TOO_LARGE = Fate(reason="too large")


class Network:
    """All links of a world."""

    def __init__(self, rng: Random, link: Link, switch: Switch, fragment: bool = True) -> None:
        self.default = link
        self.switch = switch
        self.fragment = fragment
        """Whether datagrams above the MTU are cut into packets; else they vanish."""
        self.partitions = Partitions()
        self.rules: list[Drop] = []
        self._rng = rng
        self._links: dict[tuple[str, str], Link] = {}
        self._last_arrival: dict[tuple[str, str], float] = {}

    def link(self, source: str, target: str) -> Link:
        """The link from source to target, to be set apart from all others."""
        pair = (source, target)
        if pair not in self._links:
            self._links[pair] = replace(self.default)
        return self._links[pair]

    def set_all(self, name: str, value: object) -> None:
        """Give one setting of every link a new value."""
        for link in (self.default, *self._links.values()):
            setattr(link, name, value)

    def reset(self) -> None:
        """Make every link as good as it can be: no faults, no limits, no rules."""
        self.default = Link()
        self.switch.open()
        self.fragment = True
        self._links.clear()
        self.partitions.heal()
        self.rules.clear()

    def reaches(self, source: str, target: str) -> bool:
        """Whether no partition is between two members."""
        return self.partitions.side(source) == self.partitions.side(target)

    def carry(self, parcel: Parcel, target: str, departure: float, now: float) -> Fate:
        """What becomes of a datagram that is sent now, and leaves the switch's shared link at
        `departure`, on its way to this receiver."""
        pair = (parcel.source, target)
        if self.partitions and not self.reaches(*pair):
            return CUT_OFF
        link = self._links.get(pair, self.default) if self._links else self.default
        if not self.fragment and len(parcel.data) > link.mtu:
            return TOO_LARGE
        left = self.switch.received(target, len(parcel.data), departure, now)
        if left is None:
            return QUEUE_FULL
        departure = left
        if link.loss and self._rng.random() < link.loss:
            return LOST
        if link.multicast_loss and parcel.is_multicast and self._rng.random() < link.multicast_loss:
            return LOST
        if link.packet_loss and self._rng.random() < _loss(link, len(parcel.data)):
            return LOST
        lost: tuple[Frame, ...] = ()
        data = parcel.data
        if self.rules and (taken := dropped(parcel, target, self.rules)):
            lost, data = tuple(taken), parcel.without(taken)
            if not data:
                return Fate(reason="dropped", lost=lost)
        if link.corrupt and self._rng.random() < link.corrupt:
            return self._damaged(pair, link, data, parcel.group, departure)
        copies = 1
        if link.duplicate and self._rng.random() < link.duplicate:
            copies = 2
        arrivals = tuple(
            [Arrival(self._arrival(pair, link, departure), data) for _ in range(copies)]
        )
        return Fate(arrivals, "dropped" if lost else "", lost)

    def _damaged(
        self, pair: tuple[str, str], link: Link, data: bytes, group: int, departure: float
    ) -> Fate:
        spoilt = spoil(data, group, self._rng)
        if spoilt is None:
            return LOST
        return Fate((Arrival(self._arrival(pair, link, departure), spoilt),), "damaged")

    def _arrival(self, pair: tuple[str, str], link: Link, departure: float) -> float:
        shortest, longest = link.delay
        time = departure + shortest
        if longest > shortest:
            time += (longest - shortest) * self._rng.random()
        if link.reorder and self._rng.random() < link.reorder:
            return time + HOLD * longest * self._rng.random()
        if longest > shortest:
            time = self._last_arrival[pair] = max(time, self._last_arrival.get(pair, 0.0))
        return time


def _loss(link: Link, nbytes: int) -> float:
    """The chance that one of a datagram's packets is lost."""
    packets = max(1, math.ceil(nbytes / link.mtu))
    return float(1 - (1 - link.packet_loss) ** packets)
