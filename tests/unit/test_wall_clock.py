"""The time of the day by a steady clock, also where the process loses the CPU between two looks."""

import time
from itertools import chain, repeat

import pytest

from ringcast.wall_clock import wall_offset_ns


def test_a_look_that_was_interrupted_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = chain([4_000_000, 9_000_000, 0, 2_000_000], repeat(1_000))
    now = [1_000_000_000]

    def wall() -> int:
        seen = now[0] + 500
        now[0] += next(pauses)
        return seen

    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(time, "time_ns", wall)
    assert wall_offset_ns() == 500


def test_the_sum_is_the_time_of_the_day() -> None:
    before = time.time_ns()
    found = time.monotonic_ns() + wall_offset_ns()
    assert before - 1_000_000_000 < found < time.time_ns() + 1_000_000_000
