"""A world is at rest when all that can talk are in one view, and have all that was sent in it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ringcast.core.model.address import Address

if TYPE_CHECKING:
    from ringcast.core.model.view import View
    from ringcast.sim.engine.member import Member
    from ringcast.sim.engine.world import World


def outstanding(world: World) -> list[str]:
    """What is still to be expected, a sentence each; nothing when the world is at rest.

    Members that are paused are left out; each side of a partition is looked at for itself.
    """
    sides: dict[int, list[Member]] = defaultdict(list)
    for member in world.running:
        sides[world.network.partitions.side(member.name)].append(member)
    found: list[str] = []
    for members in sides.values():
        found += _apart(members) or _unfinished(world, members)
    return found


def _apart(members: list[Member]) -> list[str]:
    """The members that are not in one view with all the others."""
    found: list[str] = []
    addresses = {member.me for member in members}
    first = members[0].view
    for member in members:
        if member.leaving:
            found.append(f"{member.name} is leaving")
        elif member.view is None:
            found.append(f"{member.name} has not joined")
        elif set(member.view) != addresses or (first is not None and member.view.id != first.id):
            found.append(f"{member.name} is in {member.view}")
    return found


def _unfinished(world: World, members: list[Member]) -> list[str]:
    """What members of one view have not sent, not been given, or not been told that others have."""
    view: View | None = members[0].view
    assert view is not None
    found = [f"{m.name} has {m.queued} messages queued" for m in members if m.blocked]
    found += world.checker.behind(view, [member.record for member in members])
    found += [
        f"{m.name} waits for {m.probe.outstanding} of its messages to be acked"
        for m in members
        if m.probe.outstanding
    ]
    found += [
        f"{m.name} waits to hear of {m.probe.unheard} large messages"
        for m in members
        if m.probe.unheard
    ]
    addresses = {member.me for member in members}

    def together(one: Address, other: Address) -> bool:
        return one in addresses and other in addresses

    found += [
        f"{view.name(target)} has not all messages that {view.name(source)} sent to it alone"
        for source, target in world.checker.pairs.behind(together)
    ]
    return found
