"""The time of the day by a steady clock: when messages and traces say that something happened."""

from __future__ import annotations

import time

_TRIES = 5


def wall_offset_ns() -> int:
    """What to add to `time.monotonic_ns()` for the time of the day.

    A process can lose the CPU between its looks at the two clocks. So it looks several times, and
    takes the look that took the least time.
    """
    looks = []
    for _ in range(_TRIES):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, wall - (before + after) // 2))
    return min(looks)[1]
