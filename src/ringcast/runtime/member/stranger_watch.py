"""Notices that processes outside the view flood a member, and has the kernel drop most of it.

A datagram that the kernel drops costs a hundredth of one that Python reads. While strangers send
many, the transport's filter passes all datagrams of members, all frames with which groups form and
merge, and a sample of everything else. The sample tells when the flood is over.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.runtime.net.own_filter import SAMPLE

log = logging.getLogger("ringcast")

FLOOD_DATAGRAMS = 512
"""Datagrams of strangers within FLOOD_SECONDS that make a flood."""
FLOOD_SECONDS = 0.5
HOLD_SECONDS = 5.0
"""How long the kernel samples after the last sign of a flood."""

Sampler = Callable[[Sequence[Address]], None]
"""Has the kernel sample what is not from these members; from nobody: has it pass everything."""


def watch_strangers(counters: Counter[str], transport: object) -> StrangerWatch | None:
    """A watch, where the transport can have the kernel drop datagrams."""
    sample: Sampler | None = getattr(transport, "sample_strangers", None)
    return None if sample is None else StrangerWatch(counters, sample)


class StrangerWatch:
    """Counts what strangers send, and starts and ends the sampling."""

    __slots__ = ("_counters", "_marked", "_marked_at", "_sample", "_seen", "_until", "_view")

    def __init__(self, counters: Counter[str], sample: Sampler) -> None:
        self._counters = counters
        self._sample = sample
        self._seen = self._marked = 0
        self._marked_at = 0.0
        self._until = 0.0
        """When the sampling ends; 0 while there is none."""
        self._view: View | None = None
        """The view whose members the filter knows."""

    def look(self, view: View | None, now: float) -> None:
        """To be called after datagrams were read."""
        seen = self._counters["received_strangers"]
        if seen != self._seen or self._until:
            self._seen = seen
            self._consider(view, now)

    def _consider(self, view: View | None, now: float) -> None:
        enough = FLOOD_DATAGRAMS // SAMPLE if self._until else FLOOD_DATAGRAMS
        if self._seen >= self._marked + enough:
            if now <= self._marked_at + FLOOD_SECONDS:
                if not self._until:
                    log.warning(
                        "processes outside the view send more than %d datagrams per second: the "
                        "kernel drops most of them until that is over",
                        FLOOD_DATAGRAMS / FLOOD_SECONDS,
                    )
                self._until = now + HOLD_SECONDS
            self._marked, self._marked_at = self._seen, now
        if self._until and now >= self._until:
            self._until, self._view = 0.0, None
            self._sample(())
        elif self._until and view is not None and view is not self._view:
            self._view = view
            self._sample(view.members)
