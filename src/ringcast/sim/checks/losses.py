"""Losses without a report: what a receiver skips, its sender has to report.

Where a stack may give messages up, a receiver is told `Skipped`. Its sender is told `Undelivered`,
which covers the message and everything before it, or `Outpaced`, which covers everything from then
on. A skip without either is a violation once the sender follows no large message any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.events import Event, Outpaced, Skipped, Suspected, Undelivered, ViewChange

EVERYTHING = 1 << 62


class Loss(NamedTuple):
    """Messages that a member skipped and their sender has not reported."""

    receiver: Address
    event: Skipped

    def __str__(self) -> str:
        event = self.event
        return f"skipped {event.first}-{event.last} of {event.sender}, which was told nothing"


class Losses:
    """The skips and the reports of all members."""

    def __init__(self) -> None:
        self._losses: list[Loss] = []
        self._told: dict[tuple[Address, Address], int] = {}
        """Per sender and receiver: up to where the sender was told of losses."""

    def took(self, member: Address, event: Event) -> None:
        """The application of a member was given an event."""
        if isinstance(event, Skipped):
            if not event.direct:
                self._losses.append(Loss(member, event))
        elif isinstance(event, Undelivered):
            if event.direct:
                return  # Messages to one member have seqnos of their own.
            for receiver in event.members:
                self._tell(member, receiver, event.seqno)
        elif isinstance(event, Outpaced | Suspected):
            # A suspected member owes no answer, so nothing is reported about it.
            self._tell(member, event.member, EVERYTHING)
        elif isinstance(event, ViewChange):
            self._part(member, event.left)

    def _tell(self, sender: Address, receiver: Address, up_to: int) -> None:
        pair = (sender, receiver)
        self._told[pair] = max(self._told.get(pair, 0), up_to)

    def _part(self, member: Address, left: tuple[Address, ...]) -> None:
        """These have left the view of a member: neither owes the other anything.

        What the others were told of this member stays: its application may be late, and take this
        view after they have met again."""
        parted = {(member, other) for other in left} | {(other, member) for other in left}
        for other in left:
            self._told.pop((member, other), None)
        self._losses = [
            loss for loss in self._losses if (loss.event.sender, loss.receiver) not in parted
        ]

    def untold(self, is_done: Callable[[Address], bool]) -> Iterator[Loss]:
        """The losses, each once, of senders that are done with what they may still report."""
        open_: list[Loss] = []
        for loss in self._losses:
            if self._told.get((loss.event.sender, loss.receiver), 0) >= loss.event.first:
                continue
            if is_done(loss.event.sender):
                yield loss
            else:
                open_.append(loss)
        self._losses = open_
