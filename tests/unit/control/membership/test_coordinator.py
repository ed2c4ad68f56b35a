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
    Merge,
    MergeReady,
    Prepare,
    Refused,
    Section,
)
from tests.unit.control.membership.bench import (
    ME,
    OWN,
    SPEC,
    Bench,
    coordinating,
    departed,
    following,
    merging,
    next_view,
    peer,
    preparing,
    view_of,
    yielded,
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


def test_a_crash_of_a_member_that_the_change_leaves_out_does_not_begin_it_anew() -> None:
    bench = preparing()
    bench.part.on_suspect(Address(7), True)
    assert bench.kinds() == [], "member 7 is evicted by this very change"


def test_a_coordinator_that_has_to_go_asks_the_next_to_make_the_view() -> None:
    bench = coordinating()
    bench.part.evict(bench.env.me, "several do not hear it")
    assert bench.kinds() == ["EVICT to 3"]
    assert bench.is_in(State.COORDINATING)


def test_repeats_wait_twice_as_long_each_time_up_to_the_bound() -> None:
    bench = preparing()
    pauses = [bench.seconds_to("retry")]
    for _ in range(5):
        bench.wake("retry")
        pauses.append(bench.seconds_to("retry"))
    assert pauses == [SPEC.retry, 0.1, 0.2, 0.4, SPEC.retry_max, SPEC.retry_max]


def test_a_published_view_is_repeated_after_the_first_pause_again() -> None:
    bench = preparing()
    for _ in range(4):
        bench.wake("retry")
    flush(bench, 3)
    assert bench.seconds_to("retry") == SPEC.retry


def test_a_change_that_takes_longer_than_its_timeout_begins_anew() -> None:
    bench = preparing()
    for _ in range(round(SPEC.change_timeout / SPEC.retry_max)):
        bench.wake("retry")
    assert "PREPARE to all" not in bench.kinds()
    bench.wake("retry")
    assert "PREPARE to all" in bench.kinds()


def test_a_third_group_is_given_a_cookie_by_the_leader_of_a_merge() -> None:
    bench = coordinating()
    bench.find(8, ViewId(8, Address(8)))
    bench.sent()
    bench.part.found(peer(9), ViewId(8, Address(9)), peer(9))
    assert bench.kinds() == ["PRESENT to 9"], "member 8 does not lead, so 9 is needed here"


def test_a_leader_that_is_known_is_given_a_cookie_again() -> None:
    bench = coordinating()
    bench.find(1, ViewId(8, Address(1)))
    bench.sent()
    bench.part.found(peer(1), ViewId(8, Address(1)), peer(1))
    assert bench.kinds() == ["PRESENT to 1"]


def test_a_view_that_a_present_member_can_complete_is_waited_for() -> None:
    bench = yielded()
    bench.receive(next_view(OWN, 3, ME, 7, number=6), 3)
    assert bench.is_in(State.COMPLETING)
    bench.part.on_suspect(Address(7), True)
    bench.sent()
    bench.wake("gather")
    assert bench.kinds() == []
    assert bench.seconds_to("gather") == SPEC.retry
    bench.part.on_suspect(Address(3), True)
    bench.wake("gather")
    assert bench.aims[-1] == ViewId(7, Address(ME)), "those that have what is lacking are gone"


def test_a_merge_takes_the_place_of_the_requests_that_were_gathered() -> None:
    bench = coordinating()
    bench.join(9)
    bench.receive(Merge(ViewId(9, Address(1)), OWN.id, ""), 1)
    assert bench.is_in(State.MERGING)
    assert not bench.env.timers.is_set(bench.part, "gather")


def test_of_two_members_that_leave_the_coordinator_goes_last() -> None:
    bench = following(view_of(4, ME, 3))
    bench.part.leave()
    bench.receive(Leave(ViewId(4, Address(ME))), 3)
    bench.wake("gather")
    flush(bench, 3)
    assert [frame.view.members for frame in views(bench)] == [(ME,)]


def test_a_coordinator_goes_last_where_a_member_has_crashed_and_the_others_leave() -> None:
    bench = coordinating()
    bench.part.on_suspect(Address(7), True)
    bench.part.leave()
    bench.receive(Leave(OWN.id), 3)
    bench.wake("gather")
    flush(bench, 3)
    assert [frame.view.members for frame in views(bench)] == [(ME,)]


def test_a_merge_that_the_other_group_refuses_is_a_view_of_this_group() -> None:
    bench = coordinating()
    bench.find(9, ViewId(8, Address(9)))
    bench.join(11)
    bench.wake("gather")
    flush(bench, 3, 7)
    assert views(bench) == [], "the other group has not answered"
    coordinator = bench.part.coordinator
    assert coordinator is not None
    assert coordinator.change is not None
    proposal = coordinator.change.proposal
    bench.receive(Refused(proposal, ViewId(8, Address(9)), proposal), 9)
    assert [frame.view.members for frame in views(bench)] == [(ME, 3, 7, 11)]
    assert bench.searches[-1] == "soon"
