"""The tick of a reliable layer: a timer that runs only while something may be due."""

from __future__ import annotations

from ringcast.core.stack.part import Part

TICK = "tick"
ACK_SOON = "ack"
ACK_SECONDS = 0.002
"""The least seconds between two acks to one sender that are not sent for the window's need; longer
in large groups, and with many senders."""
ACK_BYTES = 16_000
"""Less is acked on the tick: half of the least window that congestion control gives a sender."""


class Ticker:
    """Calls the part's `on_timer` with its name, once each time it is armed."""

    __slots__ = ("_env", "_name", "_part", "_timers", "interval")

    def __init__(self, part: Part, interval: float, name: str = TICK) -> None:
        self._part = part
        self._env = part.env
        self._timers = part.env.timers
        self._name = name
        self.interval = interval

    def arm(self) -> None:
        """Tick within an interval, unless the timer is already running."""
        timers = self._timers
        if not timers.is_set(self._part, self._name):
            timers.set(self._part, self._name, self._env.now + self.interval)
