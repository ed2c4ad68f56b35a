"""The reordering delay: how long a gap may still close by itself before it is requested."""

from __future__ import annotations


class ReorderingDelay:
    """Adapts to how late overtaken messages arrive, as the reordering window of RFC 8985 does."""

    __slots__ = ("_lateness", "seconds_max", "seconds_min")

    def __init__(self, seconds_min: float, seconds_max: float) -> None:
        self.seconds_min = seconds_min
        self.seconds_max = seconds_max
        self._lateness = 0.0

    @property
    def seconds(self) -> float:
        """How long after its first sighting a gap is requested."""
        return min(max(self.seconds_min, 1.25 * self._lateness), self.seconds_max)

    def sample(self, seconds: float) -> None:
        """A gap closed by itself after this long: the path reorders at least that much."""
        self._lateness = max(seconds, 0.9 * self._lateness)

    def decay(self) -> None:
        """A gap had to be requested: the path may reorder less than assumed."""
        self._lateness *= 0.95
