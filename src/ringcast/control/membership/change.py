"""One view change under way, as its coordinator counts it: the members that were asked, their
answers, and the view that follows from these.

A change is an attempt with a number of its own (the proposal). It is complete when every member
that goes on has stopped sending and reported its seqnos. From the answers follow the seqno at which
each sender's messages of the new view begin, and the messages of departed senders that all
members deliver first.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.frames import Ending, Flushed, Held, Install, MergeReady, Section


class Change:
    """The answers to one proposal."""

    def __init__(
        self,
        proposal: ViewId,
        view: View,
        departed: Iterable[Address],
        leavers: Iterable[Address],
        joiners: Iterable[Peer],
        leader: Address | None = None,
    ) -> None:
        self.proposal = proposal
        self.view = view
        self.departed = tuple(departed)
        self.leavers = tuple(leavers)
        self.joiners = tuple(joiners)
        self.leader = leader
        """The merge leader that makes the view; None when this member makes it."""
        self.awaited = {member for member in view if member not in self.departed}
        self.attempts = 0
        self.unheard = 0
        """How often the merge leader was told without an answer that all have stopped."""
        self._answers: dict[Address, Flushed] = {}
        assert self.awaited.issuperset(self.leavers), "a leaver that is gone or no member"

    def answer(self, member: Address, flushed: Flushed) -> None:
        """A member has stopped."""
        if member in self.awaited:
            self._answers[member] = flushed
        assert self._answers.keys() <= self.awaited

    @property
    def silent(self) -> list[Address]:
        """Members that have not answered yet."""
        return [m for m in self.view if m in self.awaited and m not in self._answers]

    @property
    def survivors(self) -> tuple[Peer, ...]:
        """Members that go on."""
        gone = {*self.departed, *self.leavers}
        return tuple(peer for peer in self.view.peers if peer.address not in gone)

    def starts(self) -> dict[Address, int]:
        """Per member that goes on: its messages up to this seqno belong to the old view."""
        return {peer.address: self._answers[peer.address].sent for peer in self.survivors}

    def install(self, merged: Iterable[MergeReady]) -> Install | None:
        """The new view, with the groups that merge; None when no member goes on."""
        starts = self.starts()
        peers = [*self.survivors, *(p for p in self.joiners if p.address not in starts)]
        sections = [self.section()]
        for ready in merged:
            fresh = [p for p in ready.peers if p.address not in {q.address for q in peers}]
            peers.extend(fresh)
            sections.append(ready.section)
            starts.update(zip([p.address for p in ready.peers], ready.starts, strict=True))
        if not peers:
            return None
        view = View(self.proposal, tuple(peers))
        seqnos = tuple(starts.get(member, 0) for member in view)
        assert view.id > self.view.id, "views go up"
        return Install(view, seqnos, tuple(sections))

    def merge_ready(self) -> MergeReady:
        """The answer to the merge leader: all members here have stopped."""
        starts = tuple(self.starts().values())
        return MergeReady(self.proposal, self.survivors, starts, self.section())

    def section(self) -> Section:
        """How the members go over to the new view."""
        assert not self.silent, "a view is made before all have stopped"
        members = tuple(peer.address for peer in self.survivors)
        endings = [*self._endings_of_departed(), *self._endings_of_leavers()]
        return Section(self.view.id, members, tuple(endings))

    def _endings_of_leavers(self) -> Iterable[Ending]:
        for leaver in self.leavers:
            yield Ending(leaver, self._answers[leaver].sent, leaver, 0)

    def _endings_of_departed(self) -> Iterable[Ending]:
        held: dict[Address, dict[Address, Held]] = {}
        for member, flushed in self._answers.items():
            for entry in flushed.held:
                held.setdefault(entry.origin, {})[member] = entry
        for origin, by_member in held.items():
            last = max(entry.handed for entry in by_member.values())
            lowest = min(entry.handed for entry in by_member.values())
            holders = [m for m, e in by_member.items() if e.handed == last and e.low <= lowest]
            # If no member kept enough (NAKACK4 without retain), each delivers what it has.
            if holders:
                low = max(entry.low for entry in by_member.values() if entry.low <= lowest)
                yield Ending(origin, last, min(holders), low)
