"""When missing messages are requested, and requested again."""

import pytest

from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.repair import (
    INITIAL_RTT_DELAYS,
    REPEAT_SECONDS_MIN,
    SIGHTINGS_MAX,
    TRIES_BEFORE_BACKOFF,
    Repair,
    RequestTiming,
)
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.timers import NEVER
from tests.unit.core.batches import run

DELAY = 0.001
INTERVAL = 0.1
MANY = 1_000


def sampled(round_trip: float = 0.004) -> RequestTiming:
    timing = RequestTiming(DELAY, INTERVAL)
    timing.answered(round_trip, 1, 0.0)
    return timing


def repair_with(*arrived: int) -> Repair:
    """A repair of a window in which these messages have arrived."""
    repair = Repair(ReceiveWindow(10_000), RequestTiming(DELAY, INTERVAL))
    for seqno in arrived:
        arrive(repair, seqno, 0.0)
    return repair


def arrive(repair: Repair, seqno: int, now: float) -> None:
    repair.window.put(run(seqno))
    repair.note_gaps(now)


def test_an_arrival_that_only_opens_a_gap_looks_at_no_earlier_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repair = repair_with(*range(3, 3 + 3 * SIGHTINGS_MAX, 3))
    looks: list[int] = []

    def look(ranges: RangeSet, low: int, high: int) -> bool:
        looks.append(low)
        return bool(ranges.clip(low, high))

    monkeypatch.setattr(RangeSet, "overlaps", look)
    arrive(repair, 1_000, 1.0)
    assert not looks
    arrive(repair, 4, 1.0)
    assert len(looks) == SIGHTINGS_MAX


# --- RequestTiming ------------------------------------------------------------------------------


def test_the_first_requests_are_evenly_spaced_then_the_timeout_doubles() -> None:
    timing, eager = sampled(), TRIES_BEFORE_BACKOFF
    first = timing.timeout(1)
    assert first == 0.004 + 4 * 0.002
    assert [timing.timeout(tries) for tries in range(1, eager + 1)] == [first] * eager
    assert [timing.timeout(eager + n) for n in (1, 2, 3)] == [2 * first, 4 * first, 8 * first]


def test_the_timeout_has_a_lower_and_an_upper_bound() -> None:
    assert sampled().timeout(100) == 2 * INTERVAL
    assert sampled(0.000_001).timeout(1) == REPEAT_SECONDS_MIN
    assert sampled(10.0).timeout(1) == 2 * INTERVAL
    assert sampled(10.0).timeout(100) == 8 * INTERVAL


def test_before_the_first_sample_the_timeout_is_a_multiple_of_the_least_delay() -> None:
    timing = RequestTiming(DELAY, INTERVAL)
    assert timing.timeout(1) == INITIAL_RTT_DELAYS * DELAY


def test_only_an_answer_to_a_single_request_is_a_sample() -> None:
    timing = sampled()
    before = timing.timeout(1)
    timing.answered(0.001, 2, 0.0)
    assert timing.timeout(1) == before
    timing.answered(0.5, 1, 0.0)
    assert timing.timeout(1) > before


def test_answers_after_several_requests_make_the_timeout_longer_bit_by_bit() -> None:
    """Else a receiver that takes the round trip for too short would repeat each request."""
    timing = sampled()
    before = timing.timeout(1)
    timing.answered(0.5, 2, 0.0)
    assert before < timing.timeout(1) < 1.25 * before
    for number in range(12):
        timing.answered(0.05, 2, 1.0 + number)
    assert timing.timeout(1) >= 0.05


def test_many_gaps_that_are_repaired_at_once_make_the_timeout_longer_once() -> None:
    """Else an outage that ends makes each repair after it wait a hundred times as long."""
    timing = sampled()
    before = timing.timeout(1)
    for _ in range(50):
        timing.answered(0.5, 2, 1.0)
    assert before < timing.timeout(1) < 1.25 * before


def test_the_first_answer_is_a_sample_even_after_several_requests() -> None:
    timing = RequestTiming(DELAY, INTERVAL)
    timing.answered(0.01, 3, 0.0)
    assert timing.timeout(1) == 0.01 + 4 * 0.005


# --- Repair -------------------------------------------------------------------------------------


def test_a_window_without_gaps_has_no_deadline() -> None:
    assert repair_with(1, 2, 3).deadline == NEVER


def test_a_gap_is_requested_after_the_reordering_delay() -> None:
    repair = repair_with(1, 3)
    assert repair.deadline == DELAY
    assert not repair.due(DELAY / 2, MANY, MANY)
    assert list(repair.due(DELAY, MANY, MANY)) == [(2, 2)]


def test_a_gap_that_closes_by_itself_is_not_requested_and_raises_the_delay() -> None:
    repair = repair_with(1, 3)
    arrive(repair, 2, DELAY / 2)
    assert repair.deadline == NEVER
    arrive(repair, 5, 1.0)
    arrive(repair, 4, 1.01)
    assert repair.timing.reordering.seconds > DELAY


def test_an_unanswered_request_is_repeated_after_the_timeout() -> None:
    repair = repair_with(1, 3)
    repair.due(DELAY, MANY, MANY)
    again = DELAY + repair.timing.timeout(1)
    assert repair.deadline == again
    assert list(repair.due(again, MANY, MANY)) == [(2, 2)]


def test_what_did_not_fit_a_request_is_requested_when_the_first_part_has_arrived() -> None:
    repair = repair_with(1, 6)
    assert list(repair.due(DELAY, MANY, 2)) == [(2, 3)]
    arrive(repair, 2, 0.002)
    arrive(repair, 3, 0.003)
    assert repair.deadline == 0.003
    assert list(repair.due(0.003, MANY, MANY)) == [(4, 5)]


def test_a_request_that_is_given_up_is_no_round_trip() -> None:
    repair = repair_with(1, 5)
    assert repair.due(1.0, MANY, MANY).count == 3
    repair.window.skip_within(2, 4)
    repair.note_gaps(9.0)
    assert repair.deadline == NEVER
    samples = [repair.timing.rtt.has_sample]
    arrive(repair, 7, 10.0)
    assert repair.due(11.0, MANY, MANY).count == 1
    arrive(repair, 6, 11.004)
    assert [*samples, repair.timing.rtt.has_sample] == [False, True]
    assert repair.timing.rtt.timeout < 0.1


def test_a_gap_that_is_given_up_before_a_request_is_no_reordering() -> None:
    repair = repair_with(1, 5)
    before = repair.timing.reordering.seconds
    repair.window.skip_within(2, 4)
    repair.note_gaps(9.0)
    assert repair.timing.reordering.seconds == before


def test_expiring_makes_everything_due_at_once() -> None:
    repair = repair_with(1, 3)
    repair.due(DELAY, MANY, MANY)
    repair.expire(0.001_1)
    assert repair.deadline == 0.001_1
    assert list(repair.due(0.001_1, MANY, MANY)) == [(2, 2)]


def test_the_number_of_sightings_is_bounded_and_no_gap_is_forgotten() -> None:
    repair = repair_with()
    seqnos = range(2, 2 * (3 * SIGHTINGS_MAX) + 1, 2)
    for number, seqno in enumerate(seqnos):
        arrive(repair, seqno, number * 1e-9)
    assert len(repair._sightings) == SIGHTINGS_MAX
    wanted = repair.due(1.0, MANY, MANY)
    assert wanted == repair.window.gaps
