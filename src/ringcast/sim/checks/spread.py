"""How values are spread, in little memory however many there are: quantiles to three digits."""

from __future__ import annotations

from collections import Counter

EXACT = 1_000
"""Microseconds up to here are kept as they are; above, three digits of them."""


class Spread:
    """Durations in seconds, each with a weight."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._weights: Counter[int] = Counter()

    def add(self, seconds: float, weight: int = 1) -> None:
        """A spread with the times multiplied by this factor."""
        self.count += weight
        self.longest = max(self.longest, seconds)
        self._weights[_rounded(round(seconds * 1e6))] += weight

    def quantile(self, share: float) -> float | None:
        """The duration that this share of all does not exceed; None when there are none."""
        left = share * self.count
        for micros in sorted(self._weights):
            left -= self._weights[micros]
            if left <= 0:
                return min(micros / 1e6, self.longest)
        return self.longest if self.count else None


def _rounded(micros: int) -> int:
    """The number with its first three digits only, so that there are few different ones."""
    if micros < EXACT:
        return micros
    unit: int = 10 ** (len(str(micros)) - 3)
    return -(-micros // unit) * unit
