"""Repair: when to request what is missing in one window.

A gap is requested at its second sighting: the first is when a later message overtakes it, the
second after a delay that adapts to the reordering on the path (`ReorderingDelay`). So reordering
costs no request, and a loss does not wait for a tick. All gaps that are due go into one request, as
ranges. A request that stays unanswered is repeated after the timeout of an `RttEstimator`, a few
times; then the timeout doubles each time, up to a bound. While no round trip was measured, it
doubles from the first time on: the answer may wait in a queue.

Gaps only open at the high end of a window, so a sighting is an interval of seqnos: what is still
missing in it is read from the window's gaps when it is due, and arriving messages update nothing.
"""

from __future__ import annotations

from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.reordering import ReorderingDelay
from ringcast.core.reliable.rtt import RttEstimator
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.timers import NEVER

SIGHTINGS_MAX = 64
TRIES_BEFORE_BACKOFF = 6
"""Requests for the same messages at the same interval. That a request or its answer was lost as
well says nothing about the path, and all receivers may wait for the one with the gap."""
INITIAL_RTT_DELAYS = 5
"""The round trip that is assumed before the first sample, in multiples of the least delay."""
REPEAT_SECONDS_MIN = 0.0015
"""The least seconds between two requests for the same messages."""


class RequestTiming:
    """When a gap is requested, and when it is requested again."""

    __slots__ = ("_doubted_at", "_repeat_max", "reordering", "rtt")

    def __init__(self, delay_min: float, delay_max: float) -> None:
        self.reordering = ReorderingDelay(delay_min, delay_max)
        self.rtt = RttEstimator(INITIAL_RTT_DELAYS * delay_min)
        self._repeat_max = 2 * delay_max
        self._doubted_at = float("-inf")
        """When the round trip was taken for too short the last time."""

    def timeout(self, tries: int) -> float:
        """Seconds from the last of this many requests to the next."""
        first = min(max(REPEAT_SECONDS_MIN, self.rtt.timeout), self._repeat_max)
        steady_tries = TRIES_BEFORE_BACKOFF if self.rtt.has_sample else 1
        factor = 2.0 ** min(max(tries - steady_tries, 0), 16)
        return min(first * factor, max(self._repeat_max, 4 * first))

    def answered(self, seconds: float, tries: int, now: float) -> None:
        """Everything arrived this long after the first of this many requests.

        With several requests the round trip is unknown; the first sample of a path is taken all the
        same, since it is better than the assumed one.
        """
        if tries == 1 or not self.rtt.has_sample:
            self.rtt.sample(seconds)
        elif now >= self._doubted_at + self.rtt.timeout:
            # Once in a round trip: many gaps that waited for the same thing say it only once.
            self._doubted_at = now
            self.rtt.doubt(seconds)


class _Sighting:
    """Missing messages among first to last, seen at one time."""

    __slots__ = (
        "due",
        "first",
        "first_requested",
        "last",
        "missing",
        "requested_to",
        "seen",
        "tries",
    )

    def __init__(self, first: int, last: int, seen: float, due: float) -> None:
        self.first = first
        self.last = last
        self.seen = self.first_requested = seen
        """When it was seen or requested last, and requested first."""
        self.due = due
        self.tries = 0
        """How often it was requested since the last progress; -1 when it is closed."""
        self.requested_to = last
        """Up to where it was requested, when it did not fit one request."""
        self.missing = 0
        """How many messages were missing at the last request."""


class Repair:
    """The requests of one window."""

    __slots__ = ("_missing", "_noted", "_sightings", "_skipped", "timing", "window")

    def __init__(self, window: ReceiveWindow, timing: RequestTiming) -> None:
        self.window = window
        self.timing = timing
        self._noted = window.handed
        self._skipped = window.skipped_count
        self._missing = 0
        """How many messages were missing when gaps were noted last."""
        self._sightings: list[_Sighting] = []

    @property
    def deadline(self) -> float:
        """When `due` is to be called; NEVER while nothing is missing."""
        return min([sighting.due for sighting in self._sightings], default=NEVER)

    def note_gaps(self, now: float, spread: float = 0.0) -> None:
        """Note new gaps and forget closed ones; called after each arrival out of order."""
        window = self.window
        high = window.high
        # What was given up has not arrived: the time until then says nothing about the path.
        is_sample = window.skipped_count == self._skipped
        self._skipped = window.skipped_count
        missing, fresh = window.gaps.count, 0
        if high > self._noted:
            if window.gaps and window.gaps.last > self._noted:
                fresh = window.gaps.clip(self._noted + 1, high).count
                due = now + self.timing.reordering.seconds + spread
                self._sightings.append(_Sighting(self._noted + 1, high, now, due))
            self._noted = high
        is_any_closed, self._missing = missing - fresh != self._missing, missing
        overlaps = window.gaps.overlaps
        for sighting in self._sightings if is_any_closed else ():
            if overlaps(sighting.first, sighting.requested_to):
                continue
            if sighting.requested_to == sighting.last:
                self._close(sighting, now, is_sample)
            else:
                self._request_rest(sighting, now, is_sample)
        self._sightings = [sighting for sighting in self._sightings if sighting.tries >= 0]
        if len(self._sightings) > SIGHTINGS_MAX:
            self._join_oldest()
        assert len(self._sightings) <= SIGHTINGS_MAX

    def due(self, now: float, max_ranges: int, max_messages: int) -> RangeSet:
        """What to request now, within these bounds."""
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
                self.timing.reordering.decay()
            if part:
                has_progress = sighting.tries and missing.count < sighting.missing
                sighting.tries = 1 if has_progress else sighting.tries + 1
                sighting.seen, sighting.missing = now, missing.count
                if sighting.tries == 1:
                    sighting.first_requested = now
                sighting.requested_to = sighting.last if part.count == missing.count else part.last
            sighting.due = now + self.timing.timeout(max(1, sighting.tries))
        self._sightings = [
            sighting
            for sighting in self._sightings
            if sighting.due > now and self.window.gaps.overlaps(sighting.first, sighting.last)
        ]
        assert wanted.count <= max_messages
        assert wanted.count_ranges <= max(max_ranges, 0)
        return wanted

    def expire(self, now: float) -> None:
        """Make everything that is missing due now, whatever was requested before."""
        for sighting in self._sightings:
            sighting.due = now
            sighting.tries = min(sighting.tries, 1)

    def _request_rest(self, sighting: _Sighting, now: float, is_sample: bool) -> None:
        """All of the last request arrived, and it could not hold everything: request the rest."""
        if is_sample:
            self.timing.answered(now - sighting.first_requested, sighting.tries, now)
        sighting.first, sighting.requested_to = sighting.requested_to + 1, sighting.last
        sighting.due = now

    def _close(self, sighting: _Sighting, now: float, is_sample: bool) -> None:
        if is_sample and sighting.tries == 0:
            self.timing.reordering.sample(now - sighting.seen)
        elif is_sample:
            self.timing.answered(now - sighting.first_requested, sighting.tries, now)
        sighting.tries = -1

    def _join_oldest(self) -> None:
        """Merge two sightings, so that their number stays bounded."""
        one, two = self._sightings[:2]
        two.first = min(one.first, two.first)
        two.last = two.requested_to = max(one.last, two.last)
        two.due = min(one.due, two.due)
        two.tries = max(one.tries, two.tries, 1)
        del self._sightings[0]
