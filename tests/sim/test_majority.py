"""Sends go on where a majority is, and nowhere else."""

from pathlib import Path

import pytest

from ringcast import QuorumLost, QuorumRegained, presets
from ringcast.core.wire.frames import Quorum
from ringcast.layers.majority import AGREED, ATTEMPTING, Majority
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.world import World
from ringcast.sim.trace import SimulatedTrace
from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.table import read_rows

SPEC = presets.lan().insert(Majority())


def together(world: World, *names: str) -> list[Member]:
    members = world.join(*names)
    world.run_until(lambda: all(has_quorum(member) for member in members), 1.0)
    return members


def has_quorum(member: Member) -> bool:
    assert member.majority is not None
    return member.majority.has_quorum


def said(member: Member) -> list[type]:
    return [type(e) for e in member.events if isinstance(e, QuorumLost | QuorumRegained)]


def test_the_smaller_side_of_a_partition_waits_and_goes_on_after_the_merge() -> None:
    world = World(1, SPEC)
    a, b, c, d, e = together(world, *"abcde")
    world.partition([a, b, c], [d, e])
    world.run(8.0)
    assert [has_quorum(member) for member in (a, b, c, d, e)] == [True] * 3 + [False] * 2
    a.send(b"majority")
    d.send(b"minority")
    world.run(1.0)
    assert [len(member.delivered) for member in (b, c, d, e)] == [1, 1, 0, 0]
    assert d.blocked
    world.heal()
    world.run_until(lambda: world.united and all(map(has_quorum, (a, d))), 10.0)
    world.run(1.0)
    assert [len(member.delivered) for member in (b, c, d, e)] == [2, 2, 1, 1]
    assert said(d) == [QuorumLost, QuorumRegained]
    assert said(a) == []
    assert world.check() == []


def test_a_side_that_waits_names_the_members_that_are_missing() -> None:
    world = World(1, SPEC)
    a, b, c, d, e = together(world, *"abcde")
    world.partition([a, b, c], [d, e])
    world.run(8.0)
    e.crash()  # The names outlive a view between the agreed one and the latest.
    world.run_until(lambda: d.view is not None and len(d.view) == 1, 10.0)
    assert d.majority is not None
    reason, missing = d.majority.block_text.removesuffix(" are missing").split(": ")
    assert reason == "the view has no majority of the last agreed one"
    assert sorted(missing.split(", ")) == ["a", "b", "c", "e"]


def test_of_two_halves_the_one_with_the_most_senior_member_goes_on() -> None:
    world = World(2, SPEC)
    members = together(world, *"abcd")
    assert members[0].view is not None
    senior = members[0].view.members[0]
    world.partition(members[:2], members[2:])
    world.run(8.0)
    for half in (members[:2], members[2:]):
        expected = any(member.me == senior for member in half)
        assert [has_quorum(member) for member in half] == [expected] * 2


def test_members_that_leave_in_order_take_no_majority_along() -> None:
    world = World(3, SPEC)
    members = together(world, *"abcde")
    for member in members[:-1]:
        member.leave()
        world.run(3.0)
    assert has_quorum(members[-1])
    members[-1].send(b"alone")
    world.run(0.1)
    assert len(members[-1].delivered) == 1
    assert world.check() == [], "one that is left alone agrees in the very step of the view"


def cut_in_two(seed: int) -> tuple[World, list[Member]]:
    """Five members, of which a, b and c are cut off from d and e, and a agrees on that view.

    c hears each of the others once, too little in most orders of events to know of it.
    """
    world = World(seed, SPEC)
    a, b, c, d, e = members = together(world, *"abcde")
    world.run(1.0)
    majority = c.majority
    assert majority is not None
    rule = world.drop(
        lambda f: (
            f.target == "c"
            and isinstance(f.frame, Quorum)
            and world.members[f.source].me in majority._known
        )
    )
    world.partition([a, b, c], [d, e])
    world.run_until(lambda: a.view is not None and len(a.view) == 3 and has_quorum(a), 8.0)
    rule.remove()
    return world, members


def test_a_side_that_may_have_missed_an_agreement_does_not_begin_one_of_its_own() -> None:
    """c does not hear that a and b have agreed on a view with it."""
    tries = map(cut_in_two, range(40))
    world, (a, b, c, d, e) = next(cut for cut in tries if not has_quorum(cut[1][2]))
    world.partition([a, b], [c, d, e])
    world.run(8.0)
    assert [has_quorum(member) for member in (a, b)] == [True] * 2
    assert [has_quorum(member) for member in (c, d, e)] == [False] * 3, "a majority of five, but"
    world.heal()
    world.run_until(lambda: world.united and has_quorum(e), 10.0)
    assert world.check() == []


def test_the_check_and_the_audit_find_two_majorities(tmp_path: Path) -> None:
    trace = SimulatedTrace(tmp_path)
    world = World(5, SPEC, observer=trace)
    a, b, c, d, e = together(world, *"abcde")
    world.partition([a, b, c], [d, e])
    world.run_until(lambda: d.view is not None and len(d.view) == 2, 8.0)
    world.run(2.0)
    assert d.majority is not None
    assert d.view is not None
    d.majority._phase = ATTEMPTING  # As if it had overlooked that three are missing.
    d.majority._agree(d.view)
    assert d.majority._phase == AGREED
    world.run(1.0)
    assert any("two majorities" in str(violation) for violation in world.check())
    trace.close(settled=True)
    found = check(read_rows(tmp_path), **rules_of(SPEC)._asdict())
    assert [violation.cause for violation in found] == ["two-majorities"]


def test_the_audit_is_content_with_a_partition_and_finds_a_send_without_a_majority(
    tmp_path: Path,
) -> None:
    trace = SimulatedTrace(tmp_path)
    world = World(8, SPEC, observer=trace)
    a, b, c, d, e = together(world, *"abcde")
    world.partition([a, b, c], [d, e])
    world.run(8.0)
    for member in (a, d):
        member.send(b"?")
    world.run(1.0)
    world.heal()
    world.run_until(lambda: world.united and has_quorum(d), 10.0)
    world.settle()
    trace.close(settled=True)
    rows, rules = list(read_rows(tmp_path)), rules_of(SPEC)._asdict()
    assert check(rows, **rules) == []
    silent = [row for row in rows if row.kind != "agreed" or row.member != d.me]
    assert {violation.cause for violation in check(silent, **rules)} == {"unagreed"}


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_a_first_majority_has_as_many_members_as_asked_for(loss: float) -> None:
    world = World(6, presets.lan().insert(Majority(first=3)), loss=loss)
    a, b = world.join("a", "b")
    a.send(b"early")
    world.run(3.0)
    assert not has_quorum(a)
    assert a.blocked
    (c,) = world.join("c")
    world.run_until(lambda: all(map(has_quorum, (a, b, c))), 10.0)
    world.run_until(lambda: len(c.delivered) == 1, 10.0)


def test_a_large_message_under_way_waits_for_a_majority_as_well() -> None:
    world = World(7, SPEC.with_settings({"NakAck4.capacity": 16}))
    a, b, c, d, e = together(world, *"abcde")
    d.send(bytes(30_000_000))
    world.run(0.001)
    world.partition([a, b, c], [d, e])
    world.run_until(lambda: d.view is not None and len(d.view) == 2, 8.0)
    world.run(5.0)
    assert [len(member.delivered) for member in (a, d, e)] == [0, 0, 0]
    world.heal()
    world.run_until(lambda: world.united and has_quorum(d), 10.0)
    world.settle()
    assert [len(member.delivered) for member in (a, b, c, d, e)] == [1] * 5
    assert world.check() == []
