"""Merging: the coordinator with the lowest address leads, and asks a few times."""

import pytest

from ringcast.control.membership import view_size
from ringcast.control.membership.merging import (
    ASKED_MAX,
    FORGET_SECONDS,
    FREE_FAILURES,
    OTHERS_MAX,
    PAUSE_MAX,
    PAUSE_MIN,
    TOGETHER_SECONDS,
    MergePause,
    Merging,
)
from ringcast.control.membership.view_size import GROUPS_MAX, ViewSize
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import MergeReady, Refused, Section
from tests.unit.control.membership.bench import ME, SPEC, Bench, coordinating, peer

PROPOSAL = ViewId(20, Address(ME))
OTHER = ViewId(8, Address(9))


def merging_of(*coordinators: int) -> tuple[Bench, Merging]:
    bench = coordinating()
    merging = Merging(bench.part)
    for number in coordinators:
        merging.found(peer(number), ViewId(8, Address(number)))
    return bench, merging


def ready(number: int) -> MergeReady:
    section = Section(ViewId(8, Address(number)), (Address(number),), ())
    return MergeReady(PROPOSAL, (peer(number),), (0,), section)


def test_the_lowest_address_leads() -> None:
    _, merging = merging_of(9)
    assert merging.leads
    merging.found(peer(1), ViewId(8, Address(1)))
    assert not merging.leads


def test_a_leader_that_is_not_heard_of_any_more_does_not_count() -> None:
    bench, merging = merging_of(1, 9)
    bench.env.now += 2 * SPEC.retry_max + 0.1
    merging.found(peer(9), OTHER)
    assert merging.leads


def test_all_groups_have_to_answer() -> None:
    bench, merging = merging_of(8, 9)
    merging.begin(PROPOSAL, ViewSize(()))
    assert bench.kinds() == ["MERGE to 8", "MERGE to 9"]
    assert merging.on_answer(ready(9), Address(9))
    before = merging.ready
    assert merging.on_answer(Refused(PROPOSAL, OTHER, OTHER), Address(8))
    assert (before, merging.ready) == (False, True)
    assert [answer.peers for answer in merging.answers] == [(peer(9),)]


def test_a_group_that_does_not_answer_is_left_out() -> None:
    bench, merging = merging_of(9)
    merging.begin(PROPOSAL, ViewSize(()))
    for _ in range(ASKED_MAX):
        merging.repeat()
    assert bench.kinds() == ["MERGE to 9"] * ASKED_MAX
    assert merging.ready
    assert merging.answers == []


def test_a_group_that_is_left_out_keeps_no_other_from_being_asked() -> None:
    bench, merging = merging_of(7, 8, 9)
    merging.begin(PROPOSAL, ViewSize(()))
    merging._asked[Address(7)] = ASKED_MAX
    bench.sent()
    merging.on_answer(ready(8), Address(8))
    merging.repeat()
    assert bench.kinds() == ["MERGE to 9"]


@pytest.mark.parametrize(("others", "failures"), [((), 0), ((9,), 1)])
def test_only_a_merge_that_was_tried_can_fail(others: tuple[int, ...], failures: int) -> None:
    _, merging = merging_of(*others)
    merging.begin(PROPOSAL, ViewSize(()))
    merging.end()
    assert merging.pause._failures == failures


def test_answers_to_another_proposal_do_not_count() -> None:
    _, merging = merging_of(9)
    merging.begin(ViewId(21, Address(ME)), ViewSize(()))
    assert not merging.on_answer(ready(9), Address(9))


def test_a_group_that_asks_whether_the_merge_goes_on_is_told() -> None:
    bench, merging = merging_of(9)
    merging.begin(PROPOSAL, ViewSize(()))
    merging.on_answer(ready(9), Address(9))
    bench.sent()
    merging.on_answer(ready(9), Address(9))
    assert bench.kinds() == ["MERGE to 9"]


def test_other_groups_are_bounded() -> None:
    bench, merging = merging_of(*range(100, 100 + 2 * OTHERS_MAX))
    assert len(merging._others) == OTHERS_MAX
    merging.found(peer(100), ViewId(9, Address(100)))
    assert merging.number == 9  # Those that are known go on.
    merging.begin(PROPOSAL, ViewSize(()))
    assert len(bench.env.out.frames) == GROUPS_MAX


def test_a_group_that_refuses_after_it_was_ready_is_left_out_and_the_others_are_waited_for() -> (
    None
):
    _, merging = merging_of(8, 9)
    merging.begin(PROPOSAL, ViewSize(()))
    merging.on_answer(ready(9), Address(9))
    merging.on_answer(Refused(PROPOSAL, OTHER, OTHER), Address(9))
    assert not merging.ready, "member 8 has not answered"
    assert merging.answers == []


def test_a_group_that_has_no_room_in_the_view_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_size, "MEMBERS_MAX", 3)
    bench, merging = merging_of(8, 9)
    merging.begin(PROPOSAL, ViewSize((peer(1), peer(2))))
    assert merging.on_answer(ready(9), Address(9))
    assert merging.on_answer(ready(8), Address(8))
    assert merging.ready
    assert [answer.peers for answer in merging.answers] == [(peer(9),)]
    assert bench.env.counters["refused_full"] == 1


def failed(times: int) -> tuple[Bench, MergePause]:
    bench = coordinating()
    pause = MergePause(bench.env)
    for _ in range(times):
        bench.env.now += 2 * TOGETHER_SECONDS
        pause.failed()
    return bench, pause


def test_the_first_failures_cost_nothing() -> None:
    assert failed(0)[1].is_over
    assert failed(FREE_FAILURES)[1].is_over


def test_each_further_failure_doubles_the_pause_up_to_a_bound() -> None:
    for times, seconds in ((1, PAUSE_MIN), (2, 2 * PAUSE_MIN), (99, PAUSE_MAX), (9_999, PAUSE_MAX)):
        bench, pause = failed(FREE_FAILURES + times)
        bench.env.now += seconds - 0.1
        assert not pause.is_over
        bench.env.now += 0.2
        assert pause.is_over


def test_failures_at_one_time_count_once() -> None:
    bench, pause = failed(0)
    for _ in range(100):
        pause.failed()
    assert pause.is_over
    assert bench.env.counters["failed_merges"] == 1
    for _ in range(10 * FREE_FAILURES):  # A stream of them is not one time.
        bench.env.now += TOGETHER_SECONDS / 5
        pause.failed()
    assert not pause.is_over


def test_a_merge_that_brings_a_group_ends_the_count() -> None:
    bench, pause = failed(FREE_FAILURES)
    pause.succeeded()
    bench.env.now += 2 * TOGETHER_SECONDS
    pause.failed()
    assert pause.is_over


def test_old_failures_are_forgotten() -> None:
    bench, pause = failed(FREE_FAILURES)
    bench.env.now += FORGET_SECONDS + 1
    pause.failed()
    assert pause.is_over
    assert bench.env.counters["failed_merges"] == FREE_FAILURES + 1
