"""Receipts say who lacks what was sent, across losses, views and crashes."""

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.wire.frames import Data
from ringcast.layers.compress.layer import Compress
from ringcast.layers.majority import Majority
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.world import World
from ringcast.spec import StackSpec


def receipt_of(member: Member, world: World) -> set[Address]:
    """Waits until the others have what was sent; who lacked something at the beginning."""
    receipts = member.stack.receipts(world.now)
    assert receipts is not None
    missing = {m for receipt in receipts for m in receipt()}
    world.run_until(lambda: not any(list(receipt()) for receipt in receipts), 20.0)
    return missing


SPECS = {
    "lan": presets.lan(),
    "stable": presets.stable(),
    "order": presets.lan().with_total_order(),
    "majority": presets.lan().insert(Majority()),
    "compress": presets.lan().insert(Compress()),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_no_member_lacks_a_message_once_all_have_taken_it(spec: StackSpec) -> None:
    world = World(1, spec, loss=0.2)
    a, b, c = world.join(*"abc")
    world.run_until(a.stack.writable, 5.0)
    a.send([b"x"] * 50)
    a.send(b"to one", to=c)
    assert receipt_of(a, world) == {b.me, c.me}
    assert len(b.delivered) == 50
    assert len(c.delivered) == 51


def test_a_member_that_does_not_take_is_named_until_it_does() -> None:
    world = World(2, presets.lan())
    a, b, c = world.join(*"abc")
    c.busy()
    a.send(b"x")
    receipts = a.stack.receipts(world.now)
    assert receipts is not None
    world.run(5.0)
    assert [list(receipt()) for receipt in receipts] == [[c.me], []]
    c.idle()
    world.run(1.0)
    assert [list(receipt()) for receipt in receipts] == [[], []]
    assert len(b.delivered) == 1


@pytest.mark.parametrize("rank", [1, 2])
def test_what_waits_for_its_place_in_the_total_order_is_lacked(rank: int) -> None:
    """The sequencer's ORDER does not arrive, so no member is given the messages of others."""
    world = World(5, presets.lan().with_total_order())
    members = {member.name: member for member in world.join(*"abc")}
    view = members["a"].view
    assert view is not None
    sequencer = next(m for m in members.values() if m.me == view.coordinator)
    other = next(m for m in members.values() if m.me == view.members[rank])
    rule = world.drop(lambda f: f.source == sequencer.name and isinstance(f.frame, Data))
    other.send(b"x")
    world.run(1.0)
    receipts = other.stack.receipts(world.now)
    assert receipts is not None
    lacking = {member for receipt in receipts for member in receipt()}
    given = {member.me for member in members.values() if len(member.delivered)}
    assert lacking == set(view) - given - {other.me}
    assert lacking
    rule.remove()
    assert receipt_of(other, world)
    assert all(len(member.delivered) == 1 for member in members.values())


def test_a_member_that_crashes_is_waited_for_until_the_view_without_it() -> None:
    world = World(3, presets.lan())
    a, b, c = world.join(*"abc")
    c.crash()
    a.send([b"x"] * 3)
    assert c.me in receipt_of(a, world)
    assert a.view is not None
    assert c.me not in a.view
    assert len(b.delivered) == 3


def test_what_was_sent_before_a_join_is_not_wanted_of_the_newcomer() -> None:
    world = World(4, presets.lan())
    a, _ = world.join(*"ab")
    a.send(b"x")
    receipts = a.stack.receipts(world.now)
    assert receipts is not None
    (c,) = world.join("c")
    world.run(1.0)
    assert not any(list(receipt()) for receipt in receipts)
    assert len(c.delivered) == 0
