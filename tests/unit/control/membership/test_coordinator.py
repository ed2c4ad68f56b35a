"""The coordinator: it gathers requests, makes one view of them, and begins anew when it must."""

from ringcast.control.membership.coordinator import ACCUSE_AFTER, UNHEARD_MAX
from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import (
    Flushed,
    Install,
    Installed,
    Leave,
    MergeReady,
    Prepare,
    Refused,
    Section,
)
from tests.unit.control.membership.bench import (
    ME,
    OWN,
    Bench,
    coordinating,
    departed,
    following,
    merging,
    preparing,
    view_of,
)


def flush(bench: Bench, *members: int) -> None:
    """These members have stopped for the proposal under way."""
    coordinator = bench.part.coordinator
    assert coordinator is not None
    assert coordinator.change is not None
    proposal = coordinator.change.proposal
    for member in members:
        bench.receive(Flushed(proposal, 3, ()), member)


def views(bench: Bench) -> list[Install]:
    """The views that were published to all."""
    return [f for to, f in bench.sent() if to is None and isinstance(f, Install)]


def test_requests_that_arrive_together_become_one_view() -> None:
    bench = coordinating()
    bench.join(9)
    bench.join(8)
    bench.receive(Leave(OWN.id), 7)
    bench.wake("gather")
    flush(bench, 3, 7)
    (frame,) = views(bench)
    assert frame.view.members == (ME, 3, 9, 8)


def test_a_crash_in_a_change_begins_it_anew_with_a_higher_number() -> None:
    bench = coordinating()
    bench.join(9)
    bench.wake("gather")
    bench.sent()
    bench.part.on_suspect(Address(7), True)
    (prepare,) = [f for _, f in bench.sent() if isinstance(f, Prepare)]
    assert prepare.proposal == ViewId(6, Address(ME))
    assert prepare.departed == (7,)
    flush(bench, 3)
    (frame,) = views(bench)
    assert frame.view.members == (ME, 3, 9)


def test_a_refused_proposal_is_made_above_the_one_that_was_promised() -> None:
    bench = preparing()
    bench.receive(Refused(ViewId(5, Address(ME)), OWN.id, ViewId(30, Address(3))), 3)
    (prepare,) = [f for _, f in bench.sent() if isinstance(f, Prepare)]
    assert prepare.proposal == ViewId(31, Address(ME))


def test_a_silent_member_is_accused_after_some_repeats() -> None:
    bench = preparing()
    for _ in range(ACCUSE_AFTER):
        bench.wake("retry")
    assert bench.accused == []
    bench.wake("retry")
    assert bench.accused == [3]


def test_a_more_senior_member_that_is_heard_again_coordinates() -> None:
    bench = following()
    bench.part.on_suspect(Address(3), True)
    assert bench.is_in(State.COORDINATING)
    bench.part.on_suspect(Address(3), False)
    assert bench.is_in(State.FOLLOWING)


def test_a_leaving_coordinator_stays_until_its_last_view_is_confirmed() -> None:
    bench = departed()
    bench.wake("retry")
    assert bench.kinds() == ["VIEW to 3", "VIEW to 7"]
    for member in (3, 7):
        assert bench.closed == ""
        bench.receive(Installed(ViewId(5, Address(ME))), member)
    assert bench.closed == "left"


def test_when_all_leave_the_coordinator_goes_last() -> None:
    bench = coordinating()
    for member in (3, 7):
        bench.receive(Leave(OWN.id), member)
    bench.part.leave()
    bench.wake("gather")
    flush(bench, 3, 7)
    (frame,) = views(bench)
    assert frame.view.members == (ME,)


def test_a_group_with_a_higher_coordinator_is_merged() -> None:
    bench = coordinating()
    other = view_of(8, 9, 11)
    bench.find(9, other.id)
    bench.wake("gather")
    assert bench.kinds() == ["MERGE to 9", "PREPARE to all"]
    flush(bench, 3, 7)
    assert bench.is_in(State.PREPARING), "the other group has not answered"
    proposal = ViewId(9, Address(ME))
    section = Section(other.id, other.members, ())
    bench.receive(MergeReady(proposal, other.peers, (1, 2), section), 9)
    (frame,) = views(bench)
    assert frame.view.members == (ME, 3, 7, 9, 11)
    assert frame.view.id == proposal


def test_a_merge_leader_that_does_not_answer_is_given_up() -> None:
    bench = merging()
    flush(bench, 3, 7)
    assert bench.kinds() == ["MERGE_READY to 1"]
    for _ in range(UNHEARD_MAX):
        assert bench.is_in(State.MERGING)
        bench.wake("retry")
    bench.wake("retry")
    assert bench.is_in(State.PREPARING), "the members here are taken on"
