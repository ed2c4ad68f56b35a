"""The simulated network: which copies of a datagram arrive at a receiver, and when.

Links are directed, one per pair. By default they keep order, whatever the delay; `reorder` is the
chance that a datagram is held back and overtaken. All chance comes from the one generator of the
world, and is only drawn where a setting asks for it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from random import Random

from ringcast.core.frames import Frame
from ringcast.errors import ConfigError
from ringcast.sim.faults import Drop, Parcel, Partitions, dropped, spoil

SEND_BUFFER = 4 << 20
"""Bytes that wait for a slow link before the kernel throws away what is sent."""
RECEIVE_BUFFER = 4 << 20
"""Bytes that wait in the socket of a paused member before the kernel throws away what arrives."""
HOLD = 3.0
"""A datagram that is reordered takes up to so many times the longest delay more."""


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

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, _checked(name, value))


def _checked(name: str, value: object) -> object:
    """The value of a link's setting; ConfigError when it makes no sense."""
    if name == "delay":
        if isinstance(value, int | float):
            value = (float(value), float(value))
        if not (isinstance(value, tuple) and len(value) == 2 and _is_span(*value)):
            raise ConfigError(f"delay is {value}: give (shortest, longest) in seconds")
    elif not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ConfigError(f"{name} is {value}: give a chance from 0 to 1")
    return value


def parse_delay(text: str) -> tuple[float, float]:
    """The delay that "0.001-0.005" or "0.001" means, in seconds. Raises ConfigError."""
    # The minus of an exponent, as in 1e-05, is no dash.
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


class Network:
    """All links of a world."""

    def __init__(self, rng: Random, link: Link, bandwidth: float | None) -> None:
        if bandwidth is not None and not 0 < bandwidth < math.inf:
            raise ConfigError(
                f"bandwidth is {bandwidth}: give bytes per second, or None for no limit"
            )
        self.default = link
        self.bandwidth = bandwidth
        self.partitions = Partitions()
        self.rules: list[Drop] = []
        self._rng = rng
        self._links: dict[tuple[str, str], Link] = {}
        self._free_at: dict[str, float] = {}
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
        """Forget the settings of single links, the partition and the rules."""
        self._links.clear()
        self.partitions.heal()
        self.rules.clear()

    def departure(self, source: str, nbytes: int, now: float) -> float | None:
        """When a datagram has left its sender; None when the sender's queue is full."""
        if self.bandwidth is None:
            return now
        start = max(now, self._free_at.get(source, 0.0))
        if (start - now) * self.bandwidth > SEND_BUFFER:
            return None
        self._free_at[source] = start + nbytes / self.bandwidth
        return self._free_at[source]

    def carry(self, parcel: Parcel, target: str, departure: float) -> Fate:
        """What becomes of a datagram that leaves its sender at this time for this receiver."""
        pair = (parcel.source, target)
        if self.partitions and self.partitions.side(pair[0]) != self.partitions.side(pair[1]):
            return CUT_OFF
        link = self._links.get(pair, self.default) if self._links else self.default
        if link.loss and self._rng.random() < link.loss:
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


def link_settings() -> tuple[str, ...]:
    """The names of a link's settings."""
    return tuple(field.name for field in fields(Link))
