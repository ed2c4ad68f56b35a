"""The outbox: frames that a step wants to have sent, in order, until the wire layer makes datagrams
of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.wire.frames import Data, Frame

Target = Address | str | None
"""A member, an endpoint that the transport can reach (a seed), or None for all members in the
group."""


MTU = 60_000
"""The largest datagram, in bytes, where neither the stack nor the transport says anything else."""
GATHER_SIZE = 2_048
"""Buffers below this size on average are joined, and larger ones sent by scatter/gather: copying
them once more costs less than an entry each for the kernel."""


TRAIN_MAX = 65_000
"""Bytes of a train, for one system call; with its headers, an IP packet has up to 65,535."""
TRAIN_SEGMENTS_MAX = 64
"""Datagrams in a train."""


class Datagram(NamedTuple):
    """What a transport sends: buffers for scatter/gather, `nbytes` in all."""

    target: Target
    buffers: list[Payload]
    nbytes: int
    segment: int = 0
    """Above 0 it is a train: datagrams of this size one after the other, the last one of which may
    be shorter, in one buffer."""


def without_trains(datagrams: Iterable[Datagram]) -> Iterator[Datagram]:
    """The datagrams, those of a train each by itself."""
    for datagram in datagrams:
        if not datagram.segment:
            yield datagram
            continue
        (train,), size = datagram.buffers, datagram.segment
        assert 0 < size < datagram.nbytes == len(train)
        for at in range(0, datagram.nbytes, size):
            one = train[at : at + size]
            yield Datagram(datagram.target, [one], len(one))


@dataclass(slots=True)
class PackedPart(Frame):
    """Datagrams of a packed run that are sent again; they are read as datagrams of their run."""

    code = Data.code
    kind = Data.kind
    head: bytes
    """What all datagrams of the run begin with."""
    payloads: Sequence[Payload]
    """The messages that they touch."""
    position: int
    """Where their bytes begin in the stream of the run."""
    nbytes: int
    size: int
    """Bytes of each message."""
    step: int
    """Bytes of each datagram."""


class Outbox:
    """Frames in the order in which they are to leave."""

    __slots__ = ("again", "frames", "is_packing", "learned", "train_bytes")

    def __init__(self) -> None:
        self.frames: list[tuple[Target, Frame]] = []
        self.again: Callable[[Data, Target], list[Data | PackedPart]] = _whole
        """What sends messages again; the wire layer knows in which datagrams they were."""
        self.is_packing = False
        """Whether the last messages to the group lie across datagrams, so that a lost datagram
        spoils messages of which its neighbours have a part."""
        self.train_bytes = TRAIN_MAX
        """Bytes that may leave in one system call."""
        self.learned: list[Peer] = []
        """Members that the transport should know how to reach, before it sends the frames."""

    def send(self, frame: Frame, to: Target = None) -> None:
        """Send a frame to a member, to an endpoint, or to all members."""
        self.frames.append((to, frame))

    def send_again(self, run: Data, to: Target = None) -> int:
        """Send messages again; how many bytes of messages that takes."""
        frames = self.again(run, to)
        self.frames += [(to, frame) for frame in frames]
        return sum([frame.nbytes for frame in frames])

    def learn(self, peer: Peer) -> None:
        """Tell the transport where a member is."""
        self.learned.append(peer)


def _whole(run: Data, to: Target) -> list[Data | PackedPart]:
    return [run]
