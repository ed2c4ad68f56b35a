"""How small pieces are timed: the best of some rounds, beside a loop of plain Python.

Everything that disturbs a round makes it longer, so the shortest is nearest to the truth. The
garbage collector is off meanwhile: it would go through whatever was prepared, time and again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

ROUNDS = 7
CALIBRATION_LOOPS = 200_000

Work = Callable[[], int]
"""Does something with messages, and says with how many."""


class Case(NamedTuple):
    """Something to time."""

    name: str
    prepare: Callable[[], Work]
    """Makes what the work needs, for one round, with the clock not yet running."""


def time_all(cases: Iterable[Case], rounds: int = ROUNDS) -> Iterator[tuple[str, float]]:
    """Each case with its nanoseconds a message."""
    for case in cases:
        yield case.name, time_case(case, rounds)


def time_case(case: Case, rounds: int) -> float:
    """Nanoseconds a message, the best of the rounds."""
    return round(min(_time(case.prepare()) for _ in range(rounds)), 2)


def calibrate(rounds: int = ROUNDS) -> float:
    """Nanoseconds that plain Python takes for one turn of a loop here: the unit of all others."""
    return time_case(Case("calibration", lambda: _plain_python), rounds)


def _time(work: Work) -> float:
    gc.collect()
    gc.disable()
    try:
        before = time.process_time_ns()
        messages = work()
        return (time.process_time_ns() - before) / messages
    finally:
        gc.enable()


def _plain_python() -> int:
    """Calls, additions, table look-ups, small objects: what protocol code consists of."""
    table: dict[int, tuple[int, bytes]] = {}
    payload, total = b"x" * 100, 0
    for number in range(CALIBRATION_LOOPS):
        table[number & 1023] = (number, payload[:50])
        total += len(table[number & 511])
        total = min(total, 1 << 40)
    assert total
    return CALIBRATION_LOOPS
