"""The outbox: frames that a step wants to have sent, in order, until the wire layer makes datagrams
of them."""

from __future__ import annotations

from typing import NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.wire.frames import Frame

Target = Address | str | None
"""A member, an endpoint that the transport can reach (a seed), or None for everybody in the
group."""


MTU = 60_000
"""The largest datagram, in bytes, where neither the stack nor the transport says anything else."""
GATHER_SIZE = 2_048
"""Buffers below this size on average are joined, and larger ones sent by scatter/gather: copying
them once more costs less than an entry each for the kernel."""


class Datagram(NamedTuple):
    """What a transport sends: buffers for scatter/gather, `nbytes` in all."""

    target: Target
    buffers: list[Payload]
    nbytes: int


class Outbox:
    """Frames in the order in which they are to leave."""

    __slots__ = ("frames", "learned")

    def __init__(self) -> None:
        self.frames: list[tuple[Target, Frame]] = []
        self.learned: list[Peer] = []
        """Members that the transport should know how to reach, before it sends the frames."""

    def send(self, frame: Frame, to: Target = None) -> None:
        """Send a frame to a member, to an endpoint, or to everybody."""
        self.frames.append((to, frame))

    def learn(self, peer: Peer) -> None:
        """Tell the transport where a member is."""
        self.learned.append(peer)
