"""A newcomer that finds no group, begins without a state, and merges with members that have one."""

from ringcast.core.model.events import Stateless
from ringcast.sim import World
from tests.sim.test_state import SMALL, Diary, check_equal, has_state, newcomer, say


def test_a_newcomer_gets_the_state_though_the_coordinator_has_just_crashed() -> None:
    world = World(41, SMALL)
    a, b, c = world.join("a", "b", "c")
    for member in (a, b, c):
        Diary(member)
        say(member, 5)
    world.settle()
    a.crash()
    world.run(0.1)
    diary = newcomer(world, "d")
    world.run_until(lambda: has_state(diary), 15.0)
    assert len(diary.pages) == 3
    assert world.check() == []


def began_alone(world: World, reads: bool = True) -> tuple[Diary, list[Diary]]:
    """A newcomer that was alone, and a group with a state, merged; the newcomer leads."""
    world.partition(["lone"])
    lone = newcomer(world, "lone")
    lone.member.service.reads = reads
    world.run(1.0)
    others = [Diary(world.start(name)) for name in "ab"]
    world.run_until(lambda: all(len(d.member.view or ()) == 2 for d in others), 5.0)
    for diary in others:
        say(diary.member, 5)
    world.settle()
    world.heal()
    world.run_until(lambda: world.united, 10.0)
    assert lone.member.view is not None
    assert lone.member.view.coordinator == lone.member.me
    return lone, others


def test_a_newcomer_that_began_alone_is_told_that_others_have_a_state() -> None:
    world = World(42, SMALL)
    lone, others = began_alone(world)
    world.settle()
    told = [event for event in lone.member.events if isinstance(event, Stateless)]
    assert len(told) == 1
    assert not any(isinstance(e, Stateless) for d in others for e in d.member.events)


def test_a_newcomer_that_began_alone_gets_the_state_if_it_was_not_told_that_there_is_none() -> None:
    world = World(43, SMALL)
    lone, others = began_alone(world, reads=False)
    lone.member.service.reads = True
    world.run_until(lambda: has_state(lone), 5.0)
    check_equal(world, lone, *others)


def test_a_member_that_lacks_the_state_does_not_give_its_own() -> None:
    world = World(44, SMALL)
    lone, (first, _) = began_alone(world)
    diary = newcomer(world, "next")
    world.run_until(lambda: has_state(diary), 5.0)
    assert lone.given == 0
    assert diary.pages == first.pages


def test_of_two_that_began_alone_the_more_senior_gives_its_state() -> None:
    world = World(45, SMALL)
    world.partition(["a"], ["b"])
    a, b = newcomer(world, "a"), newcomer(world, "b")
    world.run(1.0)
    say(a.member, 3)
    world.settle()
    world.heal()
    world.run_until(lambda: world.united, 10.0)
    diary = newcomer(world, "c")
    world.run_until(lambda: has_state(diary), 5.0)
    assert (a.given, b.given) == (1, 0)
    assert diary.pages == a.pages


def test_the_first_member_of_a_group_has_its_state_after_a_partition() -> None:
    """It began alone as well, but the others came to it."""
    world = World(46, SMALL)
    first = newcomer(world, "a")
    world.run(1.0)
    second = newcomer(world, "b")
    world.run_until(lambda: len(first.member.view or ()) == 2 and has_state(second), 5.0)
    world.partition(["a"])
    world.run(8.0)
    world.heal()
    world.run_until(lambda: world.united, 10.0)
    assert not any(isinstance(e, Stateless) for d in (first, second) for e in d.member.events)
