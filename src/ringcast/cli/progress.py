"""Progress on standard error, at intervals, when it is a terminal."""

from __future__ import annotations

import sys
from time import monotonic

INTERVAL = 1.0
"""Seconds of real time between two lines."""


class ProgressTicker:
    """Rewrites one line; silent when standard error is not a terminal."""

    def __init__(self) -> None:
        self._next = monotonic() + INTERVAL
        self._shown = False

    def tick(self, done: int, total: int, virtual: float) -> None:
        """Show that this much is done."""
        if monotonic() >= self._next:
            self.say(f"{done:,} of {total:,} delivered after {virtual:.1f} simulated seconds")

    def say(self, text: str) -> None:
        """Show a line in place of the last one."""
        self._next = monotonic() + INTERVAL
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
