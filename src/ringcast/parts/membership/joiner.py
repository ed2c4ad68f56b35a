"""The joiner: somebody who looks for the group, asks its coordinator to be taken in, or founds
one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.core.address import Address, Peer
from ringcast.core.frames import Frame, Install, Installed, Join, Prepare, Present
from ringcast.core.view import NO_VIEW, View, ViewId
from ringcast.parts.membership.role import Role

if TYPE_CHECKING:
    from ringcast.parts.membership.part import MembershipPart

ROUNDS_MAX = 3
"""How many times a joiner lets a rival go first before it founds a group itself."""
RIVALS_MAX = 1024
DIRECT_MAX = 64
"""How many rivals are told directly besides, for networks without multicast."""
NOBODY = "no group found"
"""How the reason begins that a member is closed with which was told to fail."""
JOINS_MAX = 8
"""How many times a coordinator is asked before the search begins anew."""


class Joiner(Role):
    """Searches, then asks; founds a group when it finds none and has the lowest address of those
    who search."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self._rivals: set[Address] = set()
        """Those who search as well."""
        self._rounds = 0
        self._coordinator: Peer | None = None
        self._view = NO_VIEW
        self._asked = 0

    def enter(self) -> None:
        """Begin to search."""
        self.part.discovery.search(NO_VIEW)
        self._decide_later()

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        """Somebody is there: a rival that searches as well, or a group to join."""
        if view == NO_VIEW:
            if len(self._rivals) < RIVALS_MAX:
                self._rivals.add(peer.address)
            return
        if self._coordinator is None or view > self._view:
            known = self._coordinator
            self._coordinator, self._view = coordinator, view
            if known is None or known.address != coordinator.address:
                self._asked = 0
                self._ask()

    def on_frame(self, frame: Frame, source: Address) -> None:
        """The view that takes this member in; or a change in a group that may have taken it in
        already."""
        if isinstance(frame, Prepare) and frame.direct:
            self.env.out.send(Installed(NO_VIEW), source)
        if isinstance(frame, Install) and self.env.me in frame.view:
            starts = dict(zip(frame.view.members, frame.starts, strict=True))
            self.part.install(frame, starts, frozenset(), source)

    def on_timer(self, name: str) -> None:
        """Ask again, or decide what to do when nobody was found."""
        if name == "join":
            self._ask()
        elif name == "decide" and self._coordinator is None:
            self._decide()

    def leave(self) -> None:
        """There is nothing to leave yet."""
        self.part.control.finish("left before it had joined")

    def _ask(self) -> None:
        assert self._coordinator is not None
        if self._asked >= JOINS_MAX:
            self._coordinator, self._view = None, NO_VIEW
            self._decide_later()
            return
        self._asked += 1
        self.env.out.send(Join(self.env.peer), self._coordinator.address)
        pause = min(self.spec.retry * 2.0**self._asked, self.spec.retry_max)
        self.env.timers.set(self.part, "join", self.env.now + pause)

    def _decide_later(self) -> None:
        pause = self.part.discovery.timeout * self.env.rng.uniform(1.0, 1.2)
        self.env.timers.set(self.part, "decide", self.env.now + pause)

    def _decide(self) -> None:
        alone = self.part.discovery.alone
        self._rounds += 1
        goes_first = any(rival < self.env.me for rival in self._rivals)
        if goes_first and self._rounds <= ROUNDS_MAX:
            self._rivals.clear()  # Those who are still there will be heard again.
            self._decide_later()
        elif alone == "found":
            self._found_group()
        elif alone == "fail":
            self.part.control.finish(f"{NOBODY}: tried {self.part.discovery.tried}")
        else:
            self._rounds = 0
            self._decide_later()

    def _found_group(self) -> None:
        view = View(ViewId(1, self.env.me), (self.env.peer,))
        self.part.install(Install(view, (0,), ()), {self.env.me: 0}, frozenset(), self.env.me)
        # Those who wait for somebody to found the group ask to join at once, and become one view.
        announcement = Present(self.env.peer, view.id, self.env.peer)
        self.env.out.send(announcement)
        for rival in sorted(self._rivals)[:DIRECT_MAX]:
            self.env.out.send(announcement, rival)
