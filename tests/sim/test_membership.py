"""Membership, as users rely on it: one view, whether members come, go, crash, sleep or are cut."""

from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.control.failure_detector import FailureDetector
from ringcast.core.model.events import Expelled, Merged
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Present
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import Member, World
from ringcast.spec import StackSpec


def world_of(seed: int, *names: str, **settings: float) -> tuple[World, list[Member]]:
    world = World(seed=seed, spec=presets.lan())
    members = world.join(*names)
    return world, members


def expect_one_view(world: World, *members: Member, seconds: float = 60.0) -> None:
    """These members and nobody else come to be in one view, and messages flow."""
    expected = {member.me for member in members}
    world.run_until(
        lambda: all(m.view is not None and set(m.view) == expected for m in members), seconds
    )
    world.settle()
    assert len({m.view for m in members}) == 1
    before = [len(m.delivered) for m in members]
    for member in members:
        member.send(b"hello from " + member.name.encode())
    world.settle()
    assert [len(m.delivered) - count for m, count in zip(members, before, strict=True)] == [
        len(members)
    ] * len(members)
    assert world.check() == []


@pytest.mark.parametrize("seed", range(5))
def test_eight_members_that_start_together_form_one_view(seed: int) -> None:
    world, members = world_of(seed, *"abcdefgh")
    assert len({member.view for member in members}) == 1
    expect_one_view(world, *members)
    assert len(members[0].views) <= 3, "together is one view, not one after the other"


def test_joins_close_in_time_become_one_view() -> None:
    world, (a,) = world_of(1, "a")
    world.join("b", "c", "d", "e")
    assert [len(view) for view in a.views] == [1, 5]


def test_the_coordinator_leaves() -> None:
    world, (a, b, c) = world_of(2, "a", "b", "c")
    a.send([b"last words"] * 10)
    a.leave()
    expect_one_view(world, b, c)
    assert not a.alive
    assert len(b.delivered) >= 10


@pytest.mark.parametrize("seed", range(3))
def test_the_coordinator_crashes(seed: int) -> None:
    world, (a, b, c) = world_of(seed, "a", "b", "c")
    a.crash()
    expect_one_view(world, b, c)


def test_the_coordinator_sleeps_and_comes_back() -> None:
    world, (a, b, c) = world_of(3, "a", "b", "c")
    a.pause()
    expect_one_view(world, b, c)
    a.resume()
    expect_one_view(world, a, b, c)
    assert any(isinstance(event, Expelled | Merged) for event in a.events), (
        "it learns that it was out"
    )


def test_a_member_that_lacks_a_message_at_a_merge_gets_it_at_once() -> None:
    """Others are in the merged view already, and send; its number does not follow that of the view
    before, so what they send there does not say where that one ends."""
    world, (a, b, c, d) = world_of(21, *"abcd")
    d.pause()
    expect_one_view(world, a, b, c)
    assert a.view is not None
    number = a.view.id.number
    rule = world.drop(lambda f: f.kind in ("DATA", "LAST") and (f.source, f.target) == ("b", "c"))
    b.send(b"the last of this view")
    d.resume()
    world.run_until(lambda: b.view is not None and d.me in b.view, 5.0)
    assert c.view is not None
    assert b.view is not None
    assert c.view.id.number == number < b.view.id.number - 1
    rule.remove()
    b.send(b"the first of the next")
    expect_one_view(world, a, b, c, d, seconds=1.0)
    given = [message.payload for message in c.delivered if message.sender == b.me]
    assert given[-3:-1] == [b"the last of this view", b"the first of the next"]


def test_a_short_sleep_changes_nothing() -> None:
    world, (a, b, _) = world_of(4, "a", "b", "c")
    views = len(a.views)
    b.pause()
    world.run(1.0)
    b.resume()
    world.run(10.0)
    assert len(a.views) == views


def test_coordinator_and_next_leave_together() -> None:
    world, (a, b, c, d) = world_of(5, "a", "b", "c", "d")
    a.leave()
    b.leave()
    expect_one_view(world, c, d)


def test_coordinator_and_next_crash_together() -> None:
    world, (a, b, c, d) = world_of(6, "a", "b", "c", "d")
    a.crash()
    b.crash()
    expect_one_view(world, c, d)


def test_a_leavers_messages_are_requested_from_the_others() -> None:
    """It is gone as soon as it sees the view without it, though a member lacks its last words."""
    world, (a, b, c, d) = world_of(22, *"abcd")
    world.drop(lambda f: f.kind in ("DATA", "LAST") and (f.source, f.target) == ("d", "c"))
    d.send(b"last words")
    d.leave()
    world.run_until(lambda: not d.alive, 10.0)
    expect_one_view(world, a, b, c, seconds=1.0)
    assert b"last words" in [message.payload for message in c.delivered]


@pytest.mark.parametrize("seed", range(6))
def test_a_member_that_answers_slowly_is_asked_again(seed: int) -> None:
    """The dead, asked meanwhile, do not get the credit for what comes from the living."""
    spec = presets.lan().replace(
        NakAck4(request_messages=1), FailureDetector(interval=0.2, timeout=1.0)
    )
    world = World(seed=seed, spec=spec)
    a, b, c = world.join("a", "b", "c")
    c.crash()
    world.run(0.5)
    lost = world.drop(lambda f: f.kind in ("DATA", "LAST") and (f.source, f.target) == ("a", "b"))
    a.send([b"%d" % number for number in range(4)])
    world.run_until(lambda: a.view is not None and c.me not in a.view, 5.0)
    lost.remove()
    for source, target in ((a, b), (b, a)):
        world.link(source, target).delay = (0.010, 0.012)
    expect_one_view(world, a, b, seconds=2.0)


def test_a_leaver_that_alone_has_what_a_crashed_member_sent_gives_it_first() -> None:
    world, (a, b, c, d) = world_of(31, *"abcd")
    world.drop(lambda f: f.kind in ("DATA", "LAST") and f.source == "d" and f.target != "c")
    d.send(b"last words")
    world.run(0.01)
    d.crash()
    world.run(2.0)
    c.leave()
    world.run_until(lambda: not c.alive, 5.0)
    expect_one_view(world, a, b, seconds=1.0)
    assert b"last words" in [message.payload for message in a.delivered]


def test_a_member_left_alone_does_not_wait_for_lost_messages() -> None:
    """It has published a view itself, and lacks what comes before it."""
    world, (a, b) = world_of(23, "a", "b")
    world.drop(lambda f: f.kind in ("DATA", "LAST") and f.source == "b")
    b.send(b"never heard")
    c = world.start("c")
    world.run_until(lambda: c.view is not None, 5.0)
    b.crash()
    c.crash()
    expect_one_view(world, a, seconds=5.0)


def test_the_only_one_to_have_what_comes_before_a_view_crashes() -> None:
    world, (a, b, c, d) = world_of(30, *"abcd")
    world.drop(lambda f: f.kind in ("DATA", "LAST") and f.target in ("a", "b"))
    c.send(b"d alone has heard this")
    world.run(0.01)
    c.crash()
    world.run_until(lambda: d.view is not None and len(d.view) == 3, 5.0)
    d.crash()
    members = [a, b]
    world.run_until(lambda: {m.view for m in members} == {a.view} and len(a.view or ()) == 2, 6.0)
    assert not a.delivered
    assert world.check() == []


def test_half_of_the_members_leave_at_once() -> None:
    world, members = world_of(7, *"abcdefgh")
    for member in members[:4]:
        member.leave()
    expect_one_view(world, *members[4:])


@pytest.mark.parametrize("kind", ["PREPARE", "FLUSHED", "VIEW", "INSTALLED"])
def test_the_coordinator_crashes_in_the_middle_of_a_view_change(kind: str) -> None:
    world, (a, b, c) = world_of(8, "a", "b", "c")
    seen = world.drop(lambda f: f.kind == kind and f.target != "c")
    world.start("d")
    world.run_until(lambda: seen.count > 0, seconds=10)
    a.crash()
    seen.remove()
    d = world.members["d"]
    expect_one_view(world, b, c, d)


@pytest.mark.parametrize("seed", range(3))
def test_a_partition_heals(seed: int) -> None:
    world, (a, b, c, d, e) = world_of(seed, *"abcde")
    world.partition([a, b], [c, d, e])
    for member in (a, b, c, d, e):
        member.send(b"while apart")
    world.run_until(
        lambda: b.view is not None and len(b.view) == 2 and e.view is not None and len(e.view) == 3,
        seconds=60,
    )
    world.heal()
    expect_one_view(world, a, b, c, d, e)
    merged = [event for event in e.events if isinstance(event, Merged)]
    assert {frozenset(group) for group in merged[-1].subgroups} == {
        frozenset({a.me, b.me}),
        frozenset({c.me, d.me, e.me}),
    }


def test_a_merge_that_its_leader_begins_anew_is_one_view_without_a_timeout() -> None:
    """Who has stopped for the first attempt stops for the next one."""
    world, (a, b, c, d) = world_of(17, "a", "b", "c", "d")
    world.partition([a, b], [c, d])
    world.run(seconds=10.0)
    b.crash()
    world.heal()
    began, views = world.now, len(a.views)
    expect_one_view(world, a, c, d)
    assert world.now - began < 6.0, "one search, and a crash to be noticed; change_timeout is 10"
    assert len(a.views) - views == 1, "without the dead and with the others at once"


def test_a_group_that_a_merge_leaves_out_is_told_so() -> None:
    """It has stopped its members for that merge, and they go on when nothing comes of it."""
    world, (a, b, c, d) = world_of(18, "a", "b", "c", "d")
    world.partition([a, b], [c, d])
    world.run(seconds=10.0)
    rules = [world.drop(lambda f: f.kind == "MERGE_READY")]
    world.heal()
    views = len(a.views)
    world.run_until(lambda: len(a.views) > views, 10.0, "the leader to go on without the others")
    rules.append(world.drop(lambda f: f.kind == "MERGE"))
    rules.pop(0).remove()
    c.send(b"we go on")
    world.run(seconds=1.0)
    assert [message.payload for message in d.delivered] == [b"we go on"]
    rules.pop().remove()
    expect_one_view(world, a, b, c, d)


def test_the_leader_of_a_merge_dies() -> None:
    """Those who have stopped for it go on when it does not answer."""
    world, (a, b, c, d) = world_of(20, "a", "b", "c", "d")
    world.partition([a, b], [c, d])
    world.run(seconds=10.0)
    world.drop(lambda f: f.kind == "FLUSHED" and f.source == "b")
    world.heal()
    world.run_until(lambda: world.frames["MERGE_READY"] > 0, 5.0)
    a.crash()
    b.crash()
    c.send(b"we go on")
    world.run_until(lambda: bool(d.delivered), 4.0, "them to go on; change_timeout is 10")
    expect_one_view(world, c, d)


@pytest.mark.parametrize("seed", range(24, 29))
def test_six_groups_find_together_in_the_time_of_one_search(seed: int) -> None:
    """Only one of those who ask the same group to merge gets it; the others ask on soon."""
    world, members = world_of(seed, *"abcdef")
    world.partition(*[[member] for member in members])
    world.run(seconds=15.0)
    world.heal()
    world.run_until(lambda: world.united, 5.0, "one view, which takes a search of up to 3 s")


def test_views_do_not_put_off_the_search_for_partitions() -> None:
    world, (a, b, c) = world_of(29, "a", "b", "c")
    world.partition([a, b], [c])
    world.run(seconds=10.0)
    world.drop(lambda f: f.kind == "DISCOVER" and "c" in (f.source, f.target) and f.source != "a")
    world.heal()
    for name in "defgh":
        world.start(name)
        world.run(0.8)
    assert c.me in (a.view or ()), "a search of up to 3 s, though there is a view every 0.8 s"


def test_a_dead_coordinator_that_others_tell_of_is_not_waited_for() -> None:
    """Its address is the lowest, so it would have to lead the merge."""
    world, (a, b, c) = world_of(19, "a", "b", "c")
    world.partition([a], [b], [c])
    world.run(seconds=10.0)
    a.crash()
    world.heal()
    assert a.view is not None
    hearsay = Present(c.stack.env.peer, a.view.id, a.stack.env.peer, 0, 0)
    world.inject(b"".join(encode(group_id("sim"), c.me, [hearsay])), b)
    began = world.now
    expect_one_view(world, b, c)
    assert world.now - began < 5.0, "two searches at the most; change_timeout is 10"


@pytest.mark.parametrize("preset", [presets.lan, presets.stable])
def test_the_next_coordinator_has_not_got_the_view_that_makes_it_so(
    preset: Callable[[], StackSpec],
) -> None:
    """It searches, and so is no member that is absent."""
    world = World(seed=1, spec=preset())
    (a,) = world.join("a")
    rule = world.drop(lambda f: f.kind == "VIEW" and f.target == "b")
    b, c = world.start("b"), world.start("c")
    world.run_until(lambda: c.view is not None and len(c.view) == 3, 10.0)
    assert c.view is not None
    assert c.view.members == (a.me, b.me, c.me)
    assert b.view is None
    a.crash()
    rule.remove()
    expect_one_view(world, b, c, seconds=10.0)


def test_a_member_that_was_restarted_is_a_new_member() -> None:
    world, (a, b, c) = world_of(9, "a", "b", "c")
    former = b.me
    b.restart()
    assert b.me != former
    expect_one_view(world, a, b, c)
    assert former not in a.views[-1]


@pytest.mark.parametrize("seed", range(5))
def test_a_sender_crashes_and_the_survivors_agree(seed: int) -> None:
    world, (a, b, c, d) = world_of(seed, "a", "b", "c", "d")
    if seed % 2:  # Else members may share them before the crash is known.
        world.drop(lambda f: f.kind == "KNOWN")
    # No LAST either: a survivor that knows what it lacks asks the others before the view changes.
    world.drop(lambda f: f.kind in ("DATA", "LAST") and f.source == "a" and f.target != "b")
    a.send([b"%d" % number for number in range(50)])
    world.run(0.01)
    assert len(b.delivered) == 50
    assert not c.delivered
    a.crash()
    expect_one_view(world, b, c, d)
    counts = {len([m for m in member.delivered if m.sender == a.me]) for member in (b, c, d)}
    assert counts == {50}, "what one survivor has delivered, all deliver"


def test_a_member_is_not_lost_to_a_bad_network() -> None:
    world = World(seed=11, spec=presets.lan(), loss=0.2)
    members = world.join(*"abcdef")
    views = len(members[0].views)
    world.run(120.0)
    assert len(members[0].views) == views, "a fifth of all datagrams lost evicts nobody"


def test_what_is_for_a_former_life_does_not_reach_the_next() -> None:
    world, (a, b) = world_of(12, "a", "b")
    former = b.me
    b.restart()
    a.send(b"for your eyes only", to=former)
    expect_one_view(world, a, b)
    assert b"for your eyes only" not in [message.payload for message in b.delivered]


def test_the_last_member_goes_on_when_all_before_it_crash() -> None:
    """With one watcher each, the ring has to close over the dead one by one."""
    spec = presets.lan().replace(FailureDetector(interval=0.1, timeout=0.5, verify=0.2, watchers=1))
    world = World(seed=13, spec=spec)
    *others, last = world.join(*"abcdef")
    for member in others:
        member.crash()
    expect_one_view(world, last)


def test_a_coordinator_that_has_published_a_view_goes_on_with_it() -> None:
    """The next change waits until the coordinator itself has what comes before the last view."""
    spec = presets.lan().replace(NakAck4(capacity=1))
    world = World(seed=14, spec=spec)
    a, b, c = world.join("a", "b", "c")
    rule = world.drop(lambda f: f.kind in ("DATA", "LAST") and f.source == "c" and f.target == "a")
    c.send([b"x"] * 3)
    world.start("d")
    world.run(seconds=1.0)
    world.start("e")
    world.run(seconds=1.0)
    rule.remove()
    members = [a, b, c, world.members["d"], world.members["e"]]
    expect_one_view(world, *members)


def test_a_promise_has_an_end() -> None:
    """Who has answered a proposal that came to nothing is not frozen for ever."""
    world, (_, _, c) = world_of(15, "a", "b", "c")
    world.drop(lambda f: f.kind == "VIEW" and f.target == "c")
    world.start("d")
    world.run(seconds=60.0)
    c.send(b"still there")
    world.run(seconds=5.0)
    assert b"still there" in [message.payload for message in c.delivered]
    assert world.check() == []


def test_all_members_leave_at_once() -> None:
    world, members = world_of(16, *"abcd")
    for member in members:
        member.leave()
    world.run(seconds=2.0)
    assert [member.alive for member in members] == [False] * 4
    assert world.check() == []


def test_a_partition_that_heals_is_one_view_within_three_seconds_with_the_defaults() -> None:
    seconds = list[float]()
    for seed in range(9):
        world = World(seed, presets.lan())
        a, b, c, d, e = world.join(*"abcde")
        world.partition([a, b, c], [d, e])
        world.run(10.0 + seed / 3)
        world.heal()
        began = world.now
        world.run_until(lambda world=world: world.united, 10.0)  # type: ignore[misc]
        seconds.append(world.now - began)
    assert sorted(seconds)[4] <= 3.0


def test_members_that_promised_another_coordinator_follow_it_to_the_view_of_the_first() -> None:
    world = World(seed=4, spec=presets.lan())
    names = ["a", "b", "c", "d"]
    for name in names:
        world.join(name)
    a, b, c, d = (world.members[name] for name in names)
    late = world.drop(lambda f: f.source == "a" and f.kind == "VIEW" and f.target in "bcd")
    lost = world.drop(lambda f: f.target == "b" and f.kind == "FLUSHED")
    e = world.start("e")
    world.run_until(lambda: e.view is not None, 5.0)
    b.stack.suspect(a.me, True)  # Wrongly: and the others promise to follow b.
    world.run(0.1)
    b.stack.suspect(a.me, False)
    late.remove()
    world.run_until(lambda: b.view is not None and e.me in b.view, 2.0)
    lost.remove()
    world.run_until(lambda: all(e.me in (m.view or ()) for m in (c, d)), 2.0)
    assert world.check() == []
