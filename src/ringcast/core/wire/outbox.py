"""The outbox: frames that a step wants to have sent, in order, until the wire layer makes datagrams
of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.wire.frames import Frame

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


class Outbox:
    """Frames in the order in which they are to leave."""

    __slots__ = ("frames", "learned")

    def __init__(self) -> None:
        self.frames: list[tuple[Target, Frame]] = []
        self.learned: list[Peer] = []
        """Members that the transport should know how to reach, before it sends the frames."""

    def send(self, frame: Frame, to: Target = None) -> None:
        """Send a frame to a member, to an endpoint, or to all members."""
        self.frames.append((to, frame))

    def learn(self, peer: Peer) -> None:
        """Tell the transport where a member is."""
        self.learned.append(peer)
