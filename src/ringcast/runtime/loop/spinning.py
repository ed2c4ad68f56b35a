"""Spinning: a caller that has just sent a single message polls for the answer before it sleeps.

Waking a thread costs more than polling for `SPIN_SECONDS`. After each spin that times out the next
1, 2, 4 … spins are skipped, up to `SPIN_SKIPS_MAX`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

SPIN_SECONDS = 0.000_3
"""Seconds for which a caller that sent a single message polls for an answer before it sleeps."""
SPIN_SKIPS_MAX = 16
"""The most spins that are skipped after spins that timed out."""


class Spinning:
    """When the callers of one member spin."""

    __slots__ = ("_clock", "_last_skip", "_skips_left", "_until", "asks", "seconds")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: the time; a test gives its own."""
        self._clock = clock
        self.asks = False
        """Whether a single message, a call or a reply was just sent: an answer may follow."""
        self.seconds = SPIN_SECONDS if _cores() > 1 else 0.0
        """0 on a single core, where the answering process cannot run until this one sleeps."""
        self._skips_left = self._last_skip = 0
        """Spins that are still skipped, and the length of the last back-off."""
        self._until = 0.0
        """When the current spin ends; 0 when there is none."""

    def is_on(self) -> bool:
        """Whether to spin: one is under way, or a message was just sent and the back-off allows
        it."""
        if self.asks:
            self.asks = False
            if self._skips_left:
                self._skips_left -= 1
            else:
                self._until = self._clock() + self.seconds
        return self._until > 0.0

    def answered(self) -> None:
        """Something arrived that may be the answer: end the spin and the back-off."""
        if self._until:
            self._until, self._last_skip = 0.0, 0

    def has_time(self) -> bool:
        """Whether the spin goes on."""
        return self._clock() < self._until

    def time_out(self) -> None:
        """No answer arrived: end the spin, if there is one, and lengthen the back-off."""
        if self._until:
            self._skips_left = self._last_skip = min(2 * self._last_skip or 1, SPIN_SKIPS_MAX)
            self._until = 0.0

    def spin(self, poll: Callable[[], bool]) -> bool:
        """Poll until something arrives or the spin times out; whether something arrived."""
        while self.has_time():
            if poll():
                return True
        self.time_out()
        return False


def _cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
