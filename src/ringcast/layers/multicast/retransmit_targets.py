"""The target of a retransmission: the member that requested it, or the group when several did."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.stack.env import Env
from ringcast.layers.multicast.settings import MulticastSpec


class RetransmitTargets:
    """Remembers recent requests, so that a loss that all receivers see is repaired once.

    Requests count as recent for `request_delay` seconds after the first of them.
    """

    __slots__ = ("_env", "_policy", "_requester", "_seconds", "_since", "_to_group", "_to_one")

    def __init__(self, env: Env, spec: MulticastSpec) -> None:
        self._env = env
        self._policy = spec.answer
        self._seconds = spec.request_delay
        self._since = float("-inf")
        self._to_one = RangeSet()
        """Messages that were resent to one member recently."""
        self._requester = Address(0)
        """The member that was resent something last."""
        self._to_group = RangeSet()
        """Messages that were resent to the group recently."""

    def choose(
        self, runs: list[Batch], requester: Address
    ) -> Iterator[tuple[Batch, Address | None]]:
        """Each run with its target: a member, or None for the group."""
        if self._policy != "auto":
            target = requester if self._policy == "unicast" else None
            yield from ((run, target) for run in runs)
            return
        if self._env.now - self._since > self._seconds:
            self._since = self._env.now
            self._to_one, self._to_group, self._requester = RangeSet(), RangeSet(), requester
        for run in runs:
            yield from self._choose_one(run, requester)

    def _choose_one(self, run: Batch, requester: Address) -> Iterator[tuple[Batch, Address | None]]:
        span = RangeSet([(run.first, run.last)])
        if run.sender != self._env.me:
            yield run, requester
            return
        for first, last in span.difference(self._to_group):
            part = run.part(first, last)
            if requester != self._requester and self._to_one.clip(first, last):
                self._to_group.add(first, last)
                yield part, None
            else:
                self._to_one.add(first, last)
                self._requester = requester
                yield part, requester
