"""Merging: coordinators of partitions that hear each other again agree on one view.

The one with the lowest address leads. It asks the others to stop their members (MERGE), while it
stops its own. Each answers with how its members go over (MERGE_READY) or that it cannot now
(REFUSED). With all answers in, the leader makes one view of all groups. A coordinator that does
not answer in time is left out, and the next search finds it again.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ringcast.control.membership.view_size import GROUPS_MAX, ViewSize
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import ViewId
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import Merge, MergeReady, Refused

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart

ASKED_MAX = 4
"""How many times another coordinator is asked before it is left out."""
OTHERS_MAX = 512
"""Other groups that are known at a time; further ones are found again when these are merged."""
FREE_FAILURES = 2
"""Merges in succession that may fail before there is a pause."""
PAUSE_MIN, PAUSE_MAX = 2.0, 64.0
"""The first and the longest pause, in seconds."""
TOGETHER_SECONDS = 0.05
"""Failures within this time count as one: a member that was paused finds the attempts of minutes in
its socket, and takes part in each for a moment."""
FORGET_SECONDS = 2 * PAUSE_MAX
"""Failures are forgotten this long after the last one."""
_DOUBLINGS_MAX = int(math.log2(PAUSE_MAX / PAUSE_MIN))


class _Other(NamedTuple):
    """Another group: its coordinator, its view, and when it was last heard of."""

    coordinator: Peer
    view: ViewId
    heard: float


class Merging:
    """What a coordinator knows about other groups, and the merge that it leads."""

    def __init__(self, part: MembershipPart) -> None:
        self._env = part.env
        self._ask_again_after = part.spec.change_timeout
        self._lead_within = 2 * part.spec.retry_max
        self._others: dict[Address, _Other] = {}
        self._proposal: ViewId | None = None
        self._asked: dict[Address, int] = {}
        self._ready: dict[Address, MergeReady] = {}
        self._size = ViewSize(())
        """Of the view that is proposed, with the groups that are ready."""
        self._has_asked = False
        """Whether any group was asked for the proposal."""
        self.pause = MergePause(part.env)

    def found(self, coordinator: Peer, view: ViewId) -> None:
        """Another group was heard."""
        now = self._env.now
        self._others = {
            address: other
            for address, other in self._others.items()
            if address in self._asked or now - other.heard < self._ask_again_after
        }
        known = self._others.get(coordinator.address)
        if len(self._others) < OTHERS_MAX if known is None else view >= known.view:
            self._others[coordinator.address] = _Other(coordinator, view, now)
            self._env.out.learn(coordinator)
        assert len(self._others) <= OTHERS_MAX
        assert self._asked.keys() <= self._others.keys()

    def knows_leader(self, below: Address) -> bool:
        """Whether another coordinator has to lead a merge, with an address below this one.

        A leader that was not heard of lately does not count: it may be dead."""
        since = self._env.now - self._lead_within
        return any(a < below and other.heard >= since for a, other in self._others.items())

    @property
    def leads(self) -> bool:
        """Whether there is a group to merge with and this coordinator has to lead, now."""
        me = self._env.me
        if not self.pause.is_over or self.knows_leader(me):
            return False
        return any(me < address for address in self._others)

    @property
    def number(self) -> int:
        """The highest view number of the others."""
        return max((other.view.number for other in self._others.values()), default=0)

    def begin(self, proposal: ViewId, size: ViewSize) -> None:
        """A change of the own group, to a view of this size, begins; if this coordinator leads, it
        asks the others to join."""
        self._proposal, self._asked, self._ready = proposal, {}, {}
        self._size = size
        if self.leads:
            led = (address for address in self._others if self._env.me < address)
            self._asked = dict.fromkeys(islice(led, GROUPS_MAX), 0)
            self.repeat()
        self._has_asked = bool(self._asked)

    def repeat(self) -> None:
        """Ask the groups that have not answered; leave out those that were asked often enough."""
        if self._proposal is None:
            return
        for address, times in list(self._asked.items()):
            if address in self._ready:
                continue
            if times >= ASKED_MAX:
                self._leave_out(address)
                continue
            self._asked[address] = times + 1
            self._env.out.send(
                Merge(self._proposal, self._others[address].view, self._env.fingerprint), address
            )

    def on_answer(self, frame: MergeReady | Refused, source: Address) -> bool:
        """An answer of another coordinator; whether it was one to the merge under way."""
        if frame.proposal != self._proposal or source not in self._asked:
            return False
        if isinstance(frame, Refused):
            self._leave_out(source)
        elif source in self._ready:  # It asks whether the merge is still under way.
            self._env.out.send(
                Merge(frame.proposal, self._others[source].view, self._env.fingerprint), source
            )
        elif len(frame.peers) == len(frame.starts):
            if self._size.takes(frame.peers, len(frame.section.endings)):
                self._ready[source] = frame
            else:
                self._env.counters["refused_full"] += 1
                self._leave_out(source)
        assert self._ready.keys() <= self._asked.keys() <= self._others.keys()
        return True

    @property
    def ready(self) -> bool:
        """Whether each group that was asked has answered or is left out."""
        return len(self._ready) == len(self._asked)

    @property
    def answers(self) -> list[MergeReady]:
        """How the members of the other groups go over, by the coordinators' addresses."""
        return [self._ready[address] for address in sorted(self._ready)]

    def end(self) -> None:
        """The view is made; other groups will be found again."""
        if self._has_asked:
            (self.pause.succeeded if self._ready else self.pause.failed)()
        self.give_up()
        self._others = {}

    def give_up(self) -> None:
        """The proposal is over; groups that have answered it are told so when they ask again."""
        self._proposal, self._asked, self._ready = None, {}, {}
        self._has_asked = False

    def _leave_out(self, address: Address) -> None:
        self._asked.pop(address, None)
        self._ready.pop(address, None)
        self._others.pop(address, None)


class MergePause:
    """Counts merges that brought no group, and says when the next may begin.

    A merge stops all members of a group. Any process of an open group may claim to coordinate
    another group, have this one stopped, and bring no member. The first failures cost nothing,
    since real merges fail as well; each further one doubles the wait.
    """

    __slots__ = ("_env", "_failed_at", "_failures", "_until")

    def __init__(self, env: Env) -> None:
        self._env = env
        self._failures = 0
        self._failed_at = self._until = -math.inf

    @property
    def is_over(self) -> bool:
        """Whether a merge may begin."""
        return self._env.now >= self._until

    def failed(self) -> None:
        """The members were stopped for a merge, and no other group came."""
        now = self._env.now
        if now - self._failed_at < TOGETHER_SECONDS:
            return
        if now - self._failed_at > FORGET_SECONDS:
            self._failures = 0
        self._failures += 1
        self._failed_at = now
        self._env.counters["failed_merges"] += 1
        if self._failures > FREE_FAILURES:
            doublings = min(self._failures - FREE_FAILURES - 1, _DOUBLINGS_MAX)
            self._until = now + PAUSE_MIN * 2.0**doublings

    def succeeded(self) -> None:
        """A merge has brought another group."""
        self._failures = 0
