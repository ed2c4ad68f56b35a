"""The members that lack something, and what its senders have said about them, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.events import Outpaced, Undelivered
from ringcast.sim.engine.member import Member


def lacking(members: Sequence[Member], messages: int) -> dict[str, int]:
    """How many of `count` messages each member was not given; those that have all are left out."""
    counts = {member.name: messages - len(member.delivered) for member in members}
    return {name: count for name, count in counts.items() if count > 0}


def reported(members: Sequence[Member]) -> dict[str, int]:
    """Per member: messages that were freed before it had said that it has them."""
    found: Counter[str] = Counter()
    names = _names(members)
    for member in members:
        for event in member.events:
            if isinstance(event, Undelivered) and not event.direct:
                found.update(names[address] for address in event.members)
    return dict(found)


def outpaced(members: Sequence[Member]) -> dict[str, float]:
    """Per member: seconds that it had held senders back when they went on without it."""
    found: dict[str, float] = {}
    names = _names(members)
    for member in members:
        for event in member.events:
            if isinstance(event, Outpaced):
                name = names[event.member]
                found[name] = found.get(name, 0.0) + event.seconds
    return found


def _names(members: Sequence[Member]) -> dict[Address, str]:
    return {member.me: member.name for member in members}
