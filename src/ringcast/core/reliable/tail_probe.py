"""The tail loss probe (as in RFC 8985): a lost last message is found long before the tick.

A receiver cannot miss a message that nothing follows. So when a sender has paused for a part of the
interval, it announces its last seqno once; the ticks announce it again while it is unacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ringcast.core.model.address import Address
from ringcast.core.reliable.ticker import Ticker
from ringcast.core.stack.part import Part
from ringcast.core.stack.timers import NEVER

PROBE = "tail"
PROBE_INTERVALS = 0.1
"""The pause after which the last message is announced, in intervals."""


class Tail:
    """The end of what was sent to one destination."""

    __slots__ = ("is_fresh", "is_probed", "sent_at")

    def __init__(self) -> None:
        self.sent_at = 0.0
        self.is_probed = True
        """Whether the last message was announced, or none was sent."""
        self.is_fresh = False
        """Whether a message was sent since the last tick."""


class TailProbe:
    """Announces the tails that nothing has followed; the part passes PROBE timers to `on_timer`."""

    __slots__ = ("_announce", "_env", "_part", "_pause", "_tails", "_ticker")

    def __init__(
        self,
        part: Part,
        interval: float,
        ticker: Ticker,
        tails: Callable[[], Iterable[tuple[Tail, Address | None]]],
        announce: Callable[[Address | None], None],
    ) -> None:
        """tails: all tails with their destinations, None for the group."""
        self._part = part
        self._env = part.env
        self._ticker = ticker
        self._pause = PROBE_INTERVALS * interval
        self._tails = tails
        self._announce = announce

    def on_sent(self, tail: Tail) -> None:
        """Something was sent: tick, and probe unless something follows."""
        env = self._env
        tail.sent_at = env.now
        if not tail.is_fresh:  # Else the ticker has been running since the last message.
            tail.is_fresh = True
            self._ticker.arm()
        if tail.is_probed:  # Else the timer has been running since the last message.
            tail.is_probed = False
            if not env.timers.is_set(self._part, PROBE):
                env.timers.set(self._part, PROBE, env.now + self._pause)

    def on_timer(self) -> None:
        """Announce the tails whose pause is over."""
        now, pause, next_probe = self._env.now, self._pause, NEVER
        for tail, dest in self._tails():
            if tail.is_probed:
                continue
            if tail.sent_at + pause <= now:
                tail.is_probed = True
                self._announce(dest)
            else:
                next_probe = min(next_probe, tail.sent_at + pause)
        if next_probe != NEVER:
            self._env.timers.set(self._part, PROBE, next_probe)
