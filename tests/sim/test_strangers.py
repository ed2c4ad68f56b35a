"""Strangers in an open group: what a process that is in no view can make members do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from ringcast import presets
from ringcast.control.membership.part import MembershipPart
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.stack.part import Part
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import (
    Data,
    Discover,
    Frame,
    Install,
    Join,
    Last,
    Merge,
    Nak,
    Prepare,
    Present,
    Refused,
    Section,
)
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.sim import Member, World
from ringcast.spec import StackSpec

GROUP = group_id("sim")
STRANGER = Address(0xBAD)
P = TypeVar("P", bound=Part)
BOTH = pytest.mark.parametrize("preset", [presets.lan, presets.stable], ids=["lan", "stable"])


def datagram(source: Address, *frames: Frame) -> bytes:
    return b"".join(encode(GROUP, source, list(frames)))


def part_of(member: Member, kind: type[P]) -> P:
    return next(part for part in member.stack.parts if isinstance(part, kind))


def multicast(member: Member) -> ReliableMulticast:
    return part_of(member, ReliableMulticast)


def expect_unharmed(world: World, seconds: float = 10.0) -> None:
    """All members are in one view, messages flow, and another member can join."""
    for member in world.running:
        member.send([b"still here"] * 10)
    world.settle()
    assert world.united
    world.join("newcomer", seconds=seconds)
    assert world.check() == []


@BOTH
def test_a_stranger_that_requests_messages_gets_none(preset: Callable[[], StackSpec]) -> None:
    world = World(1, preset())
    a, b = world.join("a", "b")
    world.drop(lambda seen: seen.kind in ("ACK", "VOTE"))  # So that everything stays in the window.
    a.send([bytes(1_000)] * 1_000)
    world.run(1.0)
    assert multicast(a).sent.nbytes > 500_000
    sent, resent = world.frames["DATA"], a.stack.counters["resent"]
    for origin in (a.me, b.me):
        world.inject(datagram(STRANGER, Nak(origin, RangeSet([(1, 1 << 40)]))), a)
    world.run(0.05)
    assert (world.frames["DATA"], a.stack.counters["resent"]) == (sent, resent)
    assert a.stack.counters["dropped_not_member"] == 2


@BOTH
def test_data_for_a_view_to_come_takes_little_memory(preset: Callable[[], StackSpec]) -> None:
    world = World(1, preset())
    a, b = world.join("a", "b")
    assert a.view is not None
    payloads = [bytes(500)] * 100
    for ahead in range(1, 300):
        view = ViewId(a.view.id.number + ahead % 3 + 1, b.me)
        data = Data(view, 0, STRANGER, 1, 0, 0, 0, payloads, 50_000)
        world.inject(datagram(STRANGER, data), a)
    world.run(0.5)
    assert multicast(a)._early.parked_bytes <= 4_000_000
    assert a.stack.counters["dropped_parking_full"] > 100
    expect_unharmed(world)


@BOTH
def test_a_member_that_ignores_its_bound_does_not_fill_the_memory_of_others(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(1, preset().replace(max_bytes=1_000_000))
    a, b = world.join("a", "b")
    assert a.view is not None
    for seqno in range(2, 400):  # Never the first one.
        data = Data(a.view.id, 0, a.me, seqno, 0, 0, 0, [bytes(50_000)], 50_000)
        world.inject(datagram(a.me, data), b)
    world.run(0.5)
    assert multicast(b).windows[a.me].held_bytes <= 3_100_000
    assert b.stack.counters["dropped_past_window"] > 300


FAR = 2**62
GHOST = Peer(STRANGER, "ghost", "nowhere")


@BOTH
@pytest.mark.parametrize("number", [FAR, FAR - 1, 2**61])
def test_no_number_freezes_the_coordinator(preset: Callable[[], StackSpec], number: int) -> None:
    world = World(1, preset())
    a, b, _ = world.join("a", "b", "c")
    view = a.view
    assert view is not None
    far = ViewId(number, STRANGER)
    frames: list[Frame] = [
        *(Prepare(far, base, (), direct) for base in (view.id, far) for direct in (0, 1)),
        Discover(GHOST, far, 1),
        Discover(GHOST, far, 0),
        Present(GHOST, far, GHOST, 0, 0),
        Merge(far, view.id, a.stack.env.fingerprint),
        Refused(view.id, far, far),
        Install(View(far, (*view.peers, GHOST)), (0,) * 4, ()),
    ]
    for source in (STRANGER, b.me):  # A stranger may forge, and a member may be broken.
        for frame in frames:
            world.inject(datagram(source, frame), *world.running)
            world.run(0.2)
    world.run(1.0)
    began = world.now
    expect_unharmed(world, seconds=20.0)
    assert world.now - began < 20.0
    assert world.members["newcomer"].view is not None
    assert a.view is not None
    assert a.view.id.number < 1_000


@BOTH
def test_joins_without_a_process_change_no_view(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(1, preset())
    a, b = world.join("a", "b")
    views, prepared = len(a.views), world.frames["PREPARE"]
    for number in range(10):
        ghost = Peer(Address(0xBAD + number), "ghost", "nowhere")
        for cookie in (0, 1, 2**62):
            join = Join(ghost, a.stack.env.fingerprint, cookie)
            world.inject(datagram(ghost.address, join), a, b)
        world.run(2.0)
    assert len(a.views) == views
    assert world.frames["PREPARE"] == prepared
    expect_unharmed(world)


def test_a_joiner_needs_no_round_trip_more_for_its_cookie() -> None:
    world = World(1, presets.lan(), delay=(0.01, 0.01))
    world.join("a", "b")
    joins, began = world.frames["JOIN"], world.now
    world.join("c")
    assert world.frames["JOIN"] == joins + 1
    # The question and its answer, the JOIN, the wait for more, PREPARE and FLUSHED, the VIEW.
    assert world.now - began < 6 * 0.01 + 0.02 + 0.005


def test_a_joiner_that_asks_the_coordinator_without_a_cookie_needs_one_round_trip_more() -> None:
    world = World(1, presets.lan(), delay=(0.01, 0.01))
    world.join("a", "b")
    joins = world.frames["JOIN"]
    deaf = world.drop(lambda seen: seen.kind == "PRESENT" and seen.source == "a")
    world.start("c")  # It hears of the coordinator by another member.
    world.run_until(lambda: world.frames["JOIN"] > joins, 5.0)
    deaf.remove()
    began = world.now
    world.run_until(lambda: world.united, 5.0)
    assert world.frames["JOIN"] == joins + 2
    # JOIN, the cookie, JOIN, the wait for more, PREPARE and FLUSHED, the VIEW.
    assert world.now - began < 7 * 0.01 + 0.02 + 0.005


@BOTH
def test_groups_without_a_process_change_no_view(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(1, preset())
    a, b = world.join("a", "b")
    views, prepared = len(a.views), world.frames["PREPARE"]
    for number in range(10):
        view = ViewId(90 + number, STRANGER)
        for frame in (Discover(GHOST, view, 1), Present(GHOST, view, GHOST, 1, 2)):
            world.inject(datagram(STRANGER, frame), a, b)
            world.run(1.0)
    assert len(a.views) == views
    assert world.frames["PREPARE"] == prepared
    expect_unharmed(world)


@BOTH
@pytest.mark.parametrize("has_me", [True, False])
def test_a_stranger_cannot_make_the_next_view(
    preset: Callable[[], StackSpec], has_me: bool
) -> None:
    world = World(1, preset())
    a, b, _ = world.join("a", "b", "c")
    view = a.view
    assert view is not None
    peers = view.peers if has_me else tuple(p for p in view.peers if p.address != b.me)
    section = Section(view.id, tuple(peer.address for peer in peers), ())
    forged = View(ViewId(view.id.number + 1, view.coordinator), peers)
    frame = Install(forged, (0,) * len(peers), (section,))
    world.inject(datagram(STRANGER, frame), *world.running)
    world.run(5.0)
    assert all(member.view == view for member in world.running)
    assert b.stack.counters["dropped_stranger_view"] == 1
    expect_unharmed(world)


@BOTH
@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("kind", [Data, Last])
def test_a_claim_that_a_member_is_in_a_later_view_ends_with_its_next_message(
    preset: Callable[[], StackSpec], ahead: int, kind: type[Frame]
) -> None:
    world = World(1, preset())
    a, b, c = world.join("a", "b", "c")
    a.send([b"before"] * 10)
    world.settle()
    assert a.view is not None
    later = ViewId(a.view.id.number + ahead, a.me)
    forged = Data(later, 5, a.me, 6, 0, 0, 0, [b"x"], 1) if kind is Data else Last(later, 5, 0, 6)
    world.inject(datagram(a.me, forged), b, c)  # Any process of an open group can send this.
    world.run(0.1)
    for _ in range(3):
        a.send([b"after"] * 10)
        world.settle()
        world.inject(datagram(a.me, forged), b, c)
        world.run(0.1)
    assert len(b.delivered) == len(c.delivered) == 40
    assert a.view == b.view == c.view
    expect_unharmed(world)


def test_refusals_of_a_stranger_do_not_make_a_view_change_begin_again() -> None:
    world = World(1, presets.lan())
    a, *_ = world.join("a", "b", "c")
    before = world.frames["PREPARE"]
    late = world.start("late")
    while late.view is None:
        assert a.view is not None
        next_ones = [ViewId(a.view.id.number + ahead, a.me) for ahead in range(1, 33)]
        world.inject(datagram(STRANGER, *(Refused(one, NO_VIEW, one) for one in next_ones)), a)
        world.inject(datagram(STRANGER, *(Refused(one, a.view.id, one) for one in next_ones)), a)
        world.run(0.001)
    assert world.frames["PREPARE"] == before + 1
    expect_unharmed(world)


def rate_beside(attack: Callable[[World, int], None], seconds: int = 60) -> float:
    """Messages that arrive while a process does this each second, against those that could."""
    world = World(1, presets.lan())
    a, b, _ = world.join("a", "b", "c")
    for second in range(seconds):
        attack(world, second)
        for _ in range(100):
            if not a.blocked:
                a.send([b"x"] * 10)
            world.run(0.01)
    world.run(1.0)
    assert world.check() == []
    return len(b.delivered) / (seconds * 1_000)


def test_merges_without_a_leader_leave_a_group_most_of_its_rate() -> None:
    def attack(world: World, second: int) -> None:
        coordinator = world.members["a"]
        view = coordinator.view
        assert view is not None
        proposal = ViewId(view.id.number + 1 + second, STRANGER)
        merge = Merge(proposal, view.id, coordinator.stack.env.fingerprint)
        world.inject(datagram(STRANGER, merge), *world.running)

    assert rate_beside(attack) > 0.7


def test_groups_that_never_answer_a_merge_leave_a_group_most_of_its_rate() -> None:
    def attack(world: World, second: int) -> None:
        membership = part_of(world.members["a"], MembershipPart)
        ghost = Peer(Address(STRANGER + second), "ghost", "nowhere")
        cookie = membership.cookie(ghost)  # It hears what is sent to it.
        present = Present(ghost, ViewId(5, ghost.address), ghost, 1, cookie)
        world.inject(datagram(ghost.address, present), *world.running)

    assert rate_beside(attack) > 0.7


def test_claims_to_be_at_the_endpoints_of_members_remove_no_member() -> None:
    def attack(world: World, second: int) -> None:
        for _ in range(10):
            for number, member in enumerate(world.running):
                ghost = Peer(Address(STRANGER + number), "", member.peer.endpoint)
                frames = [Discover(ghost, NO_VIEW, 0)] * 20
                world.inject(datagram(ghost.address, *frames), *world.running)
            world.run(0.1)
        assert len(world.members["a"].views[-1].members) == 3

    assert rate_beside(attack, 10) > 0.9


@BOTH
def test_a_stranger_does_not_repair_in_the_name_of_a_member(
    preset: Callable[[], StackSpec],
) -> None:
    """A member that waits for a crashed sender's last message gets it from a survivor only."""
    world = World(9, preset())
    a, _, c = world.join("a", "b", "c")
    missed = world.drop(lambda f: (f.kind, f.target) == ("DATA", "a") and f.source in "bc")
    c.send(b"true")
    world.run(0.001)
    c.crash()
    world.run_until(lambda: bool(multicast(a)._flush.holders), 10.0)
    assert a.view is not None
    frame = Data(a.view.id, 0, c.me, 1, 0, 0, 0, [b"false"], 5)
    world.inject(datagram(STRANGER, frame), a)
    world.run(0.01)
    missed.remove()
    world.run_until(lambda: len(a.view or ()) == 2, 10.0)
    assert [message.payload for message in a.delivered] == [b"true"]
    assert world.check() == []
