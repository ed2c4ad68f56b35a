"""Where members are, in a group over UDP: what views, processes outside and datagrams say of it."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Sequence

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.codec import source_of
from ringcast.core.wire.segments import Segments
from ringcast.runtime.net.connection import SOURCE
from ringcast.runtime.net.endpoints import KnownPlaces, Resolver, SocketAddress, Unresolved

SOURCES_MAX = 4_096
"""Sources that are remembered, and endpoints of places."""


class UdpPlaces:
    """Where members and processes outside the view are reached."""

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self.peers = KnownPlaces[SocketAddress]()
        self._unresolved = Unresolved()
        self.is_closed = False
        """Whether the group is closed: then datagrams may be anybody's, and nothing is learned of
        where they come from."""
        self.sources: dict[SocketAddress, bytes] = {}
        """By place: the sender that the last datagram from there has named."""
        self.endpoints: dict[SocketAddress, str] = {}
        """What members at each place say that their endpoint is."""

    def open(self, family: socket.AddressFamily) -> None:
        """Resolve names to addresses of this family."""
        self._resolver, self._claimed = Resolver(family), Resolver(family)

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is; a process outside the view is answered where its datagrams
        come from, so that it cannot have answers sent to others."""
        if is_claim and self.peers.is_heard(peer.address):
            return
        addresses = (self._claimed if is_claim else self._resolver).lookup(peer.endpoint)
        if addresses:
            self.peers.put(peer.address, addresses[0], is_claim)
            if len(self.endpoints) >= SOURCES_MAX:
                self.endpoints.clear()
            self.endpoints[addresses[0]] = peer.endpoint
        else:
            self._unresolved.put(peer, is_claim)

    def all_of(self, members: Sequence[Address]) -> Sequence[SocketAddress]:
        """Where these members are, as far as it is known."""
        known = self.peers
        return [place for member in members if (place := known.get(member)) is not None]

    def find(self, target: Address | str) -> Sequence[SocketAddress]:
        """Where a member is, or the process at an endpoint; empty while that is not known."""
        if isinstance(target, str):
            return self._resolver.lookup(target)
        place = self.peers.get(target)
        if place is None and (unresolved := self._unresolved.pop(target)) is not None:
            self.learn(*unresolved)
            place = self.peers.get(target)
        if place is None:
            self._counters["dropped_unknown_target"] += 1
            self.sources.clear()  # So that it is learned when it is heard again.
            return ()
        return (place,)

    def hear(self, data: bytes | memoryview, source: SocketAddress) -> None:
        """A datagram from a new source, or one that names another sender than the last."""
        address = None if self.is_closed else source_of(data)
        if address is None:
            return  # In a closed group, who is where is read from sealed frames only.
        if len(self.sources) >= SOURCES_MAX:
            self.sources.clear()
        self.sources[source] = bytes(data[SOURCE])
        self.peers.hear(address, source)

    def hear_segments(self, segments: Segments, source: SocketAddress) -> None:
        """Each of a stranger's segments may name another sender; those of a member do not."""
        first = source_of(segments.data)
        if first is None or self.peers.member(first) != source:
            for segment in segments:
                if self.sources.get(source) != segment[SOURCE]:
                    self.hear(segment, source)
