"""How long a recovery may take: as long as the timers of the stack explain, and no longer.

A wait that they do not explain is a weakness of the protocols, even if it ends.
"""

from __future__ import annotations

from math import ceil

from ringcast.layers.large import Large
from ringcast.layers.multicast.settings import MulticastSpec
from ringcast.parts.discovery import Discovery
from ringcast.parts.failure import Failure
from ringcast.parts.membership.coordinator import UNHEARD_MAX
from ringcast.parts.membership.joiner import JOINS_MAX, ROUNDS_MAX
from ringcast.parts.membership.settings import Membership
from ringcast.parts.slow import AWAY, Slow
from ringcast.parts.stability import Stability
from ringcast.sim.world import World
from ringcast.spec import StackSpec

SMALLEST = 10.0
"""Seconds for a run of messages through the smallest windows, a fragment at a time."""
ROUNDS = 6
"""Ticks and rounds of stability until the last message is known to be everywhere."""


def leaving_seconds(spec: StackSpec) -> float:
    """Until all who leave are gone."""
    membership = spec["membership"]
    assert isinstance(membership, Membership)
    return membership.drain_timeout + membership.leave_timeout + 2 * membership.retry_max


def reunion_seconds(world: World) -> float:
    """Until all that run are in one view, from now on: those in somebody's view that are dead or
    elsewhere are found, as many at a time as there are watchers, and one search brings all
    together."""
    failure, discovery = world.spec["failure"], world.spec["discovery"]
    membership = world.spec["membership"]
    assert isinstance(failure, Failure)
    assert isinstance(discovery, Discovery)
    assert isinstance(membership, Membership)
    change = membership.gather + membership.retry_max
    crash = 2 * failure.interval + failure.timeout + failure.verify + change
    search = 1.5 * discovery.merge_interval + 1.5 * membership.retry_max + change
    # One at least: a member may have died before the view came that takes it in.
    crashes = max(1, ceil(_gone(world) / failure.watchers)) * crash
    # Who has stopped for a merge finds out by itself that its leader, of another view, is dead.
    seconds = max(crashes, UNHEARD_MAX * membership.retry_max) + search
    for protocol in world.spec.protocols:
        if isinstance(protocol, Slow) and protocol.policy == "evict":
            seconds += AWAY * protocol.bound
    if any(member.view is None for member in world.running):
        # A joiner may ask a dead coordinator first, and then let others found the group.
        seconds += JOINS_MAX * membership.retry_max
        seconds += 1.2 * (ROUNDS_MAX + 1) * discovery.timeout
    return seconds


def settling_seconds(spec: StackSpec) -> float:
    """Until everything that was sent in one view has arrived, and its senders know."""
    seconds = SMALLEST
    for protocol in spec.protocols:
        match protocol:
            case MulticastSpec():
                seconds += ROUNDS * protocol.xmit_interval
            case Stability():
                seconds += ROUNDS * 1.5 * protocol.interval
            case Large():
                seconds += (protocol.attempts + 1) * protocol.ack_timeout + protocol.receive_timeout
    return seconds


def _gone(world: World) -> int:
    """How many are in somebody's view and do not run, or not in that view."""
    views = {member.me: member.view for member in world.running if member.view is not None}
    return max((sum(views.get(m) != view for m in view) for view in views.values()), default=0)
