"""The membership part: the state that its components share, and the passage from one view to the
next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from ringcast.control.membership.admission import Admission
from ringcast.control.membership.coordinator import Coordinator
from ringcast.control.membership.departures import Departures
from ringcast.control.membership.invariants import check
from ringcast.control.membership.joiner import Joiner
from ringcast.control.membership.leaver import Leaver
from ringcast.control.membership.participant import Participant
from ringcast.control.membership.settings import Membership
from ringcast.control.membership.transitions import TRANSITIONS, State
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import Expelled, Merged
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.stack.fingerprint import difference
from ringcast.core.stack.part import Installation, Part
from ringcast.core.stack.ports import Control, FailureWatch, Flush, Ports, Search
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import (
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
from ringcast.errors import Malformed

REPEATED_MAX = 1024
"""How many processes are remembered that the view was repeated to, and when."""


@dataclass(frozen=True, kw_only=True)
class MembershipSnapshot(PartSnapshot):
    """What this member does for the view."""

    role: str
    """"joiner", "participant" or "coordinator"."""
    suspects: tuple[Address, ...]
    """The members that the next view is made without."""
    evicted: Mapping[Address, str]
    """The members that were evicted on purpose, and why, as far as this member knows."""


class MembershipPart(Part):
    """The members of the group, as this member knows them (ports.ViewChanger)."""

    kinds = (Join, Leave, Evict, Prepare, Flushed, Install, Installed, Refused, Merge, MergeReady)

    def __init__(self, env: Env, spec: Membership) -> None:
        super().__init__(env)
        self.spec = spec
        self.view: View | None = None
        self.promised = NO_VIEW
        """The highest proposal that this member has answered."""
        self.is_stopped = False
        """Whether this member has stopped sending for a proposal."""
        self.seen = 0
        """The highest number of any proposal of a member heard of."""
        self.admission = Admission(env)
        self.last_install: Install | None = None
        """The frame that brought the view, to be repeated to members that missed it."""
        self.departures = Departures()
        self.joiner = Joiner(self)
        self.leaver = Leaver(self)
        self.participant = Participant(self)
        self.coordinator: Coordinator | None = None
        """Set while this member coordinates."""
        self._is_handling = False
        self._away = 0.0
        """Seconds that this member stays alone after it was evicted."""
        self._repeated: dict[Address, tuple[ViewId, float]] = {}
        """Per process that the view was repeated to: which one, and when."""

    def connect(self, ports: Ports) -> None:
        self.control = ports[Control]
        self.flush = ports[Flush]
        self.discovery = ports[Search]
        self.failure = ports[FailureWatch]

    def on_start(self) -> None:
        self.joiner.enter()

    # Events --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The row's first half in the table of transitions."""
        if self.view is None:
            return State.SEARCHING if self.joiner.coordinator is None else State.JOINING
        coordinator, is_pending = self.coordinator, self.participant.pending is not None
        if coordinator is None:
            if is_pending:
                return State.INSTALLING
            return State.STOPPED if self.is_stopped else State.FOLLOWING
        if is_pending:
            return State.COMPLETING
        if coordinator.change is not None:
            return State.PREPARING if coordinator.change.leader is None else State.MERGING
        if coordinator.has_left:
            return State.DEPARTED
        return State.YIELDED if self.is_stopped else State.COORDINATING

    def handle(self, event: str, *arguments: object) -> None:
        """Do what the table says for this event in the present state."""
        row = TRANSITIONS.get((self.state, event))
        if row is None:
            return
        action = attrgetter(row.action)(self)
        if self._is_handling:  # One event may cause another, in the middle of a transition.
            action(*arguments)
            return
        check(self)
        self._is_handling = True
        try:
            action(*arguments)
        finally:
            self._is_handling = False
        check(self)

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Install) and len(frame.starts) != len(frame.view):
            raise Malformed("a view whose starts do not match its members")
        if not self.admission.believes(frame):
            self.env.counters["dropped_view_number"] += 1
            return
        if isinstance(frame, Prepare) and self.view is not None and source in self.view:
            self.seen = max(self.seen, frame.proposal.number)
        if isinstance(frame, Join):
            self._on_join(frame, source)
        elif isinstance(frame, Merge) and self._refuses(frame.stack):
            view = NO_VIEW if self.control.view is None else self.control.view.id
            self.env.out.send(Refused(frame.proposal, view, self.promised), source)
        else:
            self.handle(frame.kind, frame, source)

    def _on_join(self, frame: Join, source: Address) -> None:
        """Handle a JOIN of its sender; the stack is compared once the sender has proved itself."""
        if frame.peer.address != source or self.view is None:
            return
        self.env.out.learn(frame.peer)
        if self.admission.has_proved(frame.peer, frame.cookie) and self._refuses(frame.stack):
            reason = f"its stack differs: {difference(self.env.fingerprint, frame.stack)}"
            self.env.out.send(Evict(source, reason), source)
        else:
            self.handle(frame.kind, frame, source)

    def _refuses(self, stack: str) -> bool:
        """Whether a member with this fingerprint cannot be in one view with this one."""
        if not difference(self.env.fingerprint, stack):
            return False
        self.env.counters["refused_stack"] += 1
        return True

    def on_timer(self, name: str) -> None:
        self.handle(f"{name} timer")

    def on_suspect(self, member: Address, suspected: bool) -> None:
        self.departures.suspect(member, suspected)
        self.handle("suspect")

    def reached(self) -> None:
        self.handle("reached")

    def found(
        self, peer: Peer, view: ViewId, coordinator: Peer, cookie: int = 0, echo: int = 0
    ) -> None:
        if view.number < self.admission.number_max:  # It has to have a successor.
            self.handle("found", peer, view, coordinator, cookie, echo)
        else:
            self.env.counters["dropped_view_number"] += 1

    def cookie(self, joiner: Peer) -> int:
        return self.admission.cookie(joiner)

    def remind(self) -> None:
        self.handle("suspect")

    def leave(self) -> None:
        self.handle("leave()")

    def evict(self, member: Address, reason: str) -> None:
        self.handle("evict()", member, reason)

    def is_elsewhere(self, member: Address) -> bool:
        return member in self.departures.elsewhere

    def is_late(self, member: Address) -> bool:
        return self.coordinator is not None and self.coordinator.is_late(member)

    def stay_away(self, seconds: float, is_default: bool = False) -> None:
        self._away = seconds if not is_default else self._away or seconds

    def stranger(self, source: Address) -> None:
        """Tell a former member that acts like one of this view which view there is."""
        if self.admission.knows(source):
            self.repeat_view(source)

    # What components ask -------------------------------------------------------------------------

    def repeat_view(self, to: Address, pause: float | None = None) -> None:
        """Send the view to a process that does not have it; at most once per `pause`, as a rule
        `retry_max`: two members that cannot agree must not answer each other without an end."""
        latest = NO_VIEW if self.last_install is None else self.last_install.view.id
        view, told = self._repeated.get(to, (NO_VIEW, 0.0))
        if view == latest and self.env.now - told < (pause or self.spec.retry_max):
            return
        if len(self._repeated) >= REPEATED_MAX:
            self._repeated.clear()
        self._repeated[to] = (latest, self.env.now)
        self.send_view(to)

    def send_view(self, to: Address) -> None:
        """Repeat the view to a member; an evicted one is told why the view is without it."""
        reason = self.departures.reasons.get(to)
        if reason is not None:
            self.env.out.send(Evict(to, reason), to)
        if self.last_install is not None:
            self.env.out.send(self.last_install, to)

    def leads_from(self, base: ViewId, member: Address) -> bool:
        """Whether this member of that view goes over from it to the installed one."""
        frame = self.last_install
        return frame is not None and any(
            section.base == base and member in section.members for section in frame.sections
        )

    @property
    def number_above(self) -> int:
        """A view number above all that this member has heard of, which others believe."""
        assert self.view is not None
        known = max(self.view.id.number, self.promised.number, self.seen)
        return min(known + 1, self.admission.number_max)

    def note_elsewhere(self, members: Iterable[Address]) -> None:
        """Members are in another view: the rest go on, perhaps alone, and merge back."""
        assert self.view is not None
        for member in self.departures.note_elsewhere(self.view, members):
            self.control.suspect(member, True)

    # Roles ---------------------------------------------------------------------------------------

    def take_over(self) -> Coordinator:
        """Coordinate, since all members before this one are absent."""
        coordinator = self._begin_role(Coordinator(self))
        assert coordinator is not None
        coordinator.on_suspect()
        return coordinator

    def step_down(self) -> None:
        """Follow, since a more senior member takes part after all."""
        self._begin_role(None)

    def _begin_role(self, coordinator: Coordinator | None) -> Coordinator | None:
        self.coordinator = coordinator
        self.participant = Participant(self)
        self.leaver.is_out = False
        return coordinator

    # Views ---------------------------------------------------------------------------------------

    def secede(self, reason: str) -> None:
        """Go on alone; the merge that follows brings the groups together again."""
        assert self.view is not None
        view = View(ViewId(self.number_above, self.env.me), (self.env.peer,))
        me = (self.env.me,)
        sent = self.flush.freeze(())
        frame = Install(view, (sent,), (Section(self.view.id, me, ()),))
        self.departures.expelled = reason
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
        old = self.view
        assert self.env.me in frame.view, "a view without this member"
        assert old is None or old.id < frame.view.id, "views go up"
        is_evicted = self._adopt(frame, together)
        self.control.install(_installation(frame, old, starts, together))
        self._tell(frame)
        self._confirm(frame.view, source)
        self._enter()
        if is_evicted and self._away:
            self.discovery.rest(self._away)
        if self.departures.suspects:
            self.handle("suspect")

    def _adopt(self, frame: Install, together: frozenset[Address]) -> bool:
        """Make this the view and take the role that this member has in it; returns whether the
        member was evicted."""
        self.admission.start_view(frame.view, self.view)
        self.view = frame.view
        self.last_install = frame
        self.promised = max(self.promised, frame.view.id)
        self.is_stopped = False
        is_evicted = self.departures.start_view(frame.view, together)
        if frame.view.coordinator != self.env.me:
            self._begin_role(None)
        elif self.coordinator is None:
            self._begin_role(Coordinator(self))
        return is_evicted

    def _tell(self, frame: Install) -> None:
        """Tell the application what the view means besides its members."""
        reason = self.departures.take_expelled()
        if reason:
            self.env.counters["expelled"] += 1
            self.control.emit(Expelled(frame.view, reason))
        if len(frame.sections) > 1:
            subgroups = tuple(section.members for section in frame.sections)
            self.control.emit(Merged(frame.view, subgroups))

    def _confirm(self, view: View, source: Address) -> None:
        for target in dict.fromkeys((source, view.coordinator)):
            if target != self.env.me:
                self.env.out.send(Installed(view.id), target)

    def _enter(self) -> None:
        """The components begin in the new view."""
        if self.coordinator is not None:
            self.coordinator.change = None
        self.participant.enter()
        if self.coordinator is not None:
            self.coordinator.enter()

    def snapshot(self) -> MembershipSnapshot:
        if self.view is None:
            role = "joiner"
        else:
            role = "participant" if self.coordinator is None else "coordinator"
        return MembershipSnapshot(
            role=role,
            suspects=tuple(sorted(self.departures.suspects)),
            evicted=dict(self.departures.reasons),
        )


def _installation(
    frame: Install, old: View | None, starts: dict[Address, int], together: frozenset[Address]
) -> Installation:
    view = frame.view
    before = () if old is None else old.members
    joined = tuple(member for member in view if member not in together)
    left = tuple(m for m in before if m not in view or m not in together)
    endings = [ending for section in frame.sections for ending in section.endings]
    leavers = tuple(ending.origin for ending in endings if ending.holder == ending.origin)
    return Installation(view, old, starts, joined, left, len(frame.sections) > 1, leavers)
