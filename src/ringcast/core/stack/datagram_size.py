"""The largest datagram that this member sends: the least of what it, its view and its paths take.

All sizes are bytes of UDP payload as they travel, with the seal of a closed group.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Peer

BASE_SIZE = 1_200
"""What every path is believed to carry: BASE_PLPMTU of RFC 8899."""
SIZE_MIN = 512
"""The least size that is ever used."""


class DatagramSize:
    """Three bounds and their least."""

    __slots__ = ("is_given", "is_refused", "own", "path", "view")

    def __init__(self, own: int, is_given: bool) -> None:
        self.own = own
        """What this member was told, or what fits a packet of its interface."""
        self.is_given = is_given
        """Whether the user gave the number: then no probe changes it."""
        self.view = own
        """What every member of the view takes, up to `own`."""
        self.path: int | None = None
        """What arrives at every member, where that is less."""
        self.is_refused = False
        """Whether the kernel refuses datagrams above `path`."""

    def __str__(self) -> str:
        return f"{self.size:,} bytes ({self.source})"

    @property
    def size(self) -> int:
        """The least of the bounds."""
        return self.view if self.path is None else min(self.view, self.path)

    @property
    def source(self) -> str:
        """Where the size comes from: "user", "interface", "view" or "probe"."""
        if self.path is not None and self.path < self.view:
            return "interface" if self.is_refused else "probe"
        if self.view < self.own:
            return "view"
        return "user" if self.is_given else "interface"

    def fit(self, peers: Iterable[Peer]) -> None:
        """Take the least of what these members take."""
        told = [max(SIZE_MIN, peer.mtu) for peer in peers if peer.mtu]
        self.view = min(self.own, *told) if told else self.own
        assert SIZE_MIN <= self.view <= self.own
