"""A state that all members of a swarm run keep, and that newcomers are given.

The state of a member is how many messages it has delivered of each sender, and a digest of them.
When the faults have ended, a newcomer and the member that gave it the state have the same state, if
they have been in the same views since; and no newcomer is without a state that a member of its
first view had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event
from ringcast.core.model.view import View, ViewId
from ringcast.services.state_requester import OVER, Stage, StateRequester
from ringcast.sim.engine.member import Member

PADDING = 20_000
"""Bytes that make a state longer, so that it takes a while."""
DIGEST = 8
"""Bytes of a digest."""


class KeptState:
    """The state of one life of a member, which is its application."""

    def __init__(self, member: Member, now: float) -> None:
        self.member = member
        self.me = member.me
        self.began = now
        self.requester: StateRequester = member.service.requester
        self._pages: dict[str, tuple[int, str]] = {}
        self._is_loaded = False
        member.service.hear = self._on_event
        member.service.provide(self._chunks)

    @property
    def pages(self) -> dict[str, tuple[int, str]]:
        """Sender → how many messages of it, and their digest; the state that was taken included."""
        self._load()
        return self._pages

    @property
    def is_alive(self) -> bool:
        """Whether this life goes on."""
        return self.member.alive and self.member.me == self.me

    def views_since(self, first: ViewId) -> list[ViewId] | None:
        """The views from this one on; None when it was never in that one."""
        views = [view.id for view in self.member.views]
        return views[views.index(first) :] if first in views else None

    def _on_event(self, event: Event) -> None:
        self._load()
        if isinstance(event, Batch) and event.dest is None:
            sender = f"{int(event.sender):x}"
            count, digest = self._pages.get(sender, (0, ""))
            for payload in event.payloads:
                digest = blake2b(digest.encode() + bytes(payload), digest_size=DIGEST).hexdigest()
            self._pages[sender] = count + len(event), digest

    def _load(self) -> None:
        """Begin with the state that was taken: nothing is delivered before it."""
        if not self._is_loaded and self.member.service.state is not None:
            self._is_loaded = True
            read = json.loads(self.member.service.state)
            self._pages = {sender: (count, digest) for sender, (count, digest) in read.items()}

    def _chunks(self) -> Iterable[bytes]:
        return [json.dumps(self.pages).encode(), b" " * PADDING]


class KeptStates:
    """The states of all lives of a run."""

    def __init__(self) -> None:
        self._all: list[KeptState] = []

    def add(self, member: Member, now: float) -> None:
        """A member has started, with an empty state; it was started to seek one."""
        self._all.append(KeptState(member, now))

    @property
    def searching(self) -> list[str]:
        """The names of the running newcomers that still wait for a state, or for none."""
        return [r.member.name for r in self._living() if r.requester.stage not in OVER]

    def problems(self) -> Iterator[str]:
        """What is wrong with the states, once everything is delivered."""
        living = self._living()
        by_address = {replica.me: replica for replica in living}
        for replica in living:
            provider = by_address.get(replica.requester.provider or replica.me, replica)
            if replica.requester.stage is Stage.TAKEN and provider is not replica:
                yield from _compare(replica, provider)
            elif replica.requester.stage in (Stage.NONE, Stage.FAILED):
                yield from _explain(replica, living)

    def _living(self) -> list[KeptState]:
        return [replica for replica in self._all if replica.is_alive]


def _compare(newcomer: KeptState, provider: KeptState) -> Iterator[str]:
    """Whether two that have gone together since one gave the other its state have the same."""
    common = _first_view_with(newcomer, provider)
    if common is None or newcomer.views_since(common.id) != provider.views_since(common.id):
        return
    theirs, own = provider.pages, newcomer.pages
    for sender in sorted({*theirs, *own}):
        if theirs.get(sender) != own.get(sender):
            count, there = own.get(sender, (0, ""))[0], theirs.get(sender, (0, ""))[0]
            yield (
                f"{newcomer.member.name}: its state has {count} messages of {sender}, and that of"
                f" {provider.member.name}, which gave it the state, {there}; or others"
            )
            return


def _explain(newcomer: KeptState, living: Iterable[KeptState]) -> Iterator[str]:
    """Whether a newcomer was in its first view with a member that had a state and never left it."""
    views = newcomer.member.views
    if not views or len(views[0]) == 1:
        return
    first = views[0]
    for other in living:
        if (
            other is not newcomer
            and other.me in first
            and _had_state(other, newcomer.began)
            and other.views_since(first.id) == newcomer.views_since(first.id)
        ):
            yield (
                f"{newcomer.member.name}: {newcomer.requester.stage.value}, but"
                f" {other.member.name} had a state before and was in all of its views"
            )
            return


def _had_state(replica: KeptState, before: float) -> bool:
    """Whether it had the group's state at that time: it was given it, or created the group."""
    over_at, views = replica.member.service.over_at, replica.member.views
    if over_at is None or over_at >= before or not views:
        return False
    is_first = replica.requester.stage is Stage.NONE and len(views[0]) == 1
    return replica.requester.stage is Stage.TAKEN or (is_first and not replica.requester.lacks)


def _first_view_with(newcomer: KeptState, provider: KeptState) -> View | None:
    return next((view for view in newcomer.member.views if provider.me in view), None)
