"""One view change under way, as its coordinator counts it: who was asked, who has answered, what
follows from that.

A change is an attempt with a number of its own (the proposal). It is over when every member that is
expected to go on has stopped sending and said how far it is; from the answers follow where each
sender's messages of the new view begin and which messages of the departed everybody delivers first.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.address import Address, Peer
from ringcast.core.frames import Ending, Flushed, Held, Section
from ringcast.core.view import View, ViewId


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
        """The merge leader that this is done for; None when this member makes the view itself."""
        self.awaited = {member for member in view if member not in self.departed}
        self.attempts = 0
        self.unheard = 0
        """How often the merge leader was told in vain that all have stopped."""
        self._answers: dict[Address, Flushed] = {}

    def answer(self, member: Address, flushed: Flushed) -> None:
        """A member has stopped."""
        if member in self.awaited:
            self._answers[member] = flushed

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
        """Per member that goes on: its messages up to here belong to the old view."""
        return {peer.address: self._answers[peer.address].sent for peer in self.survivors}

    def section(self) -> Section:
        """How the members go over to the new view."""
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
            # Where nobody kept enough (NAKACK4 without retain), each delivers what it has.
            if holders:
                low = max(entry.low for entry in by_member.values() if entry.low <= lowest)
                yield Ending(origin, last, min(holders), low)
