"""The participant: a member that follows view changes, and notices when it has to make one itself.

A view change, as a participant sees it: a proposal asks it to stop (PREPARE), it stops and reports
its seqnos (FLUSHED), the view arrives (VIEW), it gets what it lacks, installs the view, and says so
(INSTALLED). Its rules:

- It answers the highest proposal it has seen and no lower one, so of two rival coordinators one
  succeeds.
- It installs a view only as the one that follows its own. A view that skips its own means that it
  missed some, which it asks for, or that the others went on without it.
- Once it has answered, it sends nothing until a view is installed. The member that proposed stays
  responsible until there is one; if it dies, its successor proposes anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.control.membership.component import Component
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.frames import (
    Evict,
    Flushed,
    Install,
    Installed,
    Join,
    Merge,
    MergeReady,
    Prepare,
    Refused,
)
from ringcast.errors import Malformed

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart


class Participant(Component):
    """Follows view changes; a coordinator does so as well."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self.pending: tuple[Install, Address] | None = None
        """The view that waits for what comes before it, and its sender."""
        self._waits_left = 0
        """How many more times this member waits for the view of a proposal that it has answered."""

    def enter(self) -> None:
        """Take part in a view that was installed."""
        self.pending = None
        self.env.timers.cancel(self.part, "stuck")
        self.part.discovery.pause()
        if self.part.leaver.is_leaving:
            self.part.leaver.on_leave_timer()

    @property
    def acting(self) -> Address:
        """The member that makes the next view: the most senior one that takes part."""
        absent = self.part.departures.absent
        return next((member for member in self.view if member not in absent), self.env.me)

    def on_found(self, peer: Peer, view: ViewId, coordinator: Peer, cookie: int, echo: int) -> None:
        """A member of this view is in a later one: this member has missed something. Or it has to
        coordinate and searches still: the view was lost on its way, and its coordinator is gone."""
        if peer.address not in self.view:
            return
        if view == NO_VIEW:
            absent = self.part.departures.absent
            is_next = peer.address == self.acting != self.view.coordinator
            others = (m for m in self.view if m not in absent and m != peer.address)
            if is_next and next(others, None) == self.env.me:
                self.part.repeat_view(peer.address)
        elif view.number > self.view.id.number:
            self.env.out.send(Installed(self.view.id), peer.address)

    # Stopping ------------------------------------------------------------------------------------

    def on_prepare(self, frame: Prepare, source: Address) -> None:
        """Stop for the highest proposal; contradict one that rests on another view."""
        if source not in self.view:
            if frame.direct:
                self.refuse(frame.proposal, source)
        elif frame.base != self.view.id:
            self.env.out.send(Installed(self.view.id), source)
            if frame.base < self.view.id:
                self.part.repeat_view(source, self.spec.retry)
        elif self.env.me in frame.departed:
            self.env.counters["declared_dead"] += 1
        elif frame.proposal < self.part.promised:
            self.refuse(frame.proposal, source)
        else:
            self.promise(frame)
            self.env.out.send(self.answer(frame), source)

    def on_merge(self, frame: Merge, source: Address) -> None:
        """Only a coordinator can merge."""
        self.refuse(frame.proposal, source)

    def refuse(self, proposal: ViewId, source: Address) -> None:
        """Contradict a proposal: with the view here and the highest proposal answered."""
        self.env.out.send(Refused(proposal, self.view.id, self.part.promised), source)

    def promise(self, frame: Prepare) -> None:
        """Bind this member to a proposal."""
        self.part.promised = frame.proposal
        self.part.is_stopped = True
        self.pending = None
        self._waits_left = 1
        self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)
        if self.part.coordinator is not None:
            self.part.coordinator.on_promise(frame.proposal)

    def answer(self, frame: Prepare) -> Flushed:
        """Stop sending, and say what was sent and what is held of the departed."""
        sent = self.part.flush.freeze(frame.departed)
        return Flushed(frame.proposal, sent, self.part.flush.held(frame.departed))

    # Going over to the view ----------------------------------------------------------------------

    def on_view(self, frame: Install, source: Address) -> None:
        """A view: an old one, one without this member, or the next."""
        view = frame.view
        if view.id <= self.view.id:
            if view.id == self.view.id or (self.env.me not in view and source in self.view):
                # Either the answer was lost, or the source may be in another view: it will say.
                self.env.out.send(Installed(self.view.id), source)
        elif source not in self.view and source != self.part.promised.coordinator:
            self.env.counters["dropped_stranger_view"] += 1  # Nor does a merge bring it.
            if self.env.me in view:  # It asked that one to be admitted, and others were faster.
                self.refuse(view.id, source)
        elif self.env.me not in view:
            self._on_view_without_me(frame, source)
        elif view.id >= self.part.promised or self._is_released(source):
            self.wait_for(frame, source)
        else:
            # The member that holds the promise may have this view by now: it repeats it then.
            self.env.out.send(Installed(self.view.id), self.part.promised.coordinator)

    def _is_released(self, source: Address) -> bool:
        """Whether the promise no longer binds: the member that holds it sends another view, is in
        another view, or is this member."""
        holder = self.part.promised.coordinator
        return holder in (source, self.env.me) or self.part.is_elsewhere(holder)

    def _on_view_without_me(self, frame: Install, source: Address) -> None:
        """Members of this view are in a later one without this member."""
        follows = any(section.base == self.view.id for section in frame.sections)
        if not follows and source not in self.view:
            return
        if self.part.leaver.is_leaving:
            self.part.leaver.on_view_without_me(frame)
        else:
            self.part.note_elsewhere(member for member in frame.view if member in self.view)

    def wait_for(self, frame: Install, source: Address) -> None:
        """Get everything that comes before the view, then install it."""
        section = next((s for s in frame.sections if s.base == self.view.id), None)
        if section is None or self.env.me not in section.members:
            self.env.out.send(Installed(self.view.id), source)
        elif not all(member in self.view and member in frame.view for member in section.members):
            raise Malformed("a view with a section of members that are not in both views")
        elif self.pending is None or self.pending[0].view.id != frame.view.id:
            self.pending = (frame, source)
            self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)
            starts = dict(zip(frame.view.members, frame.starts, strict=True))
            mine = {member: starts[member] for member in section.members if member in starts}
            self.part.flush.aim(frame.view.id, mine, section.endings)
        if self.pending is not None and self.part.coordinator is not None:
            self.part.coordinator.give_up()  # It follows this view instead of its own proposal.

    def on_reached(self) -> None:
        """The multicast has handed up all that comes before the view that waits: install it."""
        if self.pending is None:
            return
        (frame, source), self.pending = self.pending, None
        section = next(s for s in frame.sections if s.base == self.view.id)
        starts = dict(zip(frame.view.members, frame.starts, strict=True))
        self.env.timers.cancel(self.part, "stuck")
        self.part.install(frame, starts, frozenset(section.members), source)

    def on_stuck_timer(self) -> None:
        """No view was installed: first accept any that follows this one, then go on alone."""
        if self.pending is not None:
            self.part.secede("what comes before the next view could not be had")
        elif self._waits_left:
            self._waits_left -= 1
            # Numbers go on from here: a view with this number may have been published.
            self.part.seen = max(self.part.seen, self.part.promised.number)
            self.part.promised = self.view.id
            self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)
        else:
            self.part.secede("the next view did not come")

    # Answering others ----------------------------------------------------------------------------

    def on_installed(self, frame: Installed, source: Address) -> None:
        """A member says which view it has: help it if that is old, contradict it if wrong."""
        if frame.view >= self.view.id:
            if source not in self.view:
                self.refuse(frame.view, source)
        elif (
            frame.view == NO_VIEW
            or source not in self.view
            or self.part.leads_from(frame.view, source)
        ):
            if source in self.view or self.part.admission.knows(source):
                self.part.repeat_view(source, self.spec.retry)
            elif frame.view != NO_VIEW:
                self.refuse(frame.view, source)
        else:
            self.part.note_elsewhere((source,))  # No way leads from its view to this one.

    def on_refused(self, frame: Refused, source: Address) -> None:
        """A member says that it is not in this view (any more)."""
        if frame.proposal == self.view.id != frame.view and source in self.view:
            self.part.note_elsewhere((source,))

    def on_merge_ready(self, frame: MergeReady, source: Address) -> None:
        """Another group has stopped for a merge that is made already, or that was given up."""
        latest = self.part.last_install
        if latest is not None and latest.view.id == frame.proposal and source in latest.view:
            self.part.send_view(source)
        else:
            self.refuse(frame.proposal, source)

    def on_join(self, frame: Join, source: Address) -> None:
        """Only the coordinator admits: name it."""
        if source in self.view:
            self.part.send_view(source)
            return
        rank = self.view.rank(self.acting)
        self.part.discovery.introduce(frame.peer, self.view.peers[rank])

    # Departures ----------------------------------------------------------------------------------

    def on_suspect(self) -> None:
        """Take the coordinator's place, when all members before this one are absent."""
        if self.acting == self.env.me:
            self.part.take_over()

    def evict(self, member: Address, reason: str) -> None:
        """Ask the coordinator, or its successor if the coordinator is the one to evict."""
        absent = self.part.departures.absent
        maker = next((m for m in self.view if m not in absent and m != member), self.env.me)
        if maker != self.env.me:
            self.env.out.send(Evict(member, reason), maker)
        elif member in self.view and member != self.env.me:
            self.part.departures.evicted[member] = reason
            self.part.take_over().evict(member, reason)

    def on_evict(self, frame: Evict, source: Address) -> None:
        """This member is evicted, or it has to evict the coordinator."""
        if source not in self.view:
            return
        if frame.member == self.env.me:
            self.part.departures.told_why(frame.reason)
        elif frame.member == self.acting:
            self.evict(frame.member, frame.reason)
