"""Repair: when to ask for what is missing in one window.

A gap is asked for at its second sighting: first seen when a later message overtakes it, asked for
when it is still there after a delay that adapts to the reordering seen on the path, so that
reordering costs no request and a loss does not wait for an interval. All gaps are asked for at
once, as ranges. What was asked for and did not come is asked for again after a round trip and four
times its usual variation (as TCP does), a few times; then twice as long, and so on up to a bound.

Gaps only open at the high end of a window, so a sighting is an interval of seqnos: what is still
missing in it is read from the window's gaps when its time comes, and nothing needs to be updated
when messages arrive.
"""

from __future__ import annotations

from ringcast.core.ranges import RangeSet
from ringcast.core.timers import NEVER
from ringcast.core.windows import ReceiveWindow

SIGHTINGS_MAX = 64
EAGER = 3
"""So often it is asked at the same interval: that a request or its answer was lost as well says
nothing of the path, and who waits for long is what all wait for."""
GUESS = 5
"""How many times the least delay a round trip takes, until one was seen."""


class Pace:
    """What a path has shown: its round trip and how late overtaken messages come."""

    __slots__ = ("_reorder", "_rtt", "_spread", "delay_max", "delay_min", "repeat_min")

    def __init__(self, delay_min: float, delay_max: float, repeat_min: float = 0.0015) -> None:
        self.delay_min = delay_min
        self.delay_max = delay_max
        self.repeat_min = repeat_min
        self._reorder = 0.0
        self._rtt: float | None = None
        self._spread = 0.0
        """How far round trips are from their mean, on average."""

    @property
    def delay(self) -> float:
        """How long after its first sighting a gap is asked for."""
        return min(max(self.delay_min, 1.25 * self._reorder), self.delay_max)

    def repeat(self, tries: int) -> float:
        """How long after having asked so many times it is asked again."""
        wait = GUESS * self.delay_min if self._rtt is None else self._rtt + 4 * self._spread
        first = min(max(self.repeat_min, wait), 2 * self.delay_max)
        longer = 2.0 ** min(max(tries - EAGER, 0), 16)
        return min(first * longer, max(2 * self.delay_max, 4 * first))

    def answered(self, seconds: float, tries: int) -> None:
        """An answer came so long after the first of so many requests.

        Which of several was answered is not known, so that says nothing, except at the beginning:
        then it is better than a guess.
        """
        if self._rtt is None:
            self._rtt, self._spread = seconds, seconds / 2
        elif tries == 1:
            self._spread += (abs(seconds - self._rtt) - self._spread) / 4
            self._rtt += (seconds - self._rtt) / 8

    def overtaken(self, seconds: float) -> None:
        """Something came by itself, this late."""
        self._reorder = max(seconds, 0.9 * self._reorder)

    def calm(self) -> None:
        """A request was needed: nothing came by itself, so the path reorders less than was
        thought."""
        self._reorder *= 0.95


class _Sighting:
    """Missing messages among first to last, seen at one moment."""

    __slots__ = ("asked_to", "began", "due", "first", "last", "left", "seen", "tries")

    def __init__(self, first: int, last: int, seen: float, due: float) -> None:
        self.first = first
        self.last = last
        self.seen = self.began = seen
        """When it was seen or asked for last, and asked for first."""
        self.due = due
        self.tries = 0
        """How often it was asked for since anything came of it."""
        self.asked_to = last
        """Up to where it was asked for, when it did not fit one request."""
        self.left = 0
        """How many were missing when it was last asked for."""


class Repair:
    """The requests of one window."""

    __slots__ = ("_noted", "_sightings", "pace", "window")

    def __init__(self, window: ReceiveWindow, pace: Pace) -> None:
        self.window = window
        self.pace = pace
        self._noted = window.handed
        self._sightings: list[_Sighting] = []

    @property
    def deadline(self) -> float:
        """When `due` is to be called; NEVER while nothing is missing."""
        return min([sighting.due for sighting in self._sightings], default=NEVER)

    def look(self, now: float, spread: float = 0.0) -> None:
        """Note new gaps and forget closed ones; called after something out of order has come."""
        window = self.window
        high = window.high
        if high > self._noted:
            if window.gaps and window.gaps.last > self._noted:
                due = now + self.pace.delay + spread
                self._sightings.append(_Sighting(self._noted + 1, high, now, due))
            self._noted = high
        for sighting in self._sightings:
            if window.gaps.clip(sighting.first, sighting.asked_to):
                continue
            if sighting.asked_to == sighting.last:
                self._closed(sighting, now)
            else:
                self._ask_on(sighting, now)
        self._sightings = [sighting for sighting in self._sightings if sighting.tries >= 0]
        if len(self._sightings) > SIGHTINGS_MAX:
            self._join_oldest()

    def due(self, now: float, max_ranges: int, max_messages: int) -> RangeSet:
        """What is to be asked for now, within these bounds."""
        wanted = RangeSet()
        for sighting in self._sightings:
            if sighting.due > now:
                continue
            missing = self.window.gaps.clip(sighting.first, sighting.last)
            room = max_ranges - wanted.count_ranges
            part = missing.limited(room, max_messages - wanted.count)
            for first, last in part:
                wanted.add(first, last)
            if sighting.tries == 0:
                self.pace.calm()
            if part:
                came = sighting.tries and missing.count < sighting.left
                sighting.tries = 1 if came else sighting.tries + 1
                sighting.seen, sighting.left = now, missing.count
                if sighting.tries == 1:
                    sighting.began = now
                sighting.asked_to = sighting.last if part.count == missing.count else part.last
            sighting.due = now + self.pace.repeat(max(1, sighting.tries))
        self._sightings = [
            sighting
            for sighting in self._sightings
            if sighting.due > now and self.window.gaps.clip(sighting.first, sighting.last)
        ]
        return wanted

    def hurry(self, now: float) -> None:
        """Ask for everything that is missing at the next occasion, whatever was asked before."""
        for sighting in self._sightings:
            sighting.due = now
            sighting.tries = min(sighting.tries, 1)

    def _ask_on(self, sighting: _Sighting, now: float) -> None:
        """All of the last request has come, and there is more than it could hold: ask on."""
        self.pace.answered(now - sighting.began, sighting.tries)
        sighting.first, sighting.asked_to = sighting.asked_to + 1, sighting.last
        sighting.due = now

    def _closed(self, sighting: _Sighting, now: float) -> None:
        if sighting.tries == 0:
            self.pace.overtaken(now - sighting.seen)
        else:
            self.pace.answered(now - sighting.began, sighting.tries)
        sighting.tries = -1

    def _join_oldest(self) -> None:
        """Two sightings become one, so that their number stays bounded."""
        one, two = self._sightings[:2]
        two.first = min(one.first, two.first)
        two.last = two.asked_to = max(one.last, two.last)
        two.due = min(one.due, two.due)
        two.tries = max(one.tries, two.tries, 1)
        del self._sightings[0]
