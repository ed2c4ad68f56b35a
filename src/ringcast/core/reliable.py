"""What the reliable layers, to the group and to one member, have in common: when they ask and tick.

A layer keeps a `Repair` per sender. One timer wakes it for the next request that is due, another
ticks while an ack or an announcement may be due, and a third looks for pauses after what was sent;
none of them runs while there is nothing to do.
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
PAUSE = 0.1
"""When nothing was sent for this part of an interval, what was sent last is announced, once."""


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


class Tail:
    """The end of what was sent to somebody."""

    __slots__ = ("is_announced", "is_fresh", "sent_at")

    def __init__(self) -> None:
        self.sent_at = 0.0
        self.is_announced = True
        """Whether it was announced, since nothing followed for a while."""
        self.is_fresh = False
        """Whether something was sent since the last tick."""


class Reliable(Layer):
    """A layer that asks for what is missing, and ticks while something may be due."""

    spec: ReliableSpec

    def on_timer(self, name: str) -> None:
        if name == "repair":
            self._ask()
        elif name == "tick":
            self._tick()
        elif name == "tail":
            self._look_at_tails()

    def _arm(self) -> None:
        """Tick within an interval, if that is not so already."""
        if not self.env.timers.is_set(self, "tick"):
            self.env.timers.set(self, "tick", self.env.now + self.spec.xmit_interval)

    def _on_sent(self, tail: Tail) -> None:
        """Something was sent: tick, and look whether something follows it."""
        tail.sent_at, tail.is_announced, tail.is_fresh = self.env.now, False, True
        self._arm()
        if not self.env.timers.is_set(self, "tail"):
            self.env.timers.set(self, "tail", self.env.now + PAUSE * self.spec.xmit_interval)

    def _look_at_tails(self) -> None:
        """Announce what nothing has followed: whoever has lost it cannot know of it."""
        now, pause, next_look = self.env.now, PAUSE * self.spec.xmit_interval, NEVER
        for tail, dest in self._tails():
            if tail.is_announced:
                continue
            if tail.sent_at + pause <= now:
                tail.is_announced = True
                self._announce_tail(dest)
            else:
                next_look = min(next_look, tail.sent_at + pause)
        if next_look != NEVER:
            self.env.timers.set(self, "tail", next_look)

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

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        """The ends of what was sent, with whom it was sent to; None for everybody."""
        raise NotImplementedError

    def _announce_tail(self, dest: Address | None) -> None:
        """Say what was sent last, if it may be lacking."""
        raise NotImplementedError
