"""The only sleeps of the tests: a condition that no event announces, and time that has to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.005
SOON = 30.0


def wait_until(is_so: Callable[[], bool]) -> None:
    """Poll for a condition that no event announces; fails when it takes too long."""
    until = time.monotonic() + SOON
    while not is_so():
        assert time.monotonic() < until, "the condition never became true"
        time.sleep(POLL_SECONDS)


def block(seconds: float) -> None:
    """Block this thread: a busy application, or a time over which something is measured."""
    time.sleep(seconds)
