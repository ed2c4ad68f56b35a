"""To whom a repeated message goes: to the one who asked, or to everybody when several lack it."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.env import Env
from ringcast.core.ranges import RangeSet
from ringcast.layers.multicast.settings import MulticastSpec


class Answers:
    """Remembers for a moment what was asked by whom, so that a loss seen by all is answered
    once."""

    def __init__(self, env: Env, spec: MulticastSpec) -> None:
        self._env = env
        self._policy = spec.answer
        self._moment = spec.request_delay
        self._since = float("-inf")
        self._once = RangeSet()
        """What one member was sent in this moment."""
        self._asker = Address(0)
        self._all = RangeSet()
        """What everybody was sent in this moment."""

    def choose(self, runs: list[Batch], asker: Address) -> Iterator[tuple[Batch, Address | None]]:
        """Each run with where it goes: a member, or None for everybody."""
        if self._policy != "auto":
            target = asker if self._policy == "unicast" else None
            yield from ((run, target) for run in runs)
            return
        if self._env.now - self._since > self._moment:
            self._since = self._env.now
            self._once, self._all, self._asker = RangeSet(), RangeSet(), asker
        for run in runs:
            yield from self._choose_one(run, asker)

    def _choose_one(self, run: Batch, asker: Address) -> Iterator[tuple[Batch, Address | None]]:
        span = RangeSet([(run.first, run.last)])
        if run.sender != self._env.me:
            yield run, asker
            return
        open_span = span.difference(self._all)
        for first, last in open_span:
            part = run.part(first, last)
            repeated = asker != self._asker and bool(self._once.clip(first, last))
            if repeated:
                self._all.add(first, last)
                yield part, None
            else:
                self._once.add(first, last)
                self._asker = asker
                yield part, asker
