"""Merges that come to nothing make the next one wait, for longer each time."""

from ringcast.control.membership.merge_pause import (
    FORGET_SECONDS,
    FREE_FAILURES,
    PAUSE_MAX,
    PAUSE_MIN,
    MergePause,
)
from tests.unit.control.membership.bench import Bench, coordinating


def failed(times: int) -> tuple[Bench, MergePause]:
    bench = coordinating()
    pause = MergePause(bench.env)
    for _ in range(times):
        pause.failed()
    return bench, pause


def test_the_first_failures_cost_nothing() -> None:
    assert failed(0)[1].is_over
    assert failed(FREE_FAILURES)[1].is_over


def test_each_further_failure_doubles_the_pause_up_to_a_bound() -> None:
    for times, seconds in ((1, PAUSE_MIN), (2, 2 * PAUSE_MIN), (99, PAUSE_MAX), (9_999, PAUSE_MAX)):
        bench, pause = failed(FREE_FAILURES + times)
        bench.env.now += seconds - 0.1
        assert not pause.is_over
        bench.env.now += 0.2
        assert pause.is_over


def test_a_merge_that_brings_a_group_ends_the_count() -> None:
    _, pause = failed(FREE_FAILURES)
    pause.succeeded()
    pause.failed()
    assert pause.is_over


def test_old_failures_are_forgotten() -> None:
    bench, pause = failed(FREE_FAILURES)
    bench.env.now += FORGET_SECONDS + 1
    pause.failed()
    assert pause.is_over
    assert bench.env.counters["failed_merges"] == FREE_FAILURES + 1
