"""The base of the components that the membership is made of: joiner, participant, leaver and
coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.core.model.view import View

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart


class Component:
    """A component with the part that it belongs to, and what it needs of it at hand."""

    def __init__(self, part: MembershipPart) -> None:
        self.part = part
        self.env = part.env
        self.spec = part.spec

    @property
    def view(self) -> View:
        """The installed view; a joiner has none."""
        assert self.part.view is not None
        return self.part.view
