"""The ack map of a sender: how far each member has taken its messages, and which it waits for."""

from __future__ import annotations

from ringcast.core.model.address import Address
from ringcast.core.stack.part import Installation


class AckMap:
    """The highest ack of each member of the view, this one included.

    A released member is not waited for until it has caught up, because it is too far behind. An
    excused one is not waited for up to a seqno, and counts as if it had acked that.
    """

    __slots__ = ("acks", "excused", "released")

    def __init__(self) -> None:
        self.acks: dict[Address, int] = {}
        self.released: set[Address] = set()
        self.excused: dict[Address, int] = {}
        """Per member: up to where it counts as if it had acked, until it really has."""

    @property
    def minimum(self) -> int:
        """Up to where all members that are waited for have taken the messages."""
        if not self.released:
            return min(self.acks.values())
        return min(ack for member, ack in self.acks.items() if member not in self.released)

    def waits_for(self, high: int) -> tuple[Address, ...]:
        """The members at the minimum, if that is below `high`."""
        lowest = self.minimum if self.acks else 0
        return tuple(member for member, ack in self.acks.items() if ack == lowest < high)

    def below(self, seqno: int, me: Address) -> list[Address]:
        """The other members whose ack is lower."""
        return [m for m, ack in self.acks.items() if ack < seqno and m != me]

    def is_short(self, high: int) -> bool:
        """Whether a member that is not waited for has not taken all up to `high`."""
        return bool(self.excused) or any(self.acks[member] < high for member in self.released)

    def positions(self, enough: int, high: int) -> dict[Address, int]:
        """The acks of all members that are waited for; an ack of `enough` counts as `high`."""
        return {
            member: ack if ack < enough else high
            for member, ack in self.acks.items()
            if member not in self.released
        }

    def install(self, installation: Installation, start: int) -> None:
        """Make the map that of a new view; new members begin at `start`."""
        for member in installation.left:
            self.acks.pop(member, None)
            self.released.discard(member)
            self.excused.pop(member, None)
        for member in installation.joined:
            self.acks[member] = start
        assert self.acks.keys() == set(installation.view.members)
        assert self.released < self.acks.keys()
