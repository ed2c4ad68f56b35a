"""The round-trip estimator: after how many seconds an unanswered request is repeated.

It follows RFC 6298: a smoothed round trip plus four times its mean deviation. By Karn's rule a
request that was repeated gives no sample, since its answer may belong to either copy; instead the
timeout backs off until a request is answered that was sent once.
"""

from __future__ import annotations

DOUBT = 0.25
"""By how much the mean grows when a request was answered that was repeated. Where a third of them
are lost, the samples of the others still bring it down."""
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

    def doubt(self, seconds: float) -> None:
        """A request that was repeated was answered this long after the first time: what it was
        repeated for may have been under way already, so the round trip may be longer."""
        self._mean += min(max(seconds - self._mean, 0.0), DOUBT * self._mean)

    def back_off(self) -> None:
        """Double the timeout, up to BACKOFF_MAX times: a request was repeated."""
        self._backoff = min(2 * self._backoff, BACKOFF_MAX)
