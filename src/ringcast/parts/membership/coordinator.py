"""The coordinator: the most senior member, which gathers what has changed and makes the next view.

What arrives close together becomes one view. A change that meets a new crash begins anew with a
higher number. Until every member has said that it installed the view, the coordinator repeats it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.core.address import Address, Peer
from ringcast.core.frames import (
    Evict,
    Flushed,
    Frame,
    Install,
    Installed,
    Join,
    Leave,
    Merge,
    MergeReady,
    Prepare,
    Present,
    Refused,
    Section,
)
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.parts.membership.change import Change
from ringcast.parts.membership.merging import Merging
from ringcast.parts.membership.participant import Participant

if TYPE_CHECKING:
    from ringcast.parts.membership.part import MembershipPart

PATIENCE = 3
"""How often a member is asked in vain before it is accused."""
UNHEARD_MAX = 8
"""How often a merge leader is told in vain that all have stopped before it counts as dead."""
DIRECT_MAX = 64
"""Up to so many newcomers are sent the view directly besides, for networks without multicast; more
of them rely on repeats."""


class Coordinator(Participant):
    """Makes views."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self._joins: dict[Address, Peer] = {}
        self._leaves: set[Address] = set()
        self._change: Change | None = None
        self._unconfirmed: dict[Address, None] = {}
        self._repeats = 0
        self._merging = Merging(part)
        self._gone_myself = False
        """Set once the view without this member is published."""

    def enter(self) -> None:
        """A view is installed, of this coordinator's making or another's; go on with what has come
        since."""
        self._change = None
        super().enter()
        if self._needed:
            self._gather()

    # What makes a new view necessary -------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        """Gather, count answers, and follow like everybody else."""
        match frame:
            case Join():
                self._on_join(frame)
            case Leave() if source in self.view:
                self._leaves.add(source)
                self._gather()
            case Evict() if source in self.view and frame.member != self.env.me:
                self.evict(frame.member, frame.reason)
            case Flushed():
                self._on_flushed(frame, source)
            case Merge():
                self._on_merge(frame, source)
            case Refused():
                self._on_refused(frame, source)
            case MergeReady() if self._merging.on_answer(frame, source):
                self._complete_if_ready()
            case _:
                super().on_frame(frame, source)

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        """Another group, perhaps: the coordinator with the lowest address leads a merge."""
        super().found(peer, view, coordinator)
        if view == NO_VIEW or peer.address in self.view or coordinator.address in self.view:
            return
        self._merging.found(coordinator, view)
        if coordinator.address < self.env.me:
            # The one who has to lead may not know of this group: say so.
            here = Present(self.env.peer, self.view.id, self.env.peer)
            self.env.out.send(here, coordinator.address)
        elif self._change is None and self._merging.leads(self.env.me):
            self._gather()

    def _on_join(self, frame: Join) -> None:
        address = frame.peer.address
        self.env.out.learn(frame.peer)
        if address in self.view:
            self.part.send_view(address)
        else:
            self._joins[address] = frame.peer
            self._gather()

    def on_suspect(self) -> None:
        """A crash, or one less: a change under way that waits for the dead begins anew."""
        if self.acting != self.env.me:
            if self._change is None:
                self.part.step_down()
            return
        change = self._change
        if change is not None and self._gone & change.awaited:
            self._start()
        elif self._gone:
            self._gather()

    def evict(self, member: Address, reason: str) -> None:
        """Make a view without this member."""
        if member in self.view and member != self.env.me:
            self.part.evicted[member] = reason
            self.env.out.send(Evict(member, reason), member)
            self._gather()

    def _ask_to_leave(self) -> None:
        self._leaves.add(self.env.me)
        self._gather()

    def _gather(self) -> None:
        if self._gone_myself or self._change is not None:
            return
        if not self.env.timers.is_set(self.part, "gather"):
            self.env.timers.set(self.part, "gather", self.env.now + self.spec.gather)

    @property
    def _gone(self) -> set[Address]:
        return {m for m in self.part.absent if m in self.view}

    @property
    def _needed(self) -> bool:
        self._joins = {a: peer for a, peer in self._joins.items() if a not in self.view}
        self._leaves = {member for member in self._leaves if member in self.view}
        merges = self._merging.leads(self.env.me)
        return bool(self._gone or self._joins or self._leaves or merges)

    # Making it -----------------------------------------------------------------------------------

    def _start(self, merge: Merge | None = None) -> None:
        """Ask all that go on to stop; with `merge`, for the view of another coordinator."""
        gone = self._gone
        leavers = [member for member in self.view if member in self._leaves and member not in gone]
        if len(leavers) + len(gone) == len(self.view) > 1 and not self._joins:
            leavers.remove(self.env.me)  # Everybody leaves: who puts out the light goes last.
        number = max(self.view.id.number, self.part.promised.number, self.part.seen) + 1
        if merge is None:
            number = max(number, self._merging.number + 1)
            proposal = ViewId(number, self.env.me)
            joiners = tuple(self._joins.values())
            self._merging.begin(proposal)
            leader = None
        else:
            proposal, joiners, leader = merge.proposal, (), merge.proposal.coordinator
        departed = [member for member in self.view if member in gone]
        if self._pending is not None:
            self._unconfirmed = {}  # The view that waits here is given up: nobody is to follow it.
        self._change = Change(proposal, self.view, departed, leavers, joiners, leader)
        self.env.timers.cancel(self.part, "gather")
        frame = Prepare(proposal, self.view.id, tuple(departed), 0)
        if len(self._change.awaited) > 1:
            self.env.out.send(frame)
        self._promise(frame)
        self._retry_later(0)
        self._on_flushed(self._answer(frame), self.env.me)

    def _await(self, frame: Install, source: Address) -> None:
        super()._await(frame, source)
        if self._pending is not None:
            self._give_up()  # Whatever this member was about to propose, it follows this view.

    def _promise(self, frame: Prepare) -> None:
        super()._promise(frame)
        if self._change is not None and frame.proposal > self._change.proposal:
            self._give_up()  # Somebody else makes a later view.

    def _give_up(self) -> None:
        self._change = None
        self._merging.give_up()

    def _on_flushed(self, frame: Flushed, source: Address) -> None:
        change = self._change
        if change is not None and frame.proposal == change.proposal:
            change.answer(source, frame)
            self._complete_if_ready()

    def _on_refused(self, frame: Refused, source: Address) -> None:
        """A merge that does not suit the other now, or a proposal that came after a higher one."""
        if self._merging.on_answer(frame, source):
            self.part.discovery.soon(self.spec.retry_max)
            self._complete_if_ready()
        elif self._change is not None and frame.proposal == self._change.proposal:
            if self._change.leader is not None and source not in self.view:
                self._start()  # The merge that the members here were stopped for is not made.
            elif frame.view != self.view.id:
                self.part.note_gone((source,))
            else:
                self.part.seen = max(self.part.seen, frame.promised.number)
                self._start()
        else:
            super()._on_refused(frame, source)

    def _complete_if_ready(self) -> None:
        change = self._change
        if change is None or change.silent:
            return
        if change.leader is not None:
            self.env.out.send(self._merge_ready(change), change.leader)
        elif self._merging.ready:
            self._complete(change)

    def _complete(self, change: Change) -> None:
        """Everybody has stopped: this is the view."""
        starts = change.starts()
        peers = [*change.survivors, *(p for p in change.joiners if p.address not in starts)]
        sections = [change.section()]
        for ready in self._merging.answers:
            fresh = [p for p in ready.peers if p.address not in {q.address for q in peers}]
            peers.extend(fresh)
            sections.append(ready.section)
            starts.update(zip([p.address for p in ready.peers], ready.starts, strict=True))
        self._change = None
        self._merging.end()
        if not peers:
            self.part.control.finish("left")
            return
        view = View(change.proposal, tuple(peers))
        seqnos = tuple(starts.get(member, 0) for member in view)
        self._publish(Install(view, seqnos, tuple(sections)), change)

    def _publish(self, frame: Install, change: Change) -> None:
        view = frame.view
        for peer in view.peers:
            self.env.out.learn(peer)
            self._joins.pop(peer.address, None)
        self._unconfirmed = dict.fromkeys(view.members)
        self._unconfirmed.pop(self.env.me, None)
        self.part.last_install = frame
        for member, reason in self.part.evicted.items():
            self.env.out.send(Evict(member, reason), member)
        if len(self._unconfirmed) or change.leavers:
            self.env.out.send(frame)
        outside = [m for m in view if m not in self.view] + list(change.leavers)
        for member in outside[:DIRECT_MAX] if len(outside) <= DIRECT_MAX else ():
            if member != self.env.me:
                self.env.out.send(frame, member)
        self._retry_later(0)
        if self.env.me in view:
            self._await(frame, self.env.me)
        else:
            self._gone_myself = True

    # Repeating -----------------------------------------------------------------------------------

    def _on_installed(self, frame: Installed, source: Address) -> None:
        latest = self.part.last_install
        if latest is not None and frame.view == latest.view.id:
            self._unconfirmed.pop(source, None)
            if self._gone_myself and not self._unconfirmed:
                self.part.control.finish("left")
        else:
            super()._on_installed(frame, source)

    def _retry_later(self, repeats: int) -> None:
        self._repeats = repeats
        pause = min(self.spec.retry * 2.0**repeats, self.spec.retry_max)
        self.env.timers.set(self.part, "retry", self.env.now + pause)

    def on_timer(self, name: str) -> None:
        """Begin a change, or repeat what was not answered."""
        if name == "gather":
            if self._pending is not None and not self._is_lost(*self._pending):
                # One view after the other: this member still lacks what comes before the last.
                self.env.timers.set(self.part, "gather", self.env.now + self.spec.retry)
            elif self._change is None and self._needed:
                self._start()
        elif name == "retry":
            self._repeat()
        else:
            super().on_timer(name)

    def _is_lost(self, frame: Install, source: Address) -> bool:
        """Whether somebody in the view that waits is gone, perhaps the only one to have what is
        lacking; then the change begins anew. Who has that view already says so, and can give it."""
        has_it = source in self.view and source not in {self.env.me, *self._gone}
        return not has_it and any(member in frame.view for member in self._gone)

    def _on_stuck(self) -> None:
        if self._change is None:
            super()._on_stuck()  # Else this member repeats its own proposal, with a higher number.

    def _repeat(self) -> None:
        change = self._change
        if change is None and not self._unconfirmed:
            return
        self._retry_later(self._repeats + 1)
        for member in self._unconfirmed:
            self.part.send_view(member)
        if change is not None:
            self._repeat_change(change)

    def _repeat_change(self, change: Change) -> None:
        change.attempts += 1
        is_over = change.attempts * self.spec.retry_max > self.spec.change_timeout
        if is_over or (change.leader is not None and change.unheard >= UNHEARD_MAX):
            self._merging.end()
            self._start()
            return
        frame = Prepare(change.proposal, change.view.id, change.departed, 1)
        for member in change.silent:
            self.env.out.send(frame, member)
            if change.attempts > PATIENCE:
                self.part.failure.accuse(member)
        change.unheard += not change.silent
        self._merging.repeat()
        self._complete_if_ready()

    # Merging -------------------------------------------------------------------------------------

    def _on_merge(self, frame: Merge, source: Address) -> None:
        """Another coordinator leads a merge: stop the members here for it, if nothing else is going
        on but an earlier attempt of the same leader, which it has given up."""
        change = self._change
        if change is not None and change.proposal == frame.proposal:
            change.unheard = 0
            return
        fits = frame.base == self.view.id and frame.proposal > self.part.promised
        is_free = self._pending is None and (change is None or change.leader == source)
        is_free = is_free and not self.part.discovery.resting
        if is_free and fits and source == frame.proposal.coordinator:
            self._start(frame)
        else:
            self._refuse(frame.proposal, source)

    @staticmethod
    def _merge_ready(change: Change) -> MergeReady:
        starts = change.starts()
        section: Section = change.section()
        return MergeReady(change.proposal, change.survivors, tuple(starts.values()), section)
