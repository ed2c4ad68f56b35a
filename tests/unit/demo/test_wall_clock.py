"""A clock that jumps: the time of the day does, and neither timers nor traces do."""

import time

import pytest

from ringcast.demo.wall_clock import jump
from ringcast.trace.live import SteadyClock

HOUR = 3_600.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the jumps."""
    monkeypatch.setattr(time, "time", time.time)
    monkeypatch.setattr(time, "time_ns", time.time_ns)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_the_time_of_the_day_jumps_and_a_trace_goes_on(seconds: float) -> None:
    wall, steady, trace = time.time(), time.monotonic(), SteadyClock()
    traced = trace.now_us()
    jump(seconds)
    try:
        assert abs(time.time() - wall - seconds) < HOUR / 2
        assert abs(time.time_ns() / 1e9 - wall - seconds) < HOUR / 2
        assert 0.0 <= time.monotonic() - steady < HOUR / 2
        assert 0 <= trace.now_us() - traced < HOUR / 2 * 1_000_000
    finally:
        jump(-seconds)
