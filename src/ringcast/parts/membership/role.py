"""What every role of the membership answers to; a role ignores what does not concern it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.core.address import Address, Peer
from ringcast.core.frames import Frame
from ringcast.core.view import ViewId

if TYPE_CHECKING:
    from ringcast.parts.membership.part import MembershipPart


class Role:
    """What a member is at the moment: it searches, takes part, or coordinates."""

    def __init__(self, part: MembershipPart) -> None:
        self.part = part
        self.env = part.env
        self.spec = part.spec

    def enter(self) -> None:
        """The role begins."""

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        """Discovery has heard of somebody."""

    def on_frame(self, frame: Frame, source: Address) -> None:
        """A frame of the membership has come."""

    def on_timer(self, name: str) -> None:
        """A timer is due."""

    def on_suspect(self) -> None:
        """The set of suspects has changed."""

    def reached(self) -> None:
        """The multicast has handed up all that comes before the view that waits."""

    def leave(self) -> None:
        """Leave in order."""

    def evict(self, member: Address, reason: str) -> None:
        """Have a member removed that is not dead."""
