"""The pause after merges that came to nothing.

A merge stops all members of a group. Any process of an open group may claim to coordinate another
group, have this one stopped, and bring nobody. The first failures cost nothing, since real merges
fail as well; each one after these makes the next merge wait twice as long.
"""

from __future__ import annotations

import math

from ringcast.core.stack.env import Env

FREE_FAILURES = 2
"""Merges in succession that may fail before there is a pause."""
PAUSE_MIN, PAUSE_MAX = 2.0, 64.0
"""The first and the longest pause, in seconds."""
FORGET_SECONDS = 2 * PAUSE_MAX
"""Failures are forgotten this long after the last one."""
_DOUBLINGS_MAX = int(math.log2(PAUSE_MAX / PAUSE_MIN))


class MergePause:
    """Counts merges that came to nothing, and says when the next may begin."""

    __slots__ = ("_env", "_failed_at", "_failures", "_until")

    def __init__(self, env: Env) -> None:
        self._env = env
        self._failures = 0
        self._failed_at = self._until = -math.inf

    @property
    def is_over(self) -> bool:
        """Whether a merge may begin."""
        return self._env.now >= self._until

    def failed(self) -> None:
        """The members were stopped for a merge, and no other group came."""
        now = self._env.now
        if now - self._failed_at > FORGET_SECONDS:
            self._failures = 0
        self._failures += 1
        self._failed_at = now
        self._env.counters["failed_merges"] += 1
        if self._failures > FREE_FAILURES:
            doublings = min(self._failures - FREE_FAILURES - 1, _DOUBLINGS_MAX)
            self._until = now + PAUSE_MIN * 2.0**doublings

    def succeeded(self) -> None:
        """A merge has brought another group."""
        self._failures = 0
