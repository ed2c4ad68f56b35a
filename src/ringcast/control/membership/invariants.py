"""What is true of the membership before and after every event; asserted at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart


def check(part: MembershipPart) -> None:
    """Assert the invariants of one member's membership."""
    view, me = part.view, part.env.me
    coordinator, pending = part.coordinator, part.participant.pending
    if view is None:
        assert coordinator is None, "a joiner coordinates"
        assert pending is None, "a joiner waits for a view"
        return
    assert me in view, "this member is not in its view"
    assert part.promised >= view.id, "the view is above the highest proposal"
    assert part.last_install is not None, "the view cannot be repeated"
    assert me not in part.departures.absent, "this member counts as absent in its own view"
    if pending is not None:
        assert pending[0].view.id > view.id, "a view waits that is not above the installed one"
        assert coordinator is None or coordinator.change is None, (
            "a coordinator follows one view and proposes another"
        )
    if coordinator is not None and coordinator.change is not None:
        assert coordinator.change.view == view, "a change rests on another view"
        assert coordinator.change.proposal <= part.promised, "a proposal that its maker left"
