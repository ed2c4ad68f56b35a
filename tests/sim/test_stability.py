"""Stability: messages are kept until everybody has them, and no longer."""

from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.control.stability import Stability
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import SenderMarks, Vote
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.sim import World
from ringcast.spec import StackSpec


@pytest.fixture
def world() -> World:
    world = World(seed=1, spec=presets.stable())
    world.join("a", "b", "c")
    return world


def test_nothing_is_freed_while_one_member_is_silent(world: World) -> None:
    a, b, c = world.members.values()
    c.busy()
    a.send([b"x"] * 10)
    world.run(30.0)
    assert a.probe.low == 0
    assert b.probe.multicast.windows[a.me].low == 0
    c.idle()
    world.settle()
    assert a.probe.low == 10
    assert world.check() == []


def test_freeing_goes_on_when_the_silent_one_is_out_of_the_view(world: World) -> None:
    a, _b, c = world.members.values()
    c.pause()
    a.send([b"x"] * 10)
    world.run(1.0)
    assert a.probe.low == 0
    world.run_until(lambda: a.view is not None and len(a.view) == 2, seconds=30)
    world.settle()
    assert a.probe.low == 10


def test_a_vote_of_an_old_view_and_a_second_vote_are_ignored(world: World) -> None:
    a, b, c = world.members.values()
    c.busy()
    a.send([b"x"] * 10)
    world.run(1.0)
    assert a.view is not None
    marks = (SenderMarks(a.me, 10, 10),)
    for view in (ViewId(a.view.id.number - 1, a.me), ViewId(a.view.id.number + 1, a.me)):
        world.inject(b"".join(encode(group_id("sim"), c.me, [Vote(view, marks)])), a)
    for _ in range(3):
        world.inject(b"".join(encode(group_id("sim"), b.me, [Vote(a.view.id, marks)])), a)
    world.run(10.0)
    assert a.probe.low == 0


def test_a_lost_result_costs_one_round(world: World) -> None:
    a, _b, c = world.members.values()
    rule = world.drop(lambda f: f.kind == "STABLE" and f.target == "c" and rule.count < 1)
    a.send([b"x"] * 10)
    world.run_until(lambda: rule.count == 1, seconds=60)
    world.run(0.01)
    assert c.probe.multicast.windows[a.me].low == 0
    a.send(b"y")
    world.run_until(lambda: c.probe.multicast.windows[a.me].low >= 10, seconds=60)


@pytest.mark.parametrize("preset", [presets.lan, presets.stable], ids=["lan", "stable"])
def test_memory_stays_flat_over_steady_traffic(preset: Callable[[], StackSpec]) -> None:
    world = World(seed=2, spec=preset(), keep=False)
    members = world.join("a", "b", "c")
    peaks = []
    for _ in range(10):
        for _ in range(50):
            for member in members:
                member.send([bytes(100)] * 64)
            world.run(0.02)
        peaks.append(max(member.probe.nbytes for member in members))
    assert max(peaks[5:]) <= 1.5 * max(peaks[:5])
    world.settle()
    assert world.check() == []


def test_a_member_without_loopback_votes_by_amount_as_well() -> None:
    """Else a full table waits for the interval of its sender, again and again."""
    table = NakAck3(loopback=False, max_bytes=1_000)
    spec = presets.stable().replace(table, Stability(interval=10.0))
    world = World(seed=1, spec=spec)
    a, b, _ = world.join("a", "b", "c")
    a.send([bytes(100)] * 200)
    world.run(5.0)
    assert not a.queued
    assert len(b.delivered) == 200


# --- rounds by hand ------------------------------------------------------------------------------


def test_a_round_by_hand_says_what_is_stable_without_waiting_for_the_interval() -> None:
    world = World(seed=1, spec=presets.stable().replace(Stability(interval=1_000.0)))
    a, b, c = world.join("a", "b", "c")
    a.send_many([b"x"] * 50)
    world.run(0.5)
    marks = c.stack.stability
    assert marks is not None
    assert marks.stable_seqnos()[a.me] < 50
    goal = marks.begin_round()
    world.transmit(c)
    world.run(0.1)
    assert marks.rounds_done >= goal
    assert marks.stable_seqnos() == {a.me: 50, b.me: 0, c.me: 0}
    assert a.probe.outstanding == 0
    goal = marks.begin_round()
    world.transmit(c)
    world.run(0.1)
    assert marks.rounds_done >= goal  # Nothing is new, and the round ends all the same.
    assert world.check() == []


def test_with_acks_what_is_stable_is_known_without_a_round() -> None:
    world = World(seed=1, spec=presets.lan())
    a, b = world.join("a", "b")
    a.send_many([b"x"] * 50)
    world.run(1.0)
    for member in (a, b):
        marks = member.stack.stability
        assert marks is not None
        assert marks.begin_round() <= marks.rounds_done
        assert marks.stable_seqnos()[a.me] == 50
