"""Bad input: whatever reaches a member from outside, a counter rises and nothing else changes."""

from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import (
    Ack,
    Alive,
    Data,
    Frame,
    Install,
    Leave,
    Nak,
    Section,
    Vote,
)
from ringcast.sim import World
from ringcast.sim.swarm.actions import ChaosListener

GROUP = group_id("sim")


def datagram(source: Address, *frames: Frame, group: int = GROUP) -> bytes:
    return b"".join(encode(group, source, list(frames)))


@pytest.fixture
def world() -> World:
    world = World(seed=1, spec=presets.lan(), observer=ChaosListener(None))
    world.join("a", "b", "c")
    return world


def expect_nothing_changed(world: World) -> None:
    """The view is the same, and messages flow."""
    views = [len(member.views) for member in world.running]
    sent = len(world.members["b"].delivered)
    world.members["a"].send([b"still here"] * 10)
    world.settle()
    world.run(10.0)
    assert [len(member.views) for member in world.running] == views
    assert len(world.members["b"].delivered) == sent + 10
    assert world.check() == []


def test_random_bytes_are_dropped(world: World) -> None:
    rng, b = Random(5), world.members["b"]
    for size in range(500):
        world.inject(rng.randbytes(size), b)
    world.run(1.0)
    assert b.stack.counters["dropped_malformed"] == 500
    expect_nothing_changed(world)


def test_frames_of_another_group_and_another_version(world: World) -> None:
    a, b = world.members["a"], world.members["b"]
    other_version = bytearray(datagram(a.me, Leave(ViewId(1, a.me))))
    other_version[2] += 1
    world.inject(datagram(a.me, Leave(ViewId(1, a.me)), group=group_id("other")), b)
    world.inject(bytes(other_version), b)
    world.run(1.0)
    assert b.stack.counters["dropped_wrong_group"] == 1
    assert b.stack.counters["dropped_wrong_version"] == 1
    expect_nothing_changed(world)


def test_frames_of_a_departed_identity(world: World) -> None:
    c = world.members["c"]
    former = c.me
    c.restart()
    world.settle()
    view = world.members["a"].view
    assert view is not None
    old: list[Frame] = [
        Ack(1 << 50),
        Alive(),
        Leave(view.id),
        Nak(former, RangeSet([(1, 1 << 40)])),
    ]
    old.append(Data(view.id, 0, former, 1, 0, 0, 0, [b"ghost"], 5))
    for frame in old:
        world.inject(datagram(former, frame), *world.running)
    world.run(1.0)
    expect_nothing_changed(world)


def test_frames_of_a_stranger(world: World) -> None:
    view = world.members["a"].view
    assert view is not None
    stranger = Address(12345)
    frames: list[Frame] = [
        Ack(1 << 50),
        Leave(view.id),
        Nak(world.members["a"].me, RangeSet([(1, 1 << 60)])),
        Vote(view.id, ()),
        Data(view.id, 0, stranger, 1, 0, 0, 0, [b"x"], 1),
    ]
    for frame in frames:
        world.inject(datagram(stranger, frame), *world.running)
    world.run(1.0)
    expect_nothing_changed(world)


def test_requests_for_what_does_not_exist(world: World) -> None:
    a, b = world.members["a"], world.members["b"]
    a.send([b"x"] * 10)
    world.settle()
    for first, last in ((1, 1 << 62), (1 << 62, (1 << 62) + 5), (5, 5)):
        world.inject(datagram(b.me, Nak(a.me, RangeSet([(first, last)]))), a)
    world.inject(datagram(b.me, Ack(1 << 60)), a)
    world.run(1.0)
    expect_nothing_changed(world)


def test_everything_that_was_ever_sent_is_replayed(world: World) -> None:
    a = world.members["a"]
    assert isinstance(world.observer, ChaosListener)
    for _ in range(20):
        a.send([b"x"] * 5)
        world.run(0.05)
    for data, names in list(world.observer.recent):
        world.inject(data, *[world.members[name] for name in names])
    world.run(1.0)
    expect_nothing_changed(world)


def test_a_tenth_of_all_datagrams_is_damaged() -> None:
    world = World(seed=2, spec=presets.lan(), corrupt=0.1)
    a, b, _ = world.join("a", "b", "c")
    for number in range(1000):
        a.send(b"%d" % number)
        world.run(0.0005)
    world.settle()
    assert [m.payload for m in b.delivered] == [b"%d" % number for number in range(1000)]
    assert b.stack.counters["dropped_malformed"] > 50
    assert world.check() == []


def test_two_members_that_a_third_set_at_odds_do_not_answer_each_other_without_an_end() -> None:
    """Each answer is one frame, and some arrive twice: without a bound they would be a storm."""
    world = World(seed=1, spec=presets.lan(), duplicate=0.2, effort_max=30_000)
    a, b, c = world.join("a", "b", "c")
    view = b.view
    assert view is not None
    made_up = View(ViewId(view.id.number + 1, a.me), view.peers)
    only_b = Section(view.id, (b.me,), ())
    world.inject(datagram(c.me, Install(made_up, (0, 0, 0), (only_b,))), b)
    world.run(0.1)
    assert b.view == made_up
    world.inject(datagram(c.me, Install(made_up, (0, 0, 0), (only_b,))), a)
    world.run(3.0)
    assert world.frames["VIEW"] < 200
    c.crash()
    world.run_until(lambda: world.united, 30.0)
    assert len(b.view or ()) == 2
