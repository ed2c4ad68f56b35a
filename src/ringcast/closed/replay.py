"""Replay windows: which counters of a sender were used."""

from __future__ import annotations

WINDOW = 4_096
"""Datagrams of one sender that may overtake each other; older ones count as replayed."""
_MASK = (1 << WINDOW) - 1


class ReplayWindow:
    """The counters of one sender: look with `is_used`, and `mark` once the tag was verified."""

    __slots__ = ("_bits", "high")

    def __init__(self, high: int = 0) -> None:
        """high: the counter up to which everything counts as used."""
        self.high = high
        """The highest counter that was marked."""
        self._bits = _MASK if high else 0
        """Bit n stands for the counter `high` - n."""

    def is_used(self, counter: int) -> bool:
        """Whether a counter was marked, or is too old to tell."""
        age = self.high - counter
        return age >= 0 and (age >= WINDOW or bool(self._bits >> age & 1))

    def mark(self, counter: int) -> None:
        """Mark a counter that is not used."""
        ahead = counter - self.high
        if ahead <= 0:
            self._bits |= 1 << -ahead
            return
        self.high = counter
        self._bits = (self._bits << ahead & _MASK | 1) if ahead < WINDOW else 1
