"""What the reliable layers, to the group and to one member, have in common: when they ask and tick.

A layer keeps a `Repair` per sender. One timer wakes it for the next request that is due, another
ticks while an ack or an announcement may be due; neither runs while there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ringcast.core.address import Address
from ringcast.core.codec import HEADER_SIZE
from ringcast.core.part import Layer
from ringcast.core.ranges import RangeSet
from ringcast.core.repair import Repair
from ringcast.core.timers import NEVER

RANGE_SIZE = 16
"""What a gap costs in a request, in bytes."""
REQUEST_SIZE = 64
"""What a request costs besides its gaps, at the most."""


class ReliableSpec(Protocol):
    """The settings that asking and ticking need."""

    @property
    def xmit_interval(self) -> float:
        """Seconds between ticks."""
        ...

    @property
    def request_ranges(self) -> int:
        """The most gaps in one request."""
        ...

    @property
    def request_messages(self) -> int:
        """The most messages in one request."""
        ...


class Reliable(Layer):
    """A layer that asks for what is missing, and ticks while something may be due."""

    spec: ReliableSpec

    def on_timer(self, name: str) -> None:
        if name == "repair":
            self._ask()
        elif name == "tick":
            self._tick()

    def _arm(self) -> None:
        """Tick within an interval, if that is not so already."""
        if not self.env.timers.is_set(self, "tick"):
            self.env.timers.set(self, "tick", self.env.now + self.spec.xmit_interval)

    def _note(self, repair: Repair, spread: float = 0.0) -> None:
        """Note gaps, so that they are asked for when their time comes."""
        repair.look(self.env.now, spread)
        deadline = repair.deadline
        if deadline != NEVER:
            self.env.timers.set_earlier(self, "repair", deadline)

    def _ask(self) -> None:
        """Ask for all that is due, each request within one datagram."""
        now, deadline = self.env.now, NEVER
        fitting = (self.env.mtu - HEADER_SIZE - REQUEST_SIZE) // RANGE_SIZE
        max_ranges = min(self.spec.request_ranges, fitting)
        for source, repair in self._open_repairs():
            if repair.deadline <= now:
                wanted = repair.due(now, max_ranges, self.spec.request_messages)
                if wanted:
                    self.env.counters["requested"] += wanted.count
                    self._request(source, wanted)
            deadline = min(deadline, repair.deadline)
        if deadline != NEVER:
            self.env.timers.set(self, "repair", deadline)

    def _open_repairs(self) -> Iterable[tuple[Address, Repair]]:
        """The repairs that may have something to ask for, with whose messages they are about."""
        raise NotImplementedError

    def _request(self, source: Address, wanted: RangeSet) -> None:
        """Ask for these messages of a sender."""
        raise NotImplementedError

    def _tick(self) -> None:
        """Send what is due, and arm again if more may be."""
        raise NotImplementedError
