"""The phases of a paced sender: probes above the rate, pauses below it, and the pace in between.

The pace is the measured rate times a gain that changes from phase to phase. What is lost in which
phase tells a full queue from losses by chance: a queue that was drained overflows no more, and a
radio link loses the same share as before.
"""

from __future__ import annotations

from collections.abc import Callable

from ringcast.core.reliable.burst import CHANCE_SPREAD

REPAIRS_USUAL = 0.12
"""Where more than this is repaired, in relation to the messages, packets are lost by chance, and no
slower pace makes them fewer."""
REPAIRS_MAX = 1.5
"""The most repairs that a probe makes up for, in relation to the messages."""
CRUISE_MIN, CRUISE_MAX = 0.85, 0.99
CRUISE_DOWN, CRUISE_UP = 0.02, 0.005
CRUISE_LOST = 0.02
CALM_SHARE = 0.9
"""Where much is lost by chance, the pace makes up for repairs, but not before and in the phase that
measures this share: it goes at this part of the rate, so that no queue is left that overflows."""
CALM_QUEUE_SECONDS, CALM_QUEUE_SECONDS_LOSSY = 0.02, 0.05
"""What is lost while more than this is queued all the time was not lost by chance. The second is
for where chance is known to lose much: acks count what has arrived, so round trips look longer."""
CHANCE_MAX = 0.3
"""More than this is not lost by chance."""
PHASES = 8
PROBE, DRAIN, CALM = 0, 1, 3
"""The phases: a probe above the rate, one below it to drain what the probe has queued, then those
of cruising at a part of the rate. That part falls in each phase that has lost more than
CRUISE_LOST, and rises in each that has not: where processes are woken late, acks bunch up, and the
highest rate is above what the path carries. What is lost by chance does not count: that is what the
phase loses which finds the queue drained."""
EXCESS_MIN, EXCESS_USUAL, EXCESS_LOSSY, EXCESS_MAX = 0.06, 0.2, 0.4, 1.0
"""By how much a probe is above the rate: half of the last time after one that found nothing and
lost something, so that a path that stays as it is loses little; else twice as much, up to the usual
excess: the sender may have been too late to fill the path. After probes that found more and lost
nothing, up to the greatest."""
DRAIN_SHARE = 0.75
DRAIN_MIN = 0.5
"""The part of a probe's excess that the phase behind it drains, with all that was queued before;
and the least that is sent meanwhile."""
PROBE_FOUND = 0.6
"""A probe has found more when this part of its excess has arrived; the next one follows at once."""
PROBE_LOST = 0.25
"""A probe has lost much when each receiver has requested this part of its excess."""
PHASE_SECONDS = 0.03
"""The least seconds of a phase, so that a whole sample falls into a probe."""


class Phases:
    """Where one sender is in the cycle of its phases."""

    __slots__ = (
        "_calm_lost",
        "_calm_phase_sent",
        "_calm_requested",
        "_calm_sent",
        "_drained",
        "_excess",
        "_lost",
        "_phase_lost",
        "_phase_sent",
        "_probed",
        "_repaired",
        "_sent",
        "_was_queued",
        "chance",
        "cruise",
        "gain",
        "phase",
        "seconds",
    )

    def __init__(self) -> None:
        self.phase = PROBE
        self.gain = 1.0
        """The pace in relation to the rate."""
        self.seconds = PHASE_SECONDS
        """How long this phase takes."""
        self.cruise = CRUISE_MAX
        """The gain between probes."""
        self.chance = 0.0
        """The share that is lost by chance, whatever the pace."""
        self._calm_sent = self._calm_lost = 0.0
        """What was sent to all receivers and lost in calm phases; what was before counts half."""
        self._sent = self._repaired = 0.0
        """What was sent and sent again since the last probe, and half of what was before it."""
        self._probed = 0.0
        """The rate when the last probe began."""
        self._excess = self._drained = EXCESS_USUAL
        """By how much the next probe is above the rate, and the last one was."""
        self._lost = 0.0
        """What was requested since the last probe began."""
        self._phase_sent = self._phase_lost = 0.0
        self._calm_phase_sent, self._calm_requested, self._was_queued = 1.0, 0.0, False
        """What the last calm phase sent to all receivers, what of it was requested, and whether a
        queue was left before it."""

    @property
    def is_probe(self) -> bool:
        """Whether sending goes above the rate on purpose."""
        return self.phase == PROBE

    @property
    def repairs(self) -> float:
        """What was sent again of late, in relation to the messages, as far as it is made up for."""
        return min(self._repaired / max(1.0, self._sent), REPAIRS_MAX)

    def on_sent(self, nbytes: int) -> None:
        """Messages were sent for the first time."""
        self._sent += nbytes
        self._phase_sent += nbytes

    def on_repaired(self, nbytes: int) -> None:
        """Messages were sent again."""
        self._repaired += nbytes

    def on_lost(self, nbytes: float, calm: float = 0.0) -> None:
        """A receiver has requested so much for the first time, and so much of what was sent in the
        last calm phase."""
        self._lost += nbytes
        self._phase_lost += nbytes
        self._calm_requested += calm

    def drain_next(self, rate: float) -> None:
        """The queue is full: the next phase drains it."""
        self.phase, self._drained, self._probed = PROBE, EXCESS_USUAL, rate

    def go_on(self, rate: float, receivers: int, queued: float, draw: Callable[[], float]) -> None:
        """Begin the next phase, at this rate and to this number of receivers; queued: the seconds
        that were queued in front of one of them all the time; draw: a number by chance from 0 to
        1."""
        self._choose(rate, self._has_lost_much(receivers), draw)
        if self.phase == PROBE:
            self._probed, self._lost = rate, 0.0
        has_lost_much = self._has_lost_much(receivers)
        is_lossy = self.chance > CRUISE_LOST
        most = CALM_QUEUE_SECONDS_LOSSY if is_lossy else CALM_QUEUE_SECONDS
        self._judge(receivers, queued > most)
        if self._repaired > REPAIRS_USUAL * self._sent and self.chance > CRUISE_LOST:
            self.cruise = CRUISE_MAX
            self._excess = max(self._excess, EXCESS_USUAL if has_lost_much else EXCESS_LOSSY)
        gain = self._gain(has_lost_much, 0.0 if is_lossy else queued)
        self.gain = gain * (1 + self._made_up_for(receivers))
        if self.phase == PROBE:
            self._drained = self._excess
            self._sent, self._repaired = self._sent / 2, self._repaired / 2

    def _choose(self, rate: float, has_lost_much: bool, draw: Callable[[], float]) -> None:
        """Go to the next phase, and find the excess of the next probe after one was drained."""
        # What was lost by chance of a probe arrives after it.
        found = PROBE_FOUND * (1 - CHANCE_SPREAD * self.chance) * self._excess
        if self.phase == DRAIN and rate >= (1 + found) * self._probed:
            self.phase = PROBE  # The probe has found more: probe again.
            most = EXCESS_USUAL if has_lost_much else EXCESS_MAX
            self._excess = min(max(2 * self._excess, EXCESS_USUAL), most)
            return
        if self.phase == DRAIN:
            share = 0.5 if has_lost_much else 2.0
            self._excess = min(max(share * self._excess, EXCESS_MIN), EXCESS_USUAL)
        self.phase = (self.phase + 1) % PHASES
        if self.phase == PROBE and draw() < 0.5:
            self.phase = PHASES - 1  # Senders that share a path do not probe in step.

    def _judge(self, receivers: int, is_queued: bool) -> None:
        """Learn from what was lost in the phase that is over. What a probe lost is requested
        later."""
        sent, lost = max(1.0, self._phase_sent * receivers), self._phase_lost
        self._phase_sent = self._phase_lost = 0.0
        if self.phase == CALM:
            self._calm_requested = 0.0
        elif self.phase == CALM + 1:
            self._calm_phase_sent, self._was_queued = sent, is_queued
        elif self.phase == CALM + 2:  # What it lost was requested by now.
            requested = 0.0 if self._was_queued else self._calm_requested
            self._calm_sent = self._calm_sent / 2 + self._calm_phase_sent
            self._calm_lost = self._calm_lost / 2 + requested
            self.chance = min(CHANCE_MAX, self._calm_lost / self._calm_sent)
        if self.phase not in (PROBE, DRAIN, CALM, CALM + 1):
            has_lost = lost / sent > CRUISE_LOST + CHANCE_SPREAD * self.chance
            cruise = self.cruise + (-CRUISE_DOWN if has_lost else CRUISE_UP)
            self.cruise = min(max(cruise, CRUISE_MIN), CRUISE_MAX)

    def _gain(self, has_lost_much: bool, queued: float) -> float:
        """The gain of this phase, repairs apart."""
        if self.phase == PROBE:
            return 1 + self._excess
        if self.phase == DRAIN:
            excess = EXCESS_USUAL if has_lost_much else min(self._drained, EXCESS_USUAL)
            return max(DRAIN_MIN, 1 - DRAIN_SHARE * excess - queued / self.seconds)
        is_calm = self.phase in (CALM, CALM + 1) and self.chance > CRUISE_LOST
        return self.cruise * (CALM_SHARE if is_calm else 1.0)

    def _made_up_for(self, receivers: int) -> float:
        """The repairs that the pace makes up for, in relation to the messages.

        Repairs spend the budget, and do not raise the rate. A probe makes up for all of them, or it
        would find less than the last one; else the pace does for those of what is lost by chance.
        """
        repairs = self.repairs
        if self.phase == PROBE:
            return repairs
        if self.phase in (DRAIN, CALM, CALM + 1) or self.chance <= CRUISE_LOST:
            return 0.0
        return min(repairs, CHANCE_SPREAD * self.chance * receivers)

    def _has_lost_much(self, receivers: int) -> bool:
        """Whether the last probe lost so much of its excess that the path seems to be full."""
        share = PROBE_LOST * self._drained + 2 * CHANCE_SPREAD * self.chance
        return self._lost > share * self._probed * self.seconds * receivers
