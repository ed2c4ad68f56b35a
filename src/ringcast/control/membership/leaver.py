"""The leaver: a member that leaves in order, whatever its role.

It waits until all members have its messages, asks for a view without it, and is gone when it sees
that view. It stays for `retry_max` more if others have to get messages from it first, or, where it
skipped them, to hear that they will not get them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.control.membership.component import Component
from ringcast.core.wire.frames import Install, Leave

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart


class Leaver(Component):
    """Leaves, once it is asked to."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self.drain_until: float | None = None
        """Set once this member is leaving: until when it waits for others to have its messages."""
        self.is_out = False
        """Whether the view without this member exists, and it stays only to answer requests."""

    @property
    def is_leaving(self) -> bool:
        """Whether this member was asked to leave."""
        return self.drain_until is not None

    def leave(self) -> None:
        """Wait until all have this member's messages, then ask for a view without it."""
        if self.drain_until is None:
            self.drain_until = self.env.now + self.spec.drain_timeout
            self.on_leave_timer()

    def on_leave_timer(self) -> None:
        """Take the next step: wait, ask, or go."""
        until = self.drain_until
        assert until is not None
        if self.is_out or len(self.view) == 1:
            self.part.control.finish("left")
        elif not self.part.control.drained and self.env.now < until:
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.gather)
        elif self.env.now > until + self.spec.leave_timeout:
            self.part.control.finish("left, though no member has answered")
        else:
            self._ask()
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.retry_max)

    def on_view_without_me(self, frame: Install) -> None:
        """The others have made the view: go at once, or stay for those that lack messages."""
        if not self._is_needed(frame):
            self.part.control.finish("left")
        elif not self.is_out:
            self.is_out = True
            self.env.timers.set(self.part, "leave", self.env.now + self.spec.retry_max)

    def _is_needed(self, frame: Install) -> bool:
        """Whether members that go on may lack messages that this member holds."""
        endings = (e for s in frame.sections if s.base == self.view.id for e in s.endings)
        mine = [ending.origin for ending in endings if ending.holder == self.env.me]
        owes = not self.part.control.drained or self.part.flush.owes()
        return any(origin != self.env.me or owes for origin in mine)

    def _ask(self) -> None:
        if self.part.coordinator is not None:
            self.part.coordinator.let_go(self.env.me)
        else:
            self.env.out.send(Leave(self.view.id), self.part.participant.acting)
