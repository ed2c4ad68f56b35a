"""The wall clock of this process, which can be set forward and back: what `date -s` does to all."""

from __future__ import annotations

import time

_time, _time_ns = time.time, time.time_ns
_offset = [0.0]


def jump(seconds: float) -> None:
    """From now on, this process sees another time of the day; `time.monotonic` goes on."""
    _offset[0] += seconds
    vars(time).update(
        time=lambda: _time() + _offset[0],
        time_ns=lambda: _time_ns() + int(_offset[0] * 1_000_000_000),
    )
