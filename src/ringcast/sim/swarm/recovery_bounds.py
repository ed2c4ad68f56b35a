"""How long a recovery may take: as long as the timers of the stack explain, and no longer.

A wait that they do not explain is a weakness of the protocols, even if it ends.
"""

from __future__ import annotations

from math import ceil

from ringcast.control.discovery import Discovery, DiscoveryPart
from ringcast.control.failure_detector import AWAY_TIMEOUTS, FailureDetector, FailureDetectorPart
from ringcast.control.membership.coordinator import UNHEARD_MAX
from ringcast.control.membership.joiner import JOINS_MAX, ROUNDS_MAX
from ringcast.control.membership.settings import Membership
from ringcast.control.slow_members import AWAY_BOUNDS, SlowMembers
from ringcast.control.stability import Stability
from ringcast.layers.large import LargeMessages
from ringcast.layers.multicast.settings import MulticastSpec
from ringcast.sim.engine.world import World
from ringcast.spec import StackSpec

SMALLEST = 10.0
"""Seconds for a run of messages through the smallest windows, a fragment at a time."""
ROUNDS = 6
"""Ticks and rounds of stability until the last message is known to be everywhere."""


def leaving_seconds(spec: StackSpec) -> float:
    """Until all leavers are gone."""
    membership = spec["membership"]
    assert isinstance(membership, Membership)
    return membership.drain_timeout + membership.leave_timeout + 2 * membership.retry_max


def reunion_seconds(world: World) -> float:
    """Until all that run are in one view, from now on: those in a member's view that are dead or
    elsewhere are found, as many at a time as there are watchers, and one search brings all
    together."""
    failure, discovery = world.spec["failure"], world.spec["discovery"]
    membership = world.spec["membership"]
    assert isinstance(failure, FailureDetector)
    assert isinstance(discovery, Discovery)
    assert isinstance(membership, Membership)
    change = membership.gather + membership.retry_max
    crash = 2 * failure.interval + failure.timeout + failure.verify + change
    search = 1.5 * discovery.merge_interval + 1.5 * membership.retry_max + change
    # One at least: a member may have died before the view came that takes it in.
    crashes = max(1, ceil(_gone(world) / failure.watchers)) * crash
    # A member that has stopped for a merge finds out by itself that its leader is dead.
    seconds = max(crashes, UNHEARD_MAX * membership.retry_max) + search
    for protocol in world.spec.protocols:
        if isinstance(protocol, SlowMembers) and protocol.policy == "evict":
            seconds += AWAY_BOUNDS * protocol.bound
    seconds += _away(world, failure)
    if any(member.view is None for member in world.running):
        # A joiner may ask a dead coordinator first, wait, and then let others found the group.
        seconds += JOINS_MAX * membership.retry_max
        seconds += 1.2 * (2 * ROUNDS_MAX + 1) * discovery.timeout
    return seconds


def _away(world: World, failure: FailureDetector) -> float:
    """Until members are back that were evicted, or are about to be, since one did not reach
    another."""
    parts = [part for member in world.running for part in member.stack.parts]
    running = {member.me for member in world.running}
    is_parted = any(member.stack.counters.get("pairs_parted") for member in world.running) or any(
        # Reported to the coordinator, perhaps for as long as it takes to part the two.
        not running.isdisjoint(part.suspected)
        for part in parts
        if isinstance(part, FailureDetectorPart)
    )
    rests = [part.rest_until - world.now for part in parts if isinstance(part, DiscoveryPart)]
    return max(AWAY_TIMEOUTS * failure.timeout if is_parted else 0.0, *rests, 0.0)


def settling_seconds(spec: StackSpec) -> float:
    """Until everything that was sent in one view has arrived, and its senders know."""
    seconds = SMALLEST
    for protocol in spec.protocols:
        match protocol:
            case MulticastSpec():
                seconds += ROUNDS * protocol.xmit_interval
            case Stability():
                seconds += ROUNDS * 1.5 * protocol.interval
            case LargeMessages():
                seconds += (protocol.attempts + 1) * protocol.ack_timeout + protocol.receive_timeout
    return seconds


def _gone(world: World) -> int:
    """How many are in a member's view and do not run, or not in that view."""
    views = {member.me: member.view for member in world.running if member.view is not None}
    return max((sum(views.get(m) != view for m in view) for view in views.values()), default=0)
