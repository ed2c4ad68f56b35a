"""Losses that their sender was not told of are found; those that it was told of are not."""

from ringcast.core.model.address import Address
from ringcast.core.model.events import Event, Outpaced, Skipped, Undelivered, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.sim.checks.losses import Losses

A, B, C = Address(1), Address(2), Address(3)


def losses_of(*events: tuple[Address, Event]) -> list[str]:
    losses = Losses()
    for member, event in events:
        losses.took(member, event)
    return [str(loss) for loss in losses.untold(lambda sender: True)]


def test_a_skip_that_no_member_reports_is_found_once() -> None:
    losses = Losses()
    losses.took(C, Skipped(A, 4, 7, "test"))
    assert list(losses.untold(lambda sender: False)) == []
    assert [loss.event.last for loss in losses.untold(lambda sender: sender == A)] == [7]
    assert list(losses.untold(lambda sender: True)) == []


def test_a_report_covers_what_was_sent_before_and_not_what_was_sent_later() -> None:
    skipped = (C, Skipped(A, 4, 7, "test"))
    assert losses_of(skipped, (A, Undelivered(7, (B, C)))) == []
    assert losses_of((A, Undelivered(9, (C,))), skipped) == []
    assert len(losses_of(skipped, (A, Undelivered(3, (C,))))) == 1
    assert len(losses_of(skipped, (A, Undelivered(7, (B,))))) == 1
    assert len(losses_of(skipped, (B, Undelivered(7, (C,))))) == 1


def test_a_member_that_is_outpaced_or_has_left_is_owed_no_report() -> None:
    skipped = (C, Skipped(A, 4, 7, "test"))
    assert losses_of((A, Outpaced(C, 2.0)), skipped) == []
    view = ViewChange(View(ViewId(2, A), ()), (), (C,))
    assert losses_of(skipped, (A, view)) == []
    assert losses_of((C, Skipped(A, 4, 7, "test", direct=True))) == []


def test_a_late_application_of_the_receiver_takes_no_report_back() -> None:
    """It takes the view that parted them, and the one in which they met again, after the report."""
    parted = ViewChange(View(ViewId(2, C), ()), (), (A,))
    met = ViewChange(View(ViewId(3, A), ()), (A,), ())
    told = (A, Outpaced(C, 2.0))
    assert losses_of(told, (C, parted), (C, met), (C, Skipped(A, 4, 7, "test"))) == []
    sender = ViewChange(View(ViewId(2, A), ()), (), (C,))
    assert len(losses_of(told, (A, sender), (C, Skipped(A, 4, 7, "test")))) == 1
