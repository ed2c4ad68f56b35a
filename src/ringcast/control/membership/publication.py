"""The view that a coordinator has made, until every member has confirmed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringcast.control.membership.component import Component
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Evict, Install

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart

DIRECT_MAX = 64
"""Up to this many members outside the old view are also sent the view directly, for networks
without multicast; more of them rely on repeats."""


class Publication(Component):
    """Sends the view and repeats it to the members that have not confirmed it."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self._unconfirmed: dict[Address, None] = {}

    def send(self, frame: Install, leavers: Sequence[Address]) -> None:
        """Publish a view; leavers are told that it is without them."""
        view = frame.view
        assert view.id > self.view.id, "the view that is installed is published again"
        for peer in view.peers:
            self.env.out.learn(peer)
        self._unconfirmed = dict.fromkeys(view.members)
        self._unconfirmed.pop(self.env.me, None)
        self.part.last_install = frame
        for member, reason in self.part.departures.evicted.items():
            self.env.out.send(Evict(member, reason), member)
        if self._unconfirmed or leavers:
            self.env.out.send(frame)
        outside = [m for m in view if m not in self.view] + list(leavers)
        for member in outside if len(outside) <= DIRECT_MAX else ():
            if member != self.env.me:
                self.env.out.send(frame, member)

    def confirm(self, member: Address, view: ViewId) -> bool:
        """A member says which view it has; returns whether it is the published one."""
        latest = self.part.last_install
        if latest is None or view != latest.view.id:
            return False
        self._unconfirmed.pop(member, None)
        return True

    def awaits(self, member: Address) -> bool:
        """Whether this member has still to confirm the view."""
        return member in self._unconfirmed

    @property
    def is_confirmed(self) -> bool:
        """Whether no member is left that has not confirmed the view."""
        return not self._unconfirmed

    def repeat(self) -> None:
        """Send the view again to the members that have not confirmed it."""
        for member in self._unconfirmed:
            self.part.send_view(member)

    def withdraw(self) -> None:
        """The view is given up: no member is to follow it any more."""
        self._unconfirmed = {}
