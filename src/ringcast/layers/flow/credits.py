"""What a receiver knows of a sender that asks for credits: how much of it waits to be taken."""

from __future__ import annotations

from collections import deque

from ringcast.core.wire.frames import CreditRequest


class Source:
    """What this receiver knows of one sender."""

    __slots__ = ("_runs", "asked", "count", "forced", "forced_high", "taken", "urgent", "waiting")

    def __init__(self, start: int) -> None:
        self.taken = start
        """The seqno up to which the application has taken its messages."""
        self.count = 0
        """Bytes that the application has taken since the last answer."""
        self.waiting = 0
        """Bytes that have arrived and that the application has not taken."""
        self.asked: CreditRequest | None = None
        """The request that is not answered yet."""
        self.urgent = False
        self.forced = 0
        """Bytes that may come on top, since urgent requests were answered while some were
        missing."""
        self.forced_high = 0
        self._runs: deque[tuple[int, int]] = deque()

    def came(self, last: int, nbytes: int) -> None:
        """A run goes up to the application."""
        self._runs.append((last, nbytes))
        self.waiting += nbytes

    def take(self, up_to: int) -> None:
        """The application has taken everything up to here."""
        runs = self._runs
        while runs and runs[0][0] <= up_to:
            nbytes = runs.popleft()[1]
            self.waiting -= nbytes
            self.count += nbytes
        self.taken = max(self.taken, up_to)
        if self.taken >= self.forced_high:
            self.forced = 0

    def answer(self, request: CreditRequest) -> None:
        """The request is granted."""
        if self.taken < request.high:
            self.forced += request.spent
            self.forced_high = max(self.forced_high, request.high)
        self.asked, self.urgent, self.count = None, False, 0
