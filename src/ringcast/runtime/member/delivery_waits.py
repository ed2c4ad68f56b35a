"""Callers that wait until other members have delivered: by a round of stability, or all that a
member has sent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from time import monotonic

from ringcast.core.model.address import Address
from ringcast.core.stack.part import Receipt
from ringcast.core.stack.stack import Stack
from ringcast.errors import Closed, LocalError, Timeout
from ringcast.runtime.member.blocked_senders import OWN_APPLICATION, names
from ringcast.runtime.member.outgoing import Outgoing, PendingSend

LOOK_SECONDS_MIN, LOOK_SECONDS_MAX = 0.000_5, 0.005
"""Seconds between two looks at whether the wait is over, which double."""
REPEAT_SECONDS = 0.25
"""Seconds after which a round is started again: a frame of it may be lost."""
FLUSH_ROUND_SECONDS = 0.1
"""Seconds between two rounds for a flush: a member may not have taken everything at the first."""


class StabilityRounds:
    """One caller's wait for a round."""

    def __init__(self) -> None:
        self._goal: int | None = None
        self._repeat_at = 0.0

    def look(self, stack: Stack, now: float) -> dict[Address, int] | None:
        """Start the round, or see whether it has ended: what is stable, None while it goes on.

        Raises Closed; LocalError if no protocol of the stack knows what is stable.
        """
        if stack.closed is not None:
            raise Closed(f"the group is closed: {stack.closed}")
        marks = stack.stability
        if marks is None:
            raise LocalError("this stack has neither Stability nor NakAck4: add one of them")
        if self._goal is None or (marks.rounds_done < self._goal and now >= self._repeat_at):
            stack.env.now = max(now, stack.env.now)
            goal = marks.begin_round()
            self._goal = goal if self._goal is None else self._goal
            self._repeat_at = now + REPEAT_SECONDS
        return marks.stable_seqnos() if marks.rounds_done >= self._goal else None

    @staticmethod
    def timeout(seconds: float | None) -> Timeout:
        """What the caller gets when its time is over."""
        return Timeout(
            f"the round of stability did not end within {max(seconds or 0.0, 0.0):g} seconds"
        )


class PendingFlush:
    """One caller's wait. `end` is to be called when it waits no longer."""

    def __init__(self, stack: Stack, outgoing: Outgoing) -> None:
        self._stack, self._outgoing = stack, outgoing
        self._runs: list[PendingSend] | None = None
        """The sends that waited for room at the time of the call."""
        self._receipts: list[Receipt] | None = None
        self._is_barrier = False
        self._round_at = 0.0
        self.missing: list[Address] = []
        """The members that lack something, as of the last look."""

    def look(self, now: float) -> bool:
        """Whether all other members have delivered what was sent before the first look.

        Raises Closed.
        """
        if self._stack.closed is not None:
            raise Closed(f"the group is closed: {self._stack.closed}")
        if self._runs is None:
            self._outgoing.flush(now)
            self._runs = self._outgoing.runs
        if self._receipts is None:
            self._find_receipts(now)
        if self._receipts is None:
            self.missing = self._stack.waits_for
            return False
        self.missing = [*dict.fromkeys(m for receipt in self._receipts for m in receipt())]
        if self.missing and now >= self._round_at:
            self._round_at = now + FLUSH_ROUND_SECONDS
            if self._stack.stability is not None:
                self._stack.stability.begin_round()
        return not self.missing

    def _find_receipts(self, now: float) -> None:
        assert self._runs is not None
        if not all(run.done for run in self._runs):
            return
        if not self._is_barrier:  # Later sends wait, so that layers come to an end of the earlier.
            self._is_barrier = True
            self._outgoing.barriers += 1
        self._receipts = self._stack.receipts(now)
        if self._receipts is not None:
            self.end()

    def end(self) -> None:
        """Let later sends go on."""
        if self._is_barrier:
            self._is_barrier = False
            self._outgoing.barriers -= 1

    def timeout(self, seconds: float) -> Timeout:
        """What the caller gets when its time is over."""
        who = names(self._stack, self.missing)
        if self._stack.env.me in self.missing:
            why = OWN_APPLICATION
        elif who:
            have = "has" if len(who) == 1 else "have"
            why = f"{', '.join(who)} {have} not taken all that was sent"
        else:
            why = "a view is being made"
        return Timeout(f"flush gave up after {seconds:g} seconds: {why}", waits_for=tuple(who))


def looks(seconds: float | None) -> Iterator[float]:
    """Seconds to wait after each look: at least one look, and the last when the time is over."""
    deadline = math.inf if seconds is None else monotonic() + seconds
    pause, left = LOOK_SECONDS_MIN, math.inf
    while left > 0:
        left = max(deadline - monotonic(), 0.0)
        yield min(pause, left)
        pause = min(2 * pause, LOOK_SECONDS_MAX)
