"""Majority: messages are sent only in views that a majority has agreed on.

After a partition each side goes on with a view of its own. With this layer at most one of them may
send: the one with more than half of the members of the last agreed view, or with half of them and
the most senior. The sends of all other sides wait until a merge. Members that have left in order do
not count.

The last agreed view is not the same at all members: a member may be cut off just before it hears
that a view was agreed on. So a view is agreed on in two steps (the dynamic voting of Yeger-Lotem,
Keidar and Dolev, 1997):

1. Each member says what it knows: the last view that it has agreed on, and the later ones that it
   has attempted. With the knowledge of all, each member decides the same: the view needs a majority
   of the last agreed view, and of each later attempt, which may have succeeded elsewhere.
2. If it has them, the view is an attempt, which each member notes and says. A member that knows
   that all have noted it has agreed on the view, and sends.

No member knows anything in the beginning: the first view with `first` members is agreed on.

A process that starts again is a new member and replaces no other. If half of the members crash at
once, and no view was made in between, the rest waits for good: to them it looks like a partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.model.events import QuorumLost, QuorumRegained
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.stack.counters import declare
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Control, Ports
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import AgreedView, Frame, Quorum
from ringcast.errors import ConfigError

ASKING, LACKING, ATTEMPTING, AGREED = 0, 1, 2, 3
"""How far a member is with a view; LACKING and AGREED are final, and wait for nothing."""
NOTHING = AgreedView(NO_VIEW, ())
ATTEMPTS_MAX = 64
"""Attempts that are remembered; a member that has noted more takes part in no further one."""

declare("quorum_lost", "times", "Views that had no majority: sends wait.")


@protocol(role="quorum", over="flow", under="fragment")
@dataclass(frozen=True, kw_only=True)
class Majority(Spec):
    """Sends only in views with a majority of the last agreed view; without this protocol all sides
    of a partition send."""

    alike: ClassVar[tuple[str, ...]] = ("first",)

    first: int = 1
    """How many members the first agreed view needs. With 1 each group that begins apart has a
    majority of its own; more than half of the members that are planned rule that out."""
    interval: float = 0.1
    """Seconds between repeats while members do not know how far the others are."""

    def __post_init__(self) -> None:
        if self.first < 1:
            raise ConfigError(f"Majority.first is {self.first}: give at least 1")
        if self.interval <= 0:
            raise ConfigError(f"Majority.interval is {self.interval}: give seconds above 0")

    def build(self, env: Env) -> MajorityLayer:
        """The layer with these settings."""
        return MajorityLayer(env, self)


def has_majority(present: Collection[int], members: Iterable[int], left: Collection[int]) -> bool:
    """Whether those present have a majority of a view's members, by seniority, without those that
    have left it."""
    voters = [member for member in members if member not in left]
    count = sum(member in present for member in voters)
    if 2 * count == len(voters) > 0:
        return voters[0] in present
    return 2 * count >= len(voters)


@dataclass(frozen=True, kw_only=True)
class MajoritySnapshot(PartSnapshot):
    """Whether this side of a partition may send."""

    has_quorum: bool
    """Whether it may."""
    agreed: ViewId
    """The last view that this member has agreed on."""
    missing: tuple[Address, ...]
    """The members of that view that are neither here nor have left in order."""


class MajorityLayer(Layer):
    """Lets messages pass in views that a majority has agreed on."""

    kinds = (Quorum,)

    def __init__(self, env: Env, spec: Majority) -> None:
        super().__init__(env)
        self.spec = spec
        self.agreed = NOTHING
        """The last view that a majority has agreed on, as far as this member knows."""
        self.before = NOTHING
        """The one before it, when this member agreed itself; for checks."""
        self.uncounted: frozenset[Address] = frozenset()
        """Those that had left, and were not counted, when this member agreed; for checks."""
        self.left: set[Address] = set()
        """Those that have left in order since then."""
        self._attempts: list[AgreedView] = []
        self._view: View | None = None
        self._names: dict[Address, str] = {}
        """What people call the members of the view, and of the agreed one before it."""
        self._phase = ASKING
        self._known: dict[Address, Quorum] = {}
        """What the members of the view have said."""
        self._is_lost = False

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]

    @property
    def has_quorum(self) -> bool:
        """Whether a majority has agreed on the view."""
        return self._phase == AGREED

    # Sending -------------------------------------------------------------------------------------

    def room(self, dest: Address | None) -> tuple[int, int]:
        return self.below.room(dest) if self._phase == AGREED else (0, 0)

    @property
    def block_text(self) -> str:
        if self._phase == AGREED:
            return ""
        missing = ", ".join(self._names.get(member, str(member)) for member in self._missing)
        if not missing:
            return "no majority has agreed on the view yet"
        return f"the view has no majority of the last agreed one: {missing} are missing"

    # Views ---------------------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        self._view = installation.view
        kept = {m: name for m, name in self._names.items() if m in self.agreed.members}
        self._names = kept | {peer.address: peer.name for peer in installation.view.peers}
        self.left.update(installation.leavers)
        self._phase = ASKING
        self._known = {self.env.me: self._frame(installation.view)}
        self._advance()
        self._say()

    def _frame(self, view: View) -> Quorum:
        counted = {m for one in (self.agreed, *self._attempts) for m in one.members}
        self.left &= counted
        left = tuple(sorted(self.left))
        return Quorum(view.id, self._phase, self.agreed, tuple(self._attempts), left)

    def _say(self, to: Address | None = None) -> None:
        """Tell the members how far this one is; again on each tick until all are as far."""
        assert self._view is not None
        if len(self._view) > 1:
            self.env.out.send(self._known[self.env.me], to)
        if to is None and not self.is_settled:
            self.env.timers.set(self, "say", self.env.now + self.spec.interval)

    @property
    def is_settled(self) -> bool:
        """Whether this member waits for nothing."""
        return self._phase in (LACKING, AGREED)

    @property
    def _has_heard_all(self) -> bool:
        assert self._view is not None
        return len(self._known) == len(self._view)

    def on_timer(self, name: str) -> None:
        if self._view is not None and not self.is_settled:
            self._say()

    def on_frame(self, frame: Frame, source: Address) -> None:
        view = self._view
        if not isinstance(frame, Quorum) or view is None or frame.view != view.id:
            return
        if source not in view or source == self.env.me:
            return
        known = self._known.get(source)
        if known is None or known.phase < frame.phase:
            self._known[source] = frame
        before = self._phase
        self._advance()
        if self._phase > before:
            self._say()
        elif frame.phase in (ASKING, ATTEMPTING) and (
            known is None or self.is_settled or frame.phase < self._phase
        ):
            self._say(source)  # It waits, perhaps for what is lost.

    def _advance(self) -> None:
        """Go on as far as what the members have said allows."""
        view = self._view
        assert view is not None
        if self._phase == ASKING and self._has_heard_all:
            self._decide(view)
        phases = [known.phase for known in self._known.values()]
        is_noted = self._has_heard_all and min(phases) >= ATTEMPTING
        if self._phase == ATTEMPTING and (is_noted or AGREED in phases):
            self._agree(view)

    def _decide(self, view: View) -> None:
        """All have said what they know: all of them come to the same conclusion."""
        said = self._known.values()
        self._learn(max((one.agreed for one in said), key=lambda agreed: agreed.id))
        self.left.update(member for one in said for member in one.left)
        attempts = {attempt for one in said for attempt in one.attempts}
        needed = [self.agreed, *(one for one in attempts if one.id > self.agreed.id)]
        if self.agreed == NOTHING and not attempts:
            is_majority = len(view) >= self.spec.first
        else:
            is_majority = all(has_majority(view, one.members, self.left) for one in needed)
        if is_majority and len(self._attempts) < ATTEMPTS_MAX:
            self._attempts.append(AgreedView(view.id, view.members))
            self._phase = ATTEMPTING
        else:
            self._phase = LACKING
            if not self._is_lost:
                self._is_lost = True
                self.env.counters["quorum_lost"] += 1
                self._control.emit(QuorumLost(view, self._missing))
        self._known[self.env.me] = self._frame(view)

    def _learn(self, agreed: AgreedView) -> None:
        if agreed.id > self.agreed.id:
            self.agreed = agreed
        self._attempts = [one for one in self._attempts if one.id > self.agreed.id]

    def _agree(self, view: View) -> None:
        self._phase = AGREED
        self.before, self.uncounted = self.agreed, frozenset(self.left)
        self._learn(AgreedView(view.id, view.members))
        self._known[self.env.me] = self._frame(view)
        if self.env.tracer is not None:
            self.env.tracer.agreed(view.id, self.before.id, self.uncounted)
        if self._is_lost:
            self._is_lost = False
            self._control.emit(QuorumRegained(view))
        self.above.resume()

    @property
    def _missing(self) -> tuple[Address, ...]:
        present: Iterable[Address] = () if self._view is None else self._view.members
        gone = {*present, *self.left}
        return tuple(member for member in self.agreed.members if member not in gone)

    def snapshot(self) -> MajoritySnapshot:
        return MajoritySnapshot(
            has_quorum=self.has_quorum, agreed=self.agreed.id, missing=self._missing
        )
