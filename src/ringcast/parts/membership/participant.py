"""The participant: a member that follows view changes, and notices when it is the one to make them.

A view change, as a participant sees it: a proposal asks it to stop (PREPARE), it stops and says how
far it is (FLUSHED), the view comes (VIEW), it gets what it lacks, installs it, and says so
(INSTALLED). Its rules:

- It answers the highest proposal it has seen and no lower one, so of two rival coordinators one
  goes through.
- It installs a view only as the one that follows its own; one that skips its own means that it
  missed some, which it asks for, or that the others went on without it.
- Having answered, it sends nothing until a view is installed. Whoever asked stays responsible until
  there is one: if it dies, its successor asks anew.
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
)
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.parts.membership.role import Role

if TYPE_CHECKING:
    from ringcast.parts.membership.part import MembershipPart


class Participant(Role):
    """Follows."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self._pending: tuple[Install, Address] | None = None
        self._hope = 0
        """How many more times this member waits for the view of a proposal that it has answered."""
        self._going = False
        """Whether this member has left, and stays for those who may ask it for messages."""

    def enter(self) -> None:
        """Take part in a view."""
        self._pending = None
        self.env.timers.cancel(self.part, "stuck")
        self.part.discovery.pause()
        if self.part.leave_until is not None:
            self._leave_step()

    @property
    def view(self) -> View:
        """The installed view."""
        assert self.part.view is not None
        return self.part.view

    @property
    def acting(self) -> Address:
        """Who makes the next view: the most senior member that is not suspected."""
        absent = self.part.absent
        return next((member for member in self.view if member not in absent), self.env.me)

    def on_frame(self, frame: Frame, source: Address) -> None:
        """Follow a view change."""
        match frame:
            case Prepare():
                self._on_prepare(frame, source)
            case Install():
                self._on_install(frame, source)
            case Installed():
                self._on_installed(frame, source)
            case Refused():
                self._on_refused(frame, source)
            case Join():
                self._on_join(frame)
            case Merge():
                self._refuse(frame.proposal, source)  # Not for this member to decide.
            case MergeReady():
                self._on_merge_ready(frame, source)
            case Evict() if source in self.view:
                self._on_evict(frame)

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        """Somebody of this view who is in a later one: this member has missed something."""
        if peer.address in self.view and view.number > self.view.id.number:
            self.env.out.send(Installed(self.view.id), peer.address)

    # Following a change --------------------------------------------------------------------------

    def _on_prepare(self, frame: Prepare, source: Address) -> None:
        if source not in self.view:
            if frame.direct:
                self._refuse(frame.proposal, source)
        elif frame.base != self.view.id:
            self.env.out.send(Installed(self.view.id), source)
            if frame.base < self.view.id:
                self.part.send_view(source)
        elif self.env.me in frame.departed:
            self.env.counters["declared_dead"] += 1
        elif frame.proposal < self.part.promised:
            self._refuse(frame.proposal, source)
        else:
            self._promise(frame)
            self.env.out.send(self._answer(frame), source)

    def _refuse(self, proposal: ViewId, source: Address) -> None:
        self.env.out.send(Refused(proposal, self.view.id, self.part.promised), source)

    def _promise(self, frame: Prepare) -> None:
        self.part.promised = frame.proposal
        self._pending = None
        self._hope = 1
        self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)

    def _answer(self, frame: Prepare) -> Flushed:
        sent = self.part.flush.freeze(frame.departed)
        return Flushed(frame.proposal, sent, self.part.flush.held(frame.departed))

    def _on_install(self, frame: Install, source: Address) -> None:
        view = frame.view
        if view.id <= self.view.id:
            if view.id == self.view.id or (self.env.me not in view and source in self.view):
                # Either the answer was lost, or the source may be elsewhere by now: it will say.
                self.env.out.send(Installed(self.view.id), source)
        elif self.env.me not in view:
            self._on_view_without_me(frame, source)
        elif view.id >= self.part.promised or self._given_up(source):
            self._await(frame, source)

    def _given_up(self, source: Address) -> bool:
        """Whether the promise no longer binds: who holds it sends another view, or holds none but
        itself."""
        return self.part.promised.coordinator in (source, self.env.me)

    def _on_view_without_me(self, frame: Install, source: Address) -> None:
        """Members of this view are in a later one without this member: they are gone."""
        follows = any(section.base == self.view.id for section in frame.sections)
        if not follows and source not in self.view:
            return
        if self.part.leave_until is None:
            self.part.note_gone(member for member in frame.view if member in self.view)
        elif not self._is_asked(frame):
            self.part.control.finish("left")
        elif not self._going:
            self._going = True
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.retry_max)

    def _is_asked(self, frame: Install) -> bool:
        """Whether those who go on may lack what they are to get from this member."""
        endings = (e for s in frame.sections if s.base == self.view.id for e in s.endings)
        mine = [ending.origin for ending in endings if ending.holder == self.env.me]
        return any(origin != self.env.me or not self.part.control.drained for origin in mine)

    def _await(self, frame: Install, source: Address) -> None:
        """Get everything that comes before the view, then install it."""
        section = next((s for s in frame.sections if s.base == self.view.id), None)
        if section is None or self.env.me not in section.members:
            self.env.out.send(Installed(self.view.id), source)
            return
        if self._pending is not None and self._pending[0].view.id == frame.view.id:
            return
        self._pending = (frame, source)
        self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)
        starts = dict(zip(frame.view.members, frame.starts, strict=True))
        mine = {member: starts[member] for member in section.members if member in starts}
        self.part.flush.aim(frame.view.id, mine, section.endings)

    def reached(self) -> None:
        """Install the view that waits."""
        if self._pending is None:
            return
        (frame, source), self._pending = self._pending, None
        section = next(s for s in frame.sections if s.base == self.view.id)
        starts = dict(zip(frame.view.members, frame.starts, strict=True))
        self.env.timers.cancel(self.part, "stuck")
        self.part.install(frame, starts, frozenset(section.members), source)

    def _on_installed(self, frame: Installed, source: Address) -> None:
        """Somebody says which view it has: help it if that is old, contradict it if wrong."""
        if frame.view >= self.view.id:
            if source not in self.view:
                self._refuse(frame.view, source)
        elif frame.view == NO_VIEW or source not in self.view or self.part.leads_from(frame.view):
            if frame.view != NO_VIEW or source in self.view:
                self.part.send_view(source)
        else:
            self.part.note_gone((source,))  # From where it is, no way leads to this view.

    def _on_refused(self, frame: Refused, source: Address) -> None:
        """A member says that it is not in this view (any more)."""
        if frame.proposal == self.view.id != frame.view and source in self.view:
            self.part.note_gone((source,))

    def _on_merge_ready(self, frame: MergeReady, source: Address) -> None:
        """Another group has stopped for a merge that is made already, or that was given up."""
        latest = self.part.last_install
        if latest is not None and latest.view.id == frame.proposal and source in latest.view:
            self.part.send_view(source)
        else:
            self._refuse(frame.proposal, source)

    def _on_join(self, frame: Join) -> None:
        """Not for this member to decide: say who does."""
        address = frame.peer.address
        self.env.out.learn(frame.peer)
        if address in self.view:
            self.part.send_view(address)
            return
        rank = self.view.rank(self.acting)
        self.env.out.send(Present(self.env.peer, self.view.id, self.view.peers[rank]), address)

    # Suspicion and leaving -----------------------------------------------------------------------

    def on_suspect(self) -> None:
        """Take the coordinator's place, when all before this member are suspected."""
        if self.acting == self.env.me:
            self.part.take_over()

    def evict(self, member: Address, reason: str) -> None:
        """Ask the coordinator, or whoever comes after it if it is the one."""
        others = (m for m in self.view if m not in self.part.absent and m != member)
        maker = next(others, self.env.me)
        if maker != self.env.me:
            self.env.out.send(Evict(member, reason), maker)
        elif member in self.view and member != self.env.me:
            self.part.evicted[member] = reason
            self.part.take_over()
            self.part.role.evict(member, reason)

    def _on_evict(self, frame: Evict) -> None:
        """This member is the one, or the one to see to it."""
        if frame.member == self.env.me:
            self.part.told_why(frame.reason)
        elif frame.member == self.acting:
            self.evict(frame.member, frame.reason)

    def leave(self) -> None:
        """Wait until everybody has this member's messages, then ask for a view without it."""
        if self.part.leave_until is None:
            self.part.leave_until = self.env.now + self.spec.drain_timeout
            self._leave_step()

    def on_timer(self, name: str) -> None:
        """Go on leaving, or give up a view that cannot be reached."""
        if name == "leave":
            self._leave_step()
        elif name == "stuck":
            self._on_stuck()

    def _on_stuck(self) -> None:
        """No view has come: first take any that follows this one, then go on alone and merge."""
        if self._pending is None and self._hope:
            self._hope -= 1
            self.part.promised = self.view.id
            self.env.timers.set(self.part, "stuck", self.env.now + self.spec.change_timeout)
        elif self._pending is not None:
            self.part.secede("what comes before the next view could not be had")
        else:
            self.part.secede("the next view did not come")

    def _leave_step(self) -> None:
        until = self.part.leave_until
        assert until is not None
        if self._going or len(self.view) == 1:
            self.part.control.finish("left")
        elif not self.part.control.drained and self.env.now < until:
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.gather)
        elif self.env.now > until + self.spec.leave_timeout:
            self.part.control.finish("left, though nobody has answered")
        else:
            self._ask_to_leave()
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.retry_max)

    def _ask_to_leave(self) -> None:
        self.env.out.send(Leave(self.view.id), self.acting)
