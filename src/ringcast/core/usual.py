"""How long an answer usually takes, so that a question whose answer is lost is repeated in time.

As TCP finds its timeout (RFC 6298): a running mean and how far answers are off it. A question that
was repeated says nothing, since nobody knows which of the two was answered; but until one is
answered that was not, the next ones are repeated later.
"""

from __future__ import annotations

BACKOFF_MAX = 8
"""The most by which questions are repeated later than answers usually take."""


class Usual:
    """What is known of the answers to one kind of question."""

    __slots__ = ("_backoff", "_is_known", "_mean", "_off")

    def __init__(self, guess: float) -> None:
        """guess: seconds after which a question is repeated as long as nothing is known."""
        self._mean, self._off = guess, 0.0
        self._is_known = False
        self._backoff = 1

    @property
    def pause(self) -> float:
        """Seconds after which a question that was not answered may be repeated."""
        return self._backoff * (self._mean + 4 * self._off)

    def answered(self, seconds: float) -> None:
        """A question that was asked once was answered after so long."""
        self._backoff = 1
        if not self._is_known:
            self._is_known, self._mean, self._off = True, seconds, seconds / 2
            return
        off = seconds - self._mean
        self._mean += off / 8
        self._off += (abs(off) - self._off) / 4

    def repeated(self) -> None:
        """A question was repeated for the first time."""
        self._backoff = min(2 * self._backoff, BACKOFF_MAX)
