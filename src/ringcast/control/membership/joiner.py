"""The joiner: a member without a view. It searches for the group, asks the group's coordinator to
be admitted, or creates a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.control.membership.component import Component
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.wire.frames import Evict, Install, Installed, Join, Prepare, Present

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart

ROUNDS_MAX = 3
"""How many times a joiner lets a rival go first before it creates a group itself."""
RIVALS_MAX = 1024
DIRECT_MAX = 64
"""Up to this many rivals are also told directly, for networks without multicast."""
NOBODY = "no group found"
"""How the reason begins that a member is closed with which was told to fail."""
TARGETS_MAX = 64
JOINS_MAX = 8
"""How many times a coordinator is asked before the search begins anew."""


class Joiner(Component):
    """Searches, then asks; creates a group when it finds none and has the lowest address of the
    members that search."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self.coordinator: Peer | None = None
        """The coordinator that this joiner asks; None while it searches."""
        self._rivals: dict[Address, Peer] = {}
        """Other joiners that search as well."""
        self._cookie = 0
        """What the coordinator wants to be brought back."""
        self._targets: dict[Address, None] = {}
        """The members that were asked lately; a view that admits this joiner comes from them."""
        self._rounds = 0
        self._waits = 0
        """Rounds to wait before a group is created, since there was one a moment ago."""
        self._view = NO_VIEW
        self._asked = 0

    def enter(self) -> None:
        """Begin to search."""
        self.part.discovery.search(NO_VIEW)
        self._decide_later()

    def on_found(self, peer: Peer, view: ViewId, coordinator: Peer, cookie: int, echo: int) -> None:
        """Discovery has heard another member: a rival that searches as well, or a group to join."""
        if view == NO_VIEW:
            if len(self._rivals) < RIVALS_MAX:
                self._rivals[peer.address] = peer
            return
        known = self.coordinator
        is_new = known is None or known.address != coordinator.address
        if known is None or view > self._view:
            self.coordinator, self._view = coordinator, view
            if is_new:
                self._asked = self._cookie = 0
        elif is_new:
            return
        if peer.address == coordinator.address:
            # It is there, and busy: a group of this joiner's own would keep it busier.
            self._asked = min(self._asked, JOINS_MAX // 2)
        is_needed = cookie not in (0, self._cookie) and peer.address == coordinator.address
        if is_needed:
            self._cookie = cookie
        if is_new:
            self.on_join_timer()
        elif is_needed:
            self._ask(coordinator)

    def on_evict(self, frame: Evict, source: Address) -> None:
        """The coordinator that was asked refuses this member, and says why."""
        assert self.coordinator is not None
        if source == self.coordinator.address and frame.member == self.env.me:
            self.part.control.finish(frame.reason)

    def on_prepare(self, frame: Prepare, source: Address) -> None:
        """A group that may have admitted this member changes: say that it has no view."""
        if frame.direct:
            self.env.out.send(Installed(NO_VIEW), source)

    def on_view(self, frame: Install, source: Address) -> None:
        """The view that admits this member, if it has asked one of its members or their former
        coordinator."""
        is_asked = source in self._targets or any(m in self._targets for m in frame.view)
        if self.env.me in frame.view and is_asked:
            starts = dict(zip(frame.view.members, frame.starts, strict=True))
            self.part.install(frame, starts, frozenset(), source)

    def leave(self) -> None:
        """There is nothing to leave yet."""
        self.part.control.finish("left before it had joined")

    def on_join_timer(self) -> None:
        """Ask to be admitted, again if there was no answer; after some attempts search anew."""
        assert self.coordinator is not None
        if self._asked >= JOINS_MAX:
            self.coordinator, self._view = None, NO_VIEW
            self._waits = ROUNDS_MAX
            self.enter()  # Ask often again: another member of the group may answer.
            return
        self._asked += 1
        self._ask(self.coordinator)
        pause = min(self.spec.retry * 2.0**self._asked, self.spec.retry_max)
        self.env.timers.set(self.part, "join", self.env.now + pause)

    def _ask(self, coordinator: Peer) -> None:
        target = coordinator.address
        self._targets.pop(target, None)
        self._targets[target] = None
        if len(self._targets) > TARGETS_MAX:
            del self._targets[next(iter(self._targets))]
        assert target in self._targets
        assert len(self._targets) <= TARGETS_MAX
        self.env.out.send(Join(self.env.peer, self.env.fingerprint, self._cookie), target)

    def on_decide_timer(self) -> None:
        """No group was found in time: let a rival go first, create one, fail, or wait."""
        choice = self.part.discovery.when_alone
        if self._waits:
            self._waits -= 1
            self._decide_later()
            return
        self._rounds += 1
        goes_first = any(rival < self.env.me for rival in self._rivals)
        if goes_first and self._rounds <= ROUNDS_MAX:
            self._rivals.clear()  # Rivals that still search will be heard again.
            self._decide_later()
        elif choice == "create":
            self._create_group()
        elif choice == "fail":
            self.part.control.finish(f"{NOBODY}: tried {self.part.discovery.tried}")
        else:
            self._rounds = 0
            self._decide_later()

    def _decide_later(self) -> None:
        pause = self.part.discovery.timeout * self.env.rng.uniform(1.0, 1.2)
        self.env.timers.set(self.part, "decide", self.env.now + pause)

    def _create_group(self) -> None:
        view = View(ViewId(1, self.env.me), (self.env.peer,))
        self.part.install(Install(view, (0,), ()), {self.env.me: 0}, frozenset(), self.env.me)
        # Rivals ask to join as soon as they hear this, and so come into one view.
        for rival in sorted(self._rivals)[:DIRECT_MAX]:
            self.part.discovery.introduce(self._rivals[rival], self.env.peer)
        self.env.out.send(Present(self.env.peer, view.id, self.env.peer, 0, 0))
