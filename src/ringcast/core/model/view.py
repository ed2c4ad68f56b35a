"""Views: numbered lists of the members of a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ringcast.core.model.address import Address, Peer


class ViewId(NamedTuple):
    """Views are ordered by number; the coordinator tells those of two partitions apart."""

    number: int
    coordinator: Address

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


NAMES_SHOWN = 50
"""Members that the text of a view names."""

NO_VIEW = ViewId(0, Address(0))
"""The view id of a member that has not joined yet."""


class View:
    """The members of the group, by seniority; members[0] is the coordinator. Never changes."""

    __slots__ = ("_ranks", "id", "members", "peers")

    def __init__(self, id: ViewId, peers: tuple[Peer, ...]) -> None:
        self.id = id
        """Its number, and the coordinator that made it."""
        self.peers = peers
        """The members with their names and endpoints, by seniority."""
        self.members: tuple[Address, ...] = tuple(peer.address for peer in peers)
        """Their addresses, by seniority."""
        self._ranks = {address: rank for rank, address in enumerate(self.members)}

    @property
    def coordinator(self) -> Address:
        """The member that makes the next view."""
        return self.members[0]

    def rank(self, address: Address) -> int:
        """How senior a member is: 0 is the coordinator."""
        return self._ranks[address]

    def name(self, address: Address) -> str:
        """What people call this member; its number when it is not in the view."""
        rank = self._ranks.get(address)
        return str(address) if rank is None else self.peers[rank].name

    def __contains__(self, address: object) -> bool:
        return address in self._ranks

    def __iter__(self) -> Iterator[Address]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and (self.id, self.peers) == (other.id, other.peers)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        names = [peer.name or str(peer.address) for peer in self.peers[:NAMES_SHOWN]]
        if len(self.peers) > NAMES_SHOWN:
            names.append(f"and {len(self.peers) - NAMES_SHOWN:,} more")
        return f"View({self.id}: {', '.join(names)})"
