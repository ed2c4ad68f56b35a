"""The membership part: the state that all roles share, and the passage from one role to the
next."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.address import Address, Peer
from ringcast.core.env import Env
from ringcast.core.events import Expelled, Merged
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
    Refused,
    Section,
)
from ringcast.core.part import Installation, Part
from ringcast.core.ports import Ports
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.errors import Malformed
from ringcast.parts.membership.coordinator import Coordinator
from ringcast.parts.membership.joiner import Joiner
from ringcast.parts.membership.participant import Participant
from ringcast.parts.membership.role import Role
from ringcast.parts.membership.settings import Membership

STRANGERS_MAX = 1024
"""How many strangers are remembered, so that each is told only now and then where it stands."""


class MembershipPart(Part):
    """Who is in the group, as this member knows it."""

    kinds = (Join, Leave, Evict, Prepare, Flushed, Install, Installed, Refused, Merge, MergeReady)

    def __init__(self, env: Env, spec: Membership) -> None:
        super().__init__(env)
        self.spec = spec
        self.view: View | None = None
        self.promised = NO_VIEW
        """The highest proposal that this member has answered."""
        self.seen = 0
        """The highest number of any proposal heard of."""
        self.suspects: set[Address] = set()
        """Members that do not answer; one that is heard again is no longer among them."""
        self._elsewhere: set[Address] = set()
        """Members of this view that are known to be in another one by now."""
        self.evicted: dict[Address, str] = {}
        """Members that the next view will be without, though they are alive, and why."""
        self._told_why: dict[Address, str] = {}
        """The same of the view before, for those that have not heard of it."""
        self._why = ""
        """Why this member is evicted, if it was told so."""
        self._away = 0.0
        """Seconds that it stays alone then."""
        self.last_install: Install | None = None
        """The frame that brought the view, to be repeated to those who missed it."""
        self.leave_until: float | None = None
        """Set once this member is leaving: until when it waits for others to have its messages."""
        self.role: Role = Joiner(self)
        self._expelled = ""
        """Why the next view is a smaller one, to be told to the application."""
        self._strangers: dict[Address, float] = {}

    def connect(self, ports: Ports) -> None:
        self.control = ports.control
        self.flush = ports.flush
        self.discovery = ports.discovery
        assert ports.failure is not None
        self.failure = ports.failure

    def on_start(self) -> None:
        self.role.enter()

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Install) and len(frame.starts) != len(frame.view):
            raise Malformed("a view whose starts do not match its members")
        if isinstance(frame, Prepare):
            self.seen = max(self.seen, frame.proposal.number)
        self.role.on_frame(frame, source)

    def on_timer(self, name: str) -> None:
        self.role.on_timer(name)

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self.suspects.add(member)
        else:
            self.suspects.discard(member)
        self.role.on_suspect()

    # What other parts ask (ports.ViewChanger) ----------------------------------------------------

    def reached(self) -> None:
        self.role.reached()

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        self.role.found(peer, view, coordinator)

    def remind(self) -> None:
        self.role.on_suspect()

    def is_elsewhere(self, member: Address) -> bool:
        return member in self._elsewhere

    def leave(self) -> None:
        self.role.leave()

    def evict(self, member: Address, reason: str) -> None:
        self.role.evict(member, reason)

    def stay_away(self, seconds: float) -> None:
        self._away = seconds

    def stranger(self, source: Address) -> None:
        """Tell somebody who acts like a member, and is none, which view there is; not more often
        than needed."""
        told = self._strangers.get(source)
        if told is not None and self.env.now - told < self.spec.retry_max:
            return
        if len(self._strangers) >= STRANGERS_MAX:
            self._strangers.clear()
        self._strangers[source] = self.env.now
        self.send_view(source)

    # What roles ask ------------------------------------------------------------------------------

    def send_view(self, to: Address) -> None:
        """Repeat the view to somebody; why it is without them, to those whom that concerns."""
        if to in self._told_why:
            self.env.out.send(Evict(to, self._told_why[to]), to)
        if self.last_install is not None:
            self.env.out.send(self.last_install, to)

    def leads_from(self, base: ViewId) -> bool:
        """Whether the members of that view went over to this one."""
        frame = self.last_install
        return frame is not None and any(section.base == base for section in frame.sections)

    def take_over(self) -> None:
        """Coordinate, since everybody before this member is suspected."""
        if not isinstance(self.role, Coordinator):
            self.role = Coordinator(self)
        self.role.on_suspect()

    def step_down(self) -> None:
        """Somebody more senior is there after all."""
        self.role = Participant(self)

    @property
    def absent(self) -> set[Address]:
        """Members that do not take part in this view any more."""
        return self.suspects | self._elsewhere | self.evicted.keys()

    def told_why(self, reason: str) -> None:
        """The others are about to go on without this member, for this reason."""
        self._why = f"evicted: {reason}"

    def note_gone(self, members: Iterable[Address]) -> None:
        """Members are in another view: whoever is left goes on, perhaps alone, and merges back."""
        assert self.view is not None
        news = [m for m in members if m in self.view and m not in self._elsewhere]
        self._elsewhere.update(news)
        if 2 * len(self._elsewhere) >= len(self.view):
            self._expelled = self._why or "the others went on without this member"
        for member in news:
            self.control.suspect(member, True)

    def secede(self, reason: str) -> None:
        """Go on alone; the merge that follows brings the groups together again."""
        assert self.view is not None
        number = max(self.view.id.number, self.promised.number, self.seen) + 1
        view = View(ViewId(number, self.env.me), (self.env.peer,))
        me = (self.env.me,)
        sent = self.flush.freeze(())
        frame = Install(view, (sent,), (Section(self.view.id, me, ()),))
        self._expelled = reason
        self.install(frame, {self.env.me: sent}, frozenset(me), self.env.me)

    def install(
        self,
        frame: Install,
        starts: dict[Address, int],
        together: frozenset[Address],
        source: Address,
    ) -> None:
        """Install a view; `together` are the members that come over from the same view as this
        one."""
        view, old = frame.view, self.view
        before = () if old is None else old.members
        joined = tuple(member for member in view if member not in together)
        left = tuple(m for m in before if m not in view or m not in together)
        self.view = view
        self.last_install = frame
        self.promised = max(self.promised, view.id)
        self.suspects = {m for m in self.suspects if m in view and m in together}
        is_evicted = bool(self._why and self._expelled)
        self._elsewhere, self._why = set(), ""
        self._told_why = {m: why for m, why in self.evicted.items() if m not in view}
        self.evicted = {}
        self._change_role(view)
        self.control.install(Installation(view, old, starts, joined, left))
        if self._expelled:
            self.env.counters["expelled"] += 1
            self.control.emit(Expelled(view, self._expelled))
            self._expelled = ""
        if len(frame.sections) > 1:
            subgroups = tuple(section.members for section in frame.sections)
            self.control.emit(Merged(view, subgroups))
        for target in dict.fromkeys((source, view.coordinator)):
            if target != self.env.me:
                self.env.out.send(Installed(view.id), target)
        self.role.enter()
        if is_evicted and self._away:
            self.discovery.rest(self._away)
        if self.suspects:
            self.role.on_suspect()

    def _change_role(self, view: View) -> None:
        if view.coordinator != self.env.me:
            self.role = Participant(self)
        elif not isinstance(self.role, Coordinator):
            self.role = Coordinator(self)

    def snapshot(self) -> dict[str, object]:
        return {
            "role": type(self.role).__name__.lower(),
            "suspects": [str(member) for member in sorted(self.suspects)],
        }
