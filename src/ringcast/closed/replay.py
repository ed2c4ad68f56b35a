"""Replay windows: which counters of a sender were used."""

from __future__ import annotations

WINDOW = 4_096
"""Datagrams of one sender that may overtake each other; older ones count as replayed."""
_MASK = (1 << WINDOW) - 1


class ReplayWindow:
    """The counters of one sender: look with `is_used`, and `mark` once the tag was verified.

    Counters that come one after the other are a number, the run; bits are touched only where a
    datagram was lost or has overtaken another.
    """

    __slots__ = ("_bits", "_run", "high")

    def __init__(self, high: int = 0) -> None:
        """high: the counter up to which everything counts as used."""
        self.high = high
        """The highest counter that was marked."""
        self._run = 0
        """How many counters were marked one after the other, up to `high`."""
        self._bits = _MASK if high else 0
        """Bit n stands for the counter `high` - `_run` - n."""

    def is_used(self, counter: int) -> bool:
        """Whether a counter was marked, or is too old to tell."""
        age = self.high - counter
        if age < 0:
            return False
        return age < self._run or age >= WINDOW or bool(self._bits >> (age - self._run) & 1)

    def mark(self, counter: int) -> None:
        """Mark a counter that is not used."""
        ahead = counter - self.high
        if ahead == 1:
            self.high = counter
            self._run += 1
            return
        run, self._run = min(self._run, WINDOW), 0
        bits = (self._bits << run | (1 << run) - 1) & _MASK
        if ahead <= 0:
            self._bits = bits | 1 << -ahead
            return
        self.high = counter
        self._bits = (bits << ahead & _MASK | 1) if ahead < WINDOW else 1
