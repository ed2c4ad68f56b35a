"""Members found by a name or a directory: together, one by one, and after a partition."""

from functools import partial

import pytest

from ringcast import StackSpec, presets
from ringcast.control.discovery import Discovery
from ringcast.control.failure_detector import FailureDetector
from ringcast.sim import World
from ringcast.sim.engine.faults import FrameInFlight
from ringcast.sim.engine.member import Member


def has_view(member: Member) -> bool:
    return member.view is not None


SEEDED = presets.lan().replace(Discovery(multicast=False, seeds=("a", "b")))
SPECS = {"file": presets.tcp(file="/d"), "dns": presets.tcp(dns="name:1")}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("count", [2, 8, pytest.param(50, marks=pytest.mark.slow)])
def test_members_that_start_together_form_one_group(spec: StackSpec, count: int) -> None:
    world = World(seed=count, spec=spec)
    members = world.join(*(f"m{number}" for number in range(count)))
    assert world.now < 2.0
    assert len({member.view for member in members}) == 1
    assert len(members[0].views) <= 3, "together is one view, not one after the other"
    assert world.check() == []


@pytest.mark.slow
def test_hundreds_of_members_form_one_group_by_datagrams_of_a_packet_under_loss() -> None:
    """Their views leave in many pieces, some of which are lost. A thousand form as well; that
    takes minutes and gigabytes here, where all of them are in one process."""
    world = World(3, SEEDED, keep=False, loss=0.02)
    for number in range(300):
        world.start("a" if not number else f"m{number}", mtu=1_472)
    world.run_until(lambda: world.united, 10.0)
    assert world.frames["VIEW"] > 0
    world.members["a"].send([b"to all"] * 10)
    world.settle()
    assert all(len(member.delivered) == 10 for member in world.running)
    assert world.check() == []


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_members_that_start_one_by_one_join(spec: StackSpec) -> None:
    world = World(seed=1, spec=spec)
    for name in "abcd":
        world.join(name)
    assert [len(view) for view in world.members["a"].views] == [1, 2, 3, 4]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_partition_heals_within_the_documented_time(spec: StackSpec) -> None:
    world = World(seed=3, spec=spec)
    a, b, c, d = world.join(*"abcd")
    world.partition([a, b], [c, d])
    world.run_until(lambda: all(len(m.view or ()) == 2 for m in (a, b, c, d)), 20.0)
    world.heal()
    # 1.5 × merge_interval, gather, and a view change of some round trips.
    world.run_until(lambda: world.united, 1.5 * 2.0 + 0.02 + 0.5)
    assert world.check() == []


def test_a_directory_full_of_dead_members_does_not_keep_members_apart() -> None:
    world = World(seed=4, spec=SPECS["file"])
    for number in range(60):
        world.start(f"dead{number}").crash()
    members = world.join("a", "b", "c")
    assert len({member.view for member in members}) == 1
    assert world.now < 5.0


# A newcomer while the coordinator is dead --------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spec", [presets.lan(), presets.loopback()], ids=["lan", "loopback"])
def test_a_newcomer_finds_a_group_whose_coordinator_has_just_crashed(
    spec: StackSpec, seed: int
) -> None:
    world = World(seed, spec)
    a, b, c = world.join("a", "b", "c")
    a.crash()
    world.run(0.05)
    d = world.start("d")
    world.run_until(lambda: d.view is not None, 10.0)
    assert d.view is not None
    assert {b.me, c.me} <= set(d.view), "it did not create a group of its own"
    assert world.check() == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", [presets.lan(), presets.loopback()], ids=["lan", "loopback"])
def test_a_newcomer_finds_a_group_whose_first_five_members_have_just_crashed(
    spec: StackSpec, seed: int
) -> None:
    world = World(seed, spec)
    members = world.join(*"abcdefghij")
    assert members[0].view is not None
    by_address = {member.me: member for member in members}
    for address in members[0].view.members[:5]:
        by_address[address].crash()
    newcomer = world.start("newcomer")
    world.run_until(lambda: newcomer.view is not None, 10.0)
    assert newcomer.view is not None
    assert len(newcomer.view) > 1, "it did not create a group of its own"
    assert world.check() == []


@pytest.mark.parametrize("spec", [presets.lan(), presets.loopback()], ids=["lan", "loopback"])
def test_a_newcomer_creates_no_group_while_silent_crashes_are_found(spec: StackSpec) -> None:
    """The systems of the dead say nothing, so it takes longer than the joiner asks for."""
    alone = list[int]()
    for seed in range(12):
        world = World(seed, spec, loss=0.05)
        a, b, *_ = world.join(*"abcde")
        world.run(seed * 0.05)
        a.crash()
        b.crash()
        newcomer = world.start("newcomer")
        world.run_until(partial(has_view, newcomer), 15.0)
        assert newcomer.view is not None
        alone += [seed] if len(newcomer.view) == 1 else []
    assert alone == []


def test_one_member_answers_for_a_dead_coordinator_and_the_others_keep_quiet() -> None:
    world = World(3, presets.lan())
    a, *others = world.join(*"abcdefghij")
    a.crash()
    d = world.start("newcomer")
    world.run(0.3)
    answers = sum(m.stack.counters["answered_for_coordinator"] for m in others)
    questions = 0.3 / 0.06 * 2
    assert 1 <= answers <= questions, "about one per question, not one per member"
    assert d.view is None


def test_few_members_answer_for_a_late_coordinator_of_a_large_group() -> None:
    """Fifty members on one busy machine: answers of all to all made it busier still."""
    world = World(5, presets.loopback())
    members = world.join(*(f"m{number}" for number in range(50)))
    world.network.set_all(
        "delay", (0.15, 0.15)
    )  # Longer than the slots: no answer is heard in time.
    world.start("newcomer")
    world.run(1.0)
    answering = [m for m in members if m.stack.counters["answered_for_coordinator"]]
    assert 1 <= len(answering) <= 3


def test_the_coordinator_answers_alone_while_it_lives() -> None:
    world = World(4, presets.lan())
    members = world.join(*"abcde")
    world.join("f")
    assert sum(m.stack.counters["answered_for_coordinator"] for m in members) <= 1


@pytest.mark.parametrize("spec", [presets.lan(), presets.loopback()], ids=["lan", "loopback"])
def test_a_joiner_that_the_coordinator_does_not_answer_hints_at_its_crash(spec: StackSpec) -> None:
    """Without a hint the crash is found after up to four seconds."""
    world = World(5, spec)
    a, b, c = world.join("a", "b", "c")
    a.crash()
    d = world.start("d")
    world.run_until(lambda: d.view is not None, 1.5)
    assert d.view is not None
    assert set(d.view) == {b.me, c.me, d.me}


def test_a_hint_about_a_living_member_makes_no_view() -> None:
    world = World(6, presets.lan())
    a, b, c = world.join("a", "b", "c")
    views = len(a.views)
    for _ in range(20):
        for member in (b, c):
            member.stack.hint([a.stack.env.peer.endpoint], world.now)
        world.run(0.3)
    assert len(a.views) == views


def test_a_hint_about_a_dead_member_is_a_view_without_it_in_under_a_second() -> None:
    world = World(7, presets.lan())
    a, b, c = world.join("a", "b", "c")
    a.crash()
    world.run(0.05)
    c.stack.hint([a.stack.env.peer.endpoint], world.now)
    world.run_until(lambda: b.view is not None and a.me not in b.view, 0.8)


def test_a_crash_that_the_system_reports_is_a_view_at_once() -> None:
    seconds = list[float]()
    for seed in range(10):
        world = World(seed, presets.loopback(), refuse=True)
        members = world.join(*"abcde")
        world.run(1.0)
        victims = ([0], [3], [0, 1])[seed % 3]
        for victim in victims:
            members[victim].crash()
        began = world.now
        world.run_until(lambda world=world: world.united, 0.6)  # type: ignore[misc]
        seconds.append(world.now - began)
    assert sorted(seconds)[5] <= 0.3


def test_the_last_other_member_that_the_system_reports_is_a_view_at_once() -> None:
    seconds = list[float]()
    for seed in range(10):
        world = World(seed, presets.loopback(), refuse=True)
        members = world.join("a", "b")
        world.run(1.0)
        members[seed % 2].crash()
        began = world.now
        world.run_until(lambda world=world: world.united, 0.6)  # type: ignore[misc]
        seconds.append(world.now - began)
    assert sorted(seconds)[5] <= 0.4, "half an interval, verify_refused and a view"


def test_a_short_rejection_between_two_members_parts_them_not() -> None:
    world = World(4, presets.lan())
    a, b = world.join("a", "b")
    views = len(a.views)
    for _ in range(5):
        rule = world.drop(lambda f: {f.source, f.target} == {"a", "b"})
        for _ in range(2):
            a.stack.hint([b.stack.env.peer.endpoint], world.now)
            b.stack.hint([a.stack.env.peer.endpoint], world.now)
        world.run(0.3)
        rule.remove()
        world.run(2.0)
    assert len(a.views) == views


def test_a_process_at_the_endpoint_of_a_dead_member_is_in_the_group_at_once() -> None:
    for seed in range(6):
        world = World(seed, presets.lan())
        members = world.join(*"abcd")
        members[seed % 4].restart()
        world.run_until(lambda world=world: world.united, 0.5)  # type: ignore[misc]


@pytest.mark.parametrize("count", [2, 3, 5, 8])
@pytest.mark.parametrize("spec", [presets.loopback(), SEEDED], ids=["loopback", "seeds"])
def test_a_process_that_starts_again_is_in_the_group_within_the_time_to_verify(
    spec: StackSpec, count: int
) -> None:
    """The rest of a second is left to the start of the process."""
    bound = FailureDetector().verify + 0.2
    for seed in range(8):
        world = World(seed, spec, refuse=True)
        members = world.join(*"abcdefgh"[:count])
        world.run(1.0 + seed / 7)
        members[1 + seed % (count - 1)].restart()
        world.run_until(lambda world=world: world.united, bound)  # type: ignore[misc]


def test_a_member_that_only_one_other_does_not_reach_is_not_removed_by_a_hint() -> None:
    """A firewall between the coordinator and a member rejects for a second."""
    world = World(3, presets.lan())
    a, b, *_ = world.join(*"abcd")
    view = a.view
    rule = world.drop(lambda f: {f.source, f.target} == {"a", "b"})
    for _ in range(20):
        a.stack.hint([b.stack.env.peer.endpoint], world.now)
        b.stack.hint([a.stack.env.peer.endpoint], world.now)
        world.run(0.05)
    rule.remove()
    world.run(5.0)
    assert a.view == b.view == view


# Many at once ------------------------------------------------------------------------------------


def test_joiners_that_are_not_admitted_ask_less_and_less() -> None:
    world = World(5, presets.loopback())
    world.join("a", "b", "c")
    asked = list[str]()

    def count(flight: FrameInFlight) -> bool:
        if flight.kind == "DISCOVER" and flight.target == "b":
            asked.append(flight.source)
        return flight.kind == "JOIN"

    rule = world.drop(count)  # As if the coordinator were too busy.
    joiners = [world.start(f"joiner{number}") for number in range(10)]
    world.run(5.0)
    assert len(asked) <= 30 * len(joiners), "not one every 20 ms"
    rule.remove()
    world.run_until(lambda: world.united, 5.0)
    assert all(len(joiner.views) == 1 for joiner in joiners), "none created a group of its own"


def test_the_questions_of_many_groups_that_meet_grow_with_their_number() -> None:
    def answers(count: int) -> int:
        world = World(6, presets.loopback())
        names = [f"m{number}" for number in range(count)]
        world.partition(*([name] for name in names))
        for name in names:
            world.start(name)
        world.run(1.0)
        seen = list[str]()

        def note(flight: FrameInFlight) -> bool:
            if flight.kind == "PRESENT":
                seen.append(flight.source)
            return flight.kind == "MERGE"  # As if they were too busy for that.

        rule = world.drop(note)
        world.heal()
        world.run(3.0)
        rule.remove()
        world.run_until(lambda: world.united, 10.0)
        assert world.check() == []
        return len(seen)

    assert answers(32) < 8 * answers(8), "each with each would be 16 times as many"


def test_a_joiner_that_waits_for_its_view_asks_the_coordinator_alone() -> None:
    world = World(1, presets.lan())
    world.join(*"abc")
    world.drop(lambda seen: seen.kind == "JOIN")  # So that no view comes.
    asked: list[str] = []

    def note(seen: FrameInFlight) -> bool:
        if seen.kind == "DISCOVER" and seen.source == "d":
            asked.append(seen.target)
        return False

    world.drop(note)
    world.start("d")
    world.run(5.0)
    assert asked[:3] == ["a", "b", "c"], "the first question goes to all"
    assert len(asked) > 8
    assert set(asked[3:]) == {"a"}
    asked.clear()
    world.members["a"].crash()
    world.run_until(lambda: "b" in asked, 5.0)
    assert asked.count("b") == 1, "it no longer answers, and all are asked again"
