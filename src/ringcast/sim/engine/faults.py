"""Faults that are not chance: frames that a rule drops, spoilt datagrams, partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from ringcast.core.model.ranges import RangeSet
from ringcast.core.wire.codec import decode, encode
from ringcast.core.wire.frames import (
    Ack,
    Data,
    Frame,
    Last,
    Nak,
    UnicastAck,
    UnicastData,
    UnicastLast,
    UnicastNak,
)
from ringcast.core.wire.packed import peek
from ringcast.errors import LocalError, RemoteError


@dataclass(frozen=True, slots=True)
class FrameInFlight:
    """A frame on its way to one receiver, as a drop rule sees it."""

    source: str
    """The name of the member that sent it."""
    target: str
    """The name of the member that it is about to reach."""
    kind: str
    """The frame's name: DATA, ACK, NAK, LAST, VIEW …"""
    seqnos: range | RangeSet
    """The messages that it carries (DATA), asks for (NAK), or names as the last (ACK, LAST)."""
    frame: Frame


Rule = Callable[[FrameInFlight], bool]


class Drop:
    """A rule in force; `remove` ends it."""

    def __init__(self, rule: Rule, rules: list[Drop]) -> None:
        self.rule = rule
        self.count = 0
        """How many frames it has dropped."""
        self._rules = rules
        rules.append(self)

    def remove(self) -> None:
        """Let frames pass again; doing it twice is harmless."""
        if self in self._rules:
            self._rules.remove(self)


class Parcel:
    """One datagram as it left a member; all its receivers share it."""

    __slots__ = ("_frames", "_inner", "data", "group", "is_multicast", "number", "source")

    def __init__(
        self,
        number: int,
        source: str,
        group: int,
        data: bytes,
        inner: bytes | None = None,
        is_multicast: bool = False,
    ) -> None:
        """inner: what a sealed datagram holds."""
        self.number = number
        """The number of this datagram in the world, counted from its start."""
        self.source = source
        self.group = group
        self.data = data
        self.is_multicast = is_multicast
        """Whether it goes to all members."""
        self._inner = data if inner is None else inner
        self._frames: list[Frame] | None = None

    @property
    def frames(self) -> list[Frame]:
        """What is in it, parsed when first asked for; nothing when it is garbage."""
        if self._frames is None:
            self._frames = _frames(self._inner, self.group)
        return self._frames

    def without(self, lost: Iterable[Frame]) -> bytes:
        """The datagram anew, without these frames; of a sealed or a packed one nothing is left."""
        if self._inner is not self.data or peek(self.data, self.group) is not None:
            return b""
        source, frames = decode(self.data, self.group)
        gone = {id(frame) for frame in lost}
        kept = [
            fresh for fresh, frame in zip(frames, self.frames, strict=True) if id(frame) not in gone
        ]
        return b"".join(encode(self.group, source, kept)) if kept else b""


def _frames(data: bytes, group: int) -> list[Frame]:
    """What is in a datagram; nothing when it is garbage."""
    packed = peek(data, group)
    if packed is not None:
        return [packed]
    try:
        return decode(data, group)[1]
    except RemoteError:
        return []


def dropped(parcel: Parcel, target: str, rules: Sequence[Drop]) -> list[Frame]:
    """The frames of a datagram that rules keep from this receiver."""
    lost: list[Frame] = []
    for frame in parcel.frames:
        sighting = FrameInFlight(parcel.source, target, frame.kind, seqnos(frame), frame)
        for drop in rules:
            if drop.rule(sighting):
                drop.count += 1
                lost.append(frame)
                break
    return lost


def seqnos(frame: Frame) -> range | RangeSet:
    """The sequence numbers that a frame is about."""
    match frame:
        case Data() | UnicastData():
            return range(frame.first, frame.first + len(frame.payloads))
        case Nak() | UnicastNak():
            return frame.ranges
        case Ack() | UnicastAck():
            return range(frame.delivered, frame.delivered + 1)
        case Last() | UnicastLast():
            return range(frame.high, frame.high + 1)
        case _:
            return range(0)


def spoil(data: bytes, group: int, rng: Random) -> bytes | None:
    """The datagram with a bit turned, its end cut off, or bytes behind it.

    None when nothing above the kernel would see the damage: a payload that our checksum does not
    cover is covered by that of UDP, so the kernel drops the datagram.
    """
    spoilt = bytearray(data)
    match rng.randrange(4) if spoilt else 1:
        case 0:
            del spoilt[rng.randrange(len(spoilt)) :]
        case 1:
            spoilt += rng.randbytes(rng.randint(1, 64))
        case _:
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return None if _frames(bytes(spoilt), group) else bytes(spoilt)


class Partitions:
    """Which members are cut off from which others."""

    def __init__(self) -> None:
        self._sides: dict[str, int] = {}

    def split(self, sides: Sequence[Iterable[str]]) -> None:
        """Cut these groups off from each other; members in none of them are one more group."""
        found: dict[str, int] = {}
        for number, side in enumerate(sides):
            for name in side:
                if name in found:
                    raise LocalError(f"{name} is on two sides of the partition: name it once")
                found[name] = number
        self._sides = found

    def heal(self) -> None:
        """All members reach each other again."""
        self._sides = {}

    def __bool__(self) -> bool:
        return bool(self._sides)

    def side(self, name: str) -> int:
        """The number of the side that a member is on."""
        return self._sides.get(name, -1)
