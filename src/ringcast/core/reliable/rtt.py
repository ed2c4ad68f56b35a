"""The round-trip estimator: after how many seconds an unanswered request is repeated.

It follows RFC 6298: a smoothed round trip plus four times its mean deviation. By Karn's rule a
request that was repeated gives no sample, since its answer may belong to either copy; instead the
timeout backs off until a request is answered that was sent once.
"""

from __future__ import annotations

BACKOFF_MAX = 8
"""The most by which the timeout is multiplied while requests stay unanswered."""


class RttEstimator:
    """The round trip of one kind of request and its answer."""

    __slots__ = ("_backoff", "_deviation", "_mean", "has_sample")

    def __init__(self, initial: float) -> None:
        """initial: the timeout in seconds until the first sample."""
        self._mean, self._deviation = initial, 0.0
        self._backoff = 1
        self.has_sample = False

    @property
    def timeout(self) -> float:
        """Seconds after which an unanswered request may be repeated."""
        return self._backoff * (self._mean + 4 * self._deviation)

    def sample(self, seconds: float) -> None:
        """Count the round trip of a request that was sent once; ends the back-off."""
        self._backoff = 1
        if not self.has_sample:
            self.has_sample, self._mean, self._deviation = True, seconds, seconds / 2
            return
        error = seconds - self._mean
        self._mean += error / 8
        self._deviation += (abs(error) - self._deviation) / 4

    def back_off(self) -> None:
        """Double the timeout, up to BACKOFF_MAX times: a request was repeated."""
        self._backoff = min(2 * self._backoff, BACKOFF_MAX)
