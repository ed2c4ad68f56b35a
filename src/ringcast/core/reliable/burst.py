"""The burst of a paced sender: how much it may send at once when it was woken late.

A process that gets its turn every 15 ms has to send 15 ms of its rate at once, or it never reaches
the rate; a queue may be shorter than that. So a burst grows while it is not enough, and shrinks
when it was lost.
"""

from __future__ import annotations

BURST_BYTES_MIN = 32_000
"""What may be sent at once when the process was woken late: half of a short queue, or"""
BURST_SECONDS_MIN = 0.0015
"""this many seconds of the rate, whichever is more."""
BURST_SECONDS_MAX = 0.03
"""The most of it, in seconds of the rate."""
BURST_GROWTH_FIRST, BURST_GROWTH = 1.3, 1.15
"""Growth of a burst each time that it was not enough, until one was lost; and then once per
phase."""
LOST_BY_CHANCE = 4
"""Lost messages that say nothing: two packets that were lost by chance."""
BURST_LOST = 0.1
BURST_CUT = 0.7
"""What is left of a burst when a request says that this part of it was lost, by more than chance.
"""
CHANCE_SPREAD = 1.5
"""What is lost by chance does not count, up to this many times its share."""


class Burst:
    """The burst of one sender."""

    __slots__ = ("_has_lost", "_is_late", "nbytes")

    def __init__(self) -> None:
        self.nbytes = float(BURST_BYTES_MIN)
        """Bytes that may be sent at once."""
        self._is_late = False
        """Whether it was not enough in this phase."""
        self._has_lost = False

    def limit(self, budget: float, pace: float, mtu: int, excess: float) -> float:
        """What is left of a budget that is more than a burst. A probe, whose pace is above the rate
        by a factor, may send bursts that are larger by it, or it would find no higher rate; it says
        nothing of what a burst has to be."""
        most = max(self._size(pace) * max(1.0, excess), mtu)
        if budget > most and not excess:
            self._is_late = True
            if not self._has_lost:
                self._grow(BURST_GROWTH_FIRST, pace)
                most = max(self._size(pace), mtu)
        return min(budget, most)

    def on_lost(self, count: int, message_bytes: float, chance: float) -> None:
        """Messages were requested at once, where this share is lost by chance."""
        share = BURST_LOST + CHANCE_SPREAD * chance
        if (count - LOST_BY_CHANCE) * message_bytes > share * self.nbytes:
            self.nbytes = max(self.nbytes * BURST_CUT, BURST_BYTES_MIN)
            self._has_lost = True

    def on_phase(self, pace: float) -> None:
        """A phase is over."""
        if self._is_late:
            self._is_late = False
            self._grow(BURST_GROWTH, pace)

    def end_start(self, gain: float) -> None:
        """The start is over, which went faster than the rate by this factor."""
        self.nbytes = max(self.nbytes / gain, BURST_BYTES_MIN)

    def _size(self, pace: float) -> float:
        return max(self.nbytes, BURST_SECONDS_MIN * pace)

    def _grow(self, factor: float, pace: float) -> None:
        most = max(BURST_BYTES_MIN, BURST_SECONDS_MAX * pace)
        self.nbytes = max(min(self._size(pace) * factor, most), BURST_BYTES_MIN)
