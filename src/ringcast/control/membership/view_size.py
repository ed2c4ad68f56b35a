"""How large a view may become: as large as the frame that every member has to be able to read.

A view that cannot be sent, or that no member reads, would stop a group for good. So a coordinator
turns joiners away that do not fit, and leaves groups out of a merge.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Peer

MEMBERS_MAX = 1_024
"""Members of a view."""
PEER_BYTES_MAX = 196_608
"""Bytes of all peers of a view, with what a VIEW says of each; the rest of the frame is for the
endings of leavers."""
GROUPS_MAX = 32
"""Other groups that one merge takes in; further ones are found again afterwards."""
FULL = "the group is full: a view has up to {count:,} members, and {nbytes:,} bytes about them"
PEER_BYTES = 48
"""Bytes that a VIEW and a MERGE_READY say of a peer besides its name and endpoint."""


class ViewSize:
    """How much of a view's room is taken. The ending of a member that is gone counts as a member
    without a name."""

    __slots__ = ("_members", "_nbytes")

    def __init__(self, peers: Iterable[Peer], endings: int = 0) -> None:
        """peers: those that are in the view in any case."""
        self._members, self._nbytes = _cost(peers, endings)

    def takes(self, peers: Iterable[Peer], endings: int = 0) -> bool:
        """Whether these fit as well, all of them; they are counted then."""
        count, size = _cost(peers, endings)
        members, nbytes = self._members + count, self._nbytes + size
        if members > MEMBERS_MAX or nbytes > PEER_BYTES_MAX:
            return False
        self._members, self._nbytes = members, nbytes
        return True


def full() -> str:
    """Why a joiner is turned away."""
    return FULL.format(count=MEMBERS_MAX, nbytes=PEER_BYTES_MAX)


def _cost(peers: Iterable[Peer], endings: int) -> tuple[int, int]:
    """Members and bytes."""
    texts = [len(peer.name.encode()) + len(peer.endpoint.encode()) for peer in peers]
    members = len(texts) + endings
    return members, sum(texts) + members * PEER_BYTES
