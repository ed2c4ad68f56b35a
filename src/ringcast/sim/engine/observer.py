"""A listener to everything that happens in a world, to print it or to keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ringcast.core.model.events import Event
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.network import Fate

if TYPE_CHECKING:
    from ringcast.sim.engine.member import Member


class WorldListener(Protocol):
    """What a world tells; `Show` is one."""

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        """A datagram was sent; what becomes of it on its way to each receiver."""
        ...

    def given(self, now: float, member: Member, event: Event) -> None:
        """An application was given an event."""
        ...

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Something was done to a member, or to the world."""
        ...
