"""The race of the design note, its fix, and the checker that tells them apart."""

from __future__ import annotations

from collections import Counter

import pytest

from ringcast.ringbuffer import Added, ScheduleEnding, Threads, explore, main, replay, show
from ringcast.ringbuffer.checker import Ring, Schedule
from ringcast.ringbuffer.faulty import (
    LOW_BEFORE_NULL,
    NULL_FIRST,
    REMOVE_STEPS,
    AnyNull,
    LowFirst,
    NaiveAdd,
    all_removes,
    removing_in,
)
from ringcast.ringbuffer.ring import RingBuffer
from ringcast.ringbuffer.story import (
    ABSENT,
    DIFFERENT,
    NEXT_LAP,
    NOTE,
    PRESENT,
    STABLE,
    TWO_COPIES,
)

# The three tests that fail when a protection of the RingBuffer is taken away.


def test_a_copy_of_a_message_that_is_being_removed_is_not_added_again() -> None:
    assert explore(NOTE).breaches == []


def test_of_two_copies_that_come_at_once_one_is_added() -> None:
    assert explore(TWO_COPIES).breaches == []


def test_an_adder_that_finds_room_finds_the_slot_empty() -> None:
    assert explore(Threads(adds=(6,), present=(5,), capacity=1)).breaches == []


def test_the_number_of_schedules_is_known() -> None:
    counts = [explore(scenario).schedules for scenario in (NOTE, TWO_COPIES, DIFFERENT[-1])]
    assert counts == [49, 9_266, 41_524_084_350]


@pytest.mark.parametrize("scenario", PRESENT + ABSENT + DIFFERENT + NEXT_LAP + STABLE, ids=str)
def test_no_schedule_goes_wrong(scenario: Threads) -> None:
    assert explore(scenario).breaches == []


def test_a_late_adder_finds_its_cell_taken_whatever_has_happened_since() -> None:
    """Between #3 and #4 of T2 its message comes, is delivered and gives way to the next lap."""
    scenario = Threads(adds=(5, 5, 6), removes=2, capacity=1)
    run = replay(scenario, RingBuffer, (1,) * 4 + (0,) * 6 + (3,) * 5 + (2,) * 6 + (3,) * 5)
    assert run.taken() == [Added(5, "T1"), Added(6, "T3")]
    assert run.actors[1].step == "#4 CAS(null, element)"
    run.step(1)
    assert run.actors[1].results == [("#4 CAS(null, element)", False)]
    assert run.ready() == []


# What the checker finds in rings that are wrong.


def test_the_naive_add_delivers_twice() -> None:
    verdict = explore(NOTE, NaiveAdd)
    assert verdict.endings == {ScheduleEnding.TWICE: 18, ScheduleEnding.GOOD: 31}
    lines = show(replay(NOTE, NaiveAdd, ()), verdict.examples[ScheduleEnding.TWICE])
    assert [line.rstrip() for line in lines] == [
        "       T1 add(5)               T2 remove()            LOW  HD  HR  ring",
        "                                                        4   4   5  5/T0  .  .  .",
        "    1  read LOW                                         4   4   5  5/T0  .  .  .",
        "    2  #1 read HD                                       4   4   5  5/T0  .  .  .",
        "    3                          read HR                  4   4   5  5/T0  .  .  .",
        "    4                          read element             4   4   5  5/T0  .  .  .",
        "    5                          #1 write HD              4   5   5  5/T0  .  .  .",
        "    6                          #2 null element          4   5   5  .  .  .  .",
        "    7  #4 CAS(null, element)                            4   5   5  5/T1  .  .  .",
        "    8  raise HR -> True                                 4   5   5  5/T1  .  .  .",
        "    9                          #3 write LOW -> 5/T0     5   5   5  5/T1  .  .  .",
    ]


@pytest.mark.parametrize("scenario", PRESENT, ids=str)
def test_the_note_to_the_letter_holds_for_copies_of_what_is_there(scenario: Threads) -> None:
    assert explore(scenario, AnyNull).breaches == []
    assert ScheduleEnding.TWICE in explore(scenario, NaiveAdd).breaches


def test_the_note_to_the_letter_delivers_twice_when_two_copies_come_at_once() -> None:
    verdict = explore(TWO_COPIES, AnyNull)
    assert verdict.endings == {ScheduleEnding.TWICE: 1260, ScheduleEnding.GOOD: 8426}
    run = replay(TWO_COPIES, AnyNull, verdict.examples[ScheduleEnding.TWICE])
    assert [seqno for seqno, _ in run.taken() + run.afterwards()].count(5) == 2


@pytest.mark.parametrize(
    ("order", "scenario", "breach"),
    [
        (NULL_FIRST, NOTE, ScheduleEnding.TWICE),
        (("#2 null element", "#3 write LOW", "#1 write HD"), NOTE, ScheduleEnding.TWICE),
        (("#3 write LOW", "#2 null element", "#1 write HD"), NOTE, ScheduleEnding.TWICE),
        (("#3 write LOW", "#1 write HD", "#2 null element"), NOTE, ScheduleEnding.MARKS),
        (LOW_BEFORE_NULL, NEXT_LAP[0], ScheduleEnding.REFUSED),
    ],
)
def test_every_wrong_order_of_the_remove_breaks_something(
    order: tuple[str, ...], scenario: Threads, breach: ScheduleEnding
) -> None:
    assert breach in explore(scenario, all_removes()[order]).breaches


def test_the_right_order_written_step_by_step_is_the_remove() -> None:
    for scenario in (NOTE, TWO_COPIES, *NEXT_LAP[:4]):
        assert explore(scenario, removing_in(REMOVE_STEPS)) == explore(scenario)


def test_stability_that_writes_low_first_refuses_a_new_message() -> None:
    scenario = Threads(adds=(6,), present=(5,), capacity=1, stable=5)
    assert explore(scenario, LowFirst).breaches == [ScheduleEnding.REFUSED]
    assert explore(scenario).breaches == []


# The checker itself.


@pytest.mark.parametrize("ring_type", [RingBuffer, AnyNull, NaiveAdd])
@pytest.mark.parametrize(
    "scenario",
    [
        NOTE,
        Threads(adds=(5,), removes=2, present=(5,)),
        Threads(adds=(6, 5), present=(5,), capacity=1),
        Threads(adds=(6,), removes=2, present=(5,), capacity=1, stable=5),
    ],
    ids=str,
)
def test_counting_by_state_is_counting_one_by_one(scenario: Threads, ring_type: type[Ring]) -> None:
    endings: Counter[ScheduleEnding] = Counter()
    unfinished: list[Schedule] = [()]
    while unfinished:
        schedule = unfinished.pop()
        run = replay(scenario, ring_type, schedule)
        unfinished += [(*schedule, actor) for actor in run.ready()]
        if not run.ready():
            endings[run.ending()] += 1
    assert explore(scenario, ring_type).endings == endings


@pytest.mark.parametrize("ring_type", [AnyNull, NaiveAdd])
def test_the_examples_come_to_what_they_are_examples_of(ring_type: type[Ring]) -> None:
    for scenario in ABSENT[2:] + NEXT_LAP[2:4]:
        verdict = explore(scenario, ring_type)
        assert verdict.examples.keys() == verdict.endings.keys()
        for ending, schedule in verdict.examples.items():
            assert replay(scenario, ring_type, schedule).ending() is ending


def test_the_checker_runs_the_steps_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RingBuffer, "add_steps", NaiveAdd.add_steps)
    assert explore(NOTE).breaches == [ScheduleEnding.TWICE]


def test_the_story_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.ringbuffer.story.ALL", PRESENT[:2] + NEXT_LAP[:4])
    lines: list[str] = []
    assert main(lines.append) == 0
    assert sum("AGAIN" in line for line in lines) == 2
    assert any("schedules in all: all good" in line for line in lines)


def test_the_story_of_a_ring_that_is_wrong_ends_badly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.ringbuffer.story.ALL", (TWO_COPIES,))
    monkeypatch.setattr(RingBuffer, "add_steps", AnyNull.add_steps)
    assert main(lambda line: None) == 1
