"""Notices that processes outside the view flood a member, and has the kernel drop most of it.

Datagrams that are not right count as theirs: any process can write a group's number into a head. A
datagram that the kernel drops costs a hundredth of one that Python reads. While strangers send
many, the transport's filter passes all datagrams of members, all frames with which groups form and
merge, and a sample of everything else. Where that is still a flood, the frames with which groups
form are the flood: they are sampled as well. The samples tell when the flood is over.

In a closed group nearly all that strangers send is what no key opens, and joiners look like them to
the kernel. So the flood has to be larger, and more of it passes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.core.stack.stack import Stack
from ringcast.runtime.net.datagram.own_filter import HEAVY_SAMPLE, SAMPLE, SEALED_SAMPLE

log = logging.getLogger("ringcast")

FLOOD_DATAGRAMS = 512
"""Datagrams of strangers within FLOOD_SECONDS that make a flood."""
SEALED_FLOOD_DATAGRAMS = 4_096
"""The same in a closed group."""
FORMING_FLOOD_DATAGRAMS = 4_096
"""Frames with which groups form that make a flood of these at once: hundreds of joiners at a time
send fewer."""
FLOOD_SECONDS = 0.5
HOLD_SECONDS = 5.0
"""How long the kernel samples after the last sign of a flood."""
DRAIN_SECONDS = 1.0
"""What arrived before the kernel samples is read within this time, and says nothing."""

Sampler = Callable[[Sequence[Address], bool], None]
"""Has the kernel sample what is not from these members, and whether that holds for what groups form
with as well; from nobody: has it pass everything."""


class Refusals(Protocol):
    """What counts the datagrams that are not right; a Receiver does."""

    refused: int


def watch_strangers(stack: Stack, transport: object) -> StrangerWatch | None:
    """A watch, where the transport can have the kernel drop datagrams."""
    sample: Sampler | None = getattr(transport, "sample_strangers", None)
    if sample is None:
        return None
    env = stack.env
    return StrangerWatch(env.counters, stack.receiver, sample, env.seal is not None)


class _Flood:
    """Whether there is a flood of what the kernel passes: all of it, or one of `sample`."""

    __slots__ = ("_least", "_marked", "_marked_at", "_sample", "until")

    def __init__(self, sample: int, least: int = FLOOD_DATAGRAMS) -> None:
        """least: datagrams within FLOOD_SECONDS that make a flood."""
        self._sample = sample
        self._least = least
        self._marked = 0
        self._marked_at = 0.0
        self.until = 0.0
        """When the sampling ends; 0 while there is none."""

    def start(self, at: float) -> None:
        """Count from this time on."""
        self._marked_at = at

    def consider(self, seen: int, now: float) -> bool:
        """This many have arrived by now; whether the flood begins or ends with that."""
        if now < self._marked_at:
            self._marked = seen
            return False
        was_on = self.until > 0.0
        enough = self._least // self._sample if was_on else self._least
        if seen >= self._marked + enough:
            if now <= self._marked_at + FLOOD_SECONDS:
                self.until = now + HOLD_SECONDS
            self._marked, self._marked_at = seen, now
        if self.until and now >= self.until:
            self.until = 0.0
        return was_on != (self.until > 0.0)


class StrangerWatch:
    """Counts what strangers send, and starts and ends the sampling."""

    __slots__ = (
        "_any",
        "_asked",
        "_counters",
        "_forming",
        "_joining",
        "_least",
        "_refusals",
        "_sample",
        "_seen",
    )

    def __init__(
        self,
        counters: Counter[str],
        refusals: Refusals,
        sample: Sampler,
        is_closed: bool = False,
    ) -> None:
        self._counters = counters
        self._refusals = refusals
        self._sample = sample
        self._seen = 0
        self._least = SEALED_FLOOD_DATAGRAMS if is_closed else FLOOD_DATAGRAMS
        self._any = _Flood(SEALED_SAMPLE if is_closed else SAMPLE, self._least)
        self._forming = None if is_closed else _Flood(HEAVY_SAMPLE)
        """That of frames with which groups form; in a closed group the kernel cannot tell them."""
        self._joining = _Flood(HEAVY_SAMPLE, FORMING_FLOOD_DATAGRAMS)
        """The same, of as many as only a flood has: it needs no time to be told from what arrived
        before the kernel sampled."""
        self._asked: tuple[View | None, bool] = (None, False)
        """What the filter knows: the view, and whether it samples what groups form with."""

    def look(self, view: View | None, now: float) -> None:
        """To be called after datagrams were read."""
        seen = self._counters.get("received_strangers", 0) + self._refusals.refused
        if seen != self._seen or self._any.until:
            self._seen = seen
            self._consider(view, now)

    def _consider(self, view: View | None, now: float) -> None:
        if self._any.consider(self._seen, now):
            if self._forming is not None:
                self._forming = _Flood(HEAVY_SAMPLE)
                self._forming.start(now + DRAIN_SECONDS)
            if self._any.until:
                log.warning(
                    "processes outside the view send more than %d datagrams per second: the "
                    "kernel drops most of them until that is over",
                    self._least / FLOOD_SECONDS,
                )
        is_heavy = False
        self._joining.consider(self._counters["received_joiners"], now)
        if self._any.until and self._forming is not None:
            self._forming.consider(self._seen, now)
            is_heavy = self._forming.until > 0.0 or self._joining.until > 0.0
        asked = (view, is_heavy) if self._any.until else (None, False)
        if asked != self._asked and (view is not None or not self._any.until):
            self._asked = asked
            self._sample(() if asked[0] is None else asked[0].members, asked[1])
