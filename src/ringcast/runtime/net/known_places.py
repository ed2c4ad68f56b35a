"""Where others are, by their addresses: members, and apart from them processes outside the view.

Any process may claim any number of addresses. So those outside the view have a table of their own,
and push no member out.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ringcast.core.model.address import Address

PLACES_MAX = 4_096
"""Members that are remembered, and as many others; beyond it the oldest are forgotten."""

Place = TypeVar("Place")


class KnownPlaces(Generic[Place]):
    """Two bounded tables: of members, and of others."""

    __slots__ = ("_members", "_others")

    def __init__(self) -> None:
        self._members: dict[Address, Place] = {}
        self._others: dict[Address, Place] = {}

    def __contains__(self, address: Address) -> bool:
        return address in self._members or address in self._others

    def get(self, address: Address) -> Place | None:
        """Where this one is, if that is known."""
        found = self._members.get(address)
        return self._others.get(address) if found is None else found

    def put(self, address: Address, place: Place, is_claim: bool) -> Address | None:
        """Remember a place; `is_claim` for that of a process outside the view. Returns the address
        that was forgotten for it."""
        self._members.pop(address, None)
        self._others.pop(address, None)
        table, forgotten = self._others if is_claim else self._members, None
        if len(table) >= PLACES_MAX:
            forgotten = next(iter(table))
            del table[forgotten]
        table[address] = place
        return forgotten
