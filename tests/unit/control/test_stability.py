"""Stability: what all members have delivered is freed everywhere, what one lacks is kept."""

from collections.abc import Callable, Sequence

import pytest

from ringcast.control.stability import Stability
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.stack.ports import Ports
from ringcast.core.wire.frames import Frame, SenderMarks, Stable, Vote
from ringcast.errors import ConfigError
from ringcast.layers.multicast.nakack3 import NakAck3, NakAck3Layer
from tests.unit.control.tables import A, B, C, D, group, lows, stability, table, without
from tests.unit.harness import LATENCY, Flight, Member, Net, clean, lose, numbered


def is_(kind: type[Frame]) -> Callable[[Frame], bool]:
    return lambda frame: isinstance(frame, kind)


# --- rounds -------------------------------------------------------------------------------------


def test_messages_that_all_have_are_freed_and_no_timer_is_left() -> None:
    net = group()
    net.members[A].send(numbered(100))
    net.members[B].send(numbered(50))
    assert net.settle(2.0) < 1.5
    assert lows(net, A) == [100] * 3
    assert lows(net, B) == [50] * 3
    assert all(window.nbytes == 0 for x in net.members for window in table(net, x).windows.values())


def test_an_idle_group_wakes_for_nothing() -> None:
    net = group()
    assert all(member.env.timers.deadline == float("inf") for member in net.members.values())
    net.run(60.0)
    assert net.sent.total() == 0


def test_a_round_is_a_vote_of_each_but_the_coordinator_and_one_result() -> None:
    net = group(5)
    net.members[B].send(numbered(1))
    net.settle(2.0)
    assert net.sent["VOTE"] <= 2 * 4
    assert net.sent["STABLE"] == 1
    assert net.members[A].env.counters["rounds"] == 2


def test_votes_and_results_are_randomised_around_the_interval() -> None:
    net = group(rounds=Stability(interval=10.0))
    net.members[A].send(numbered(1))
    assert 5.0 <= net.settle(60.0) <= 15.2


def test_a_group_of_one_stabilises_by_itself() -> None:
    net = group(1)
    net.members[A].send(numbered(100))
    net.settle(2.0)
    assert stability(net, A).stable == {A: 100}
    assert net.sent["STABLE"] == net.sent["VOTE"] == 0


def test_votes_leave_out_senders_of_which_nothing_is_new() -> None:
    net = group()
    net.members[A].send(numbered(10))
    net.settle(2.0)
    votes: list[Vote] = []

    def spy(flight: Flight) -> Sequence[float]:
        votes.extend([flight.frame] if isinstance(flight.frame, Vote) else [])
        return clean(flight)

    net.policy = spy
    net.members[B].send(numbered(5))
    net.settle(2.0)
    assert votes
    assert {mark.sender for vote in votes for mark in vote.marks} == {B}


# --- losses and silence -------------------------------------------------------------------------


def test_one_silent_member_and_nothing_is_purged_until_it_is_out_of_the_view() -> None:
    net = group(spec=NakAck3(capacity=50))
    net.policy = without(C)
    net.members[A].send(numbered(100))
    net.run(20.0)
    assert lows(net) == [0] * 3
    assert net.members[A].waiting == 50
    net.members.pop(C)
    net.policy = clean
    net.install(A, B)
    net.settle(5.0)
    assert lows(net) == [100] * 2
    assert net.members[B].payloads(A) == numbered(100)


def test_a_member_whose_application_takes_nothing_keeps_everything() -> None:
    net = group()
    net.members[C].is_slow = True
    net.members[A].send(numbered(10))
    net.run(20.0)
    assert lows(net) == [0] * 3
    assert net.members[A].env.counters["rounds"] > 10, "it votes all the same"
    net.members[C].take(4)
    net.run(5.0)
    assert lows(net) == [4] * 3
    net.members[C].is_slow = False
    net.settle(5.0)
    assert lows(net) == [10] * 3


def test_a_result_that_one_member_misses_costs_it_a_round() -> None:
    net = group()
    lost = [1]

    def policy(flight: Flight) -> Sequence[float]:
        if flight.target == C and isinstance(flight.frame, Stable) and lost[0]:
            lost[0] -= 1
            return ()
        return clean(flight)

    net.policy = policy
    net.members[A].send(numbered(10))
    net.settle(3.0)
    assert lost == [0]
    assert all(stability(net, x).stable[A] == 10 for x in net.members)
    assert lows(net) == [10] * 3


@pytest.mark.parametrize("kind", [Vote, Stable])
def test_lost_votes_and_results_are_made_good(kind: type[Frame]) -> None:
    net = group()
    net.policy = lose(is_(kind), 7)
    net.members[A].send(numbered(10))
    net.members[C].send(numbered(10))
    net.settle(20.0)
    assert lows(net, A) == lows(net, C) == [10] * 3


def test_a_member_that_stays_silent_overflows_nothing() -> None:
    net = group(rounds=Stability(max_bytes=1))
    net.policy = without(C)
    net.members[A].send(numbered(10))
    net.run(900.0)
    assert lows(net) == [0] * 3


# --- votes that do not count --------------------------------------------------------------------


def vote(net: Net, delivered: int, high: int = 10, number: int | None = None) -> Vote:
    """A vote about A, in the view with this number or in the present one."""
    view = net.members[A].view
    assert view is not None
    id = view.id if number is None else ViewId(number, A)
    return Vote(id, (SenderMarks(A, delivered, high),))


def test_a_second_vote_is_ignored() -> None:
    net = group()
    net.policy = lambda flight: ()
    net.members[A].send(numbered(10))
    net.members[A].take()
    net.members[A].receive(vote(net, 3), B)
    net.members[A].receive(vote(net, 9), B)
    net.members[A].receive(vote(net, 9), C)
    stability(net, A).on_timer("vote")
    assert table(net, A).sent.low == 3
    assert net.members[A].env.counters["second_votes"] == 1


def test_votes_are_cleared_before_the_next_round() -> None:
    net = group()
    net.policy = lambda flight: ()
    net.members[A].send(numbered(10))
    net.members[A].take()
    for delivered in (3, 5):
        net.members[A].receive(vote(net, delivered), B)
        net.members[A].receive(vote(net, 9), C)
        stability(net, A).on_timer("vote")
    assert table(net, A).sent.low == 5


def test_votes_of_an_old_view_of_strangers_and_to_others_are_ignored() -> None:
    net = group()
    net.members[A].send(numbered(10))
    net.members[A].receive(vote(net, 9, number=0), B)
    net.members[A].receive(vote(net, 9), D)
    net.members[B].receive(vote(net, 9), C)
    assert stability(net, A)._votes == stability(net, B)._votes == {}
    assert net.members[A].env.counters["dropped_old_view"] == 1
    assert net.members[A].env.counters["dropped_not_member"] == 1


def test_a_result_counts_only_from_the_coordinator_and_in_its_view() -> None:
    net = group()
    net.members[A].send(numbered(10))
    net.run(0.1)
    present = vote(net, 10)
    net.members[B].receive(Stable(present.view, present.marks), C)
    assert stability(net, B).stable == {}
    net.install(A, B, C)
    net.members[B].receive(Stable(present.view, present.marks), A)
    assert stability(net, B).stable == {}
    assert table(net, B).windows[A].low == 0


# --- views --------------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [B, C])
def test_a_new_coordinator_goes_on_although_a_member_missed_the_last_result(
    behind: Address,
) -> None:
    net = group()
    net.policy = without(behind, Stable)
    net.members[B].send(numbered(10))
    net.run(2.0)
    del net.members[A]
    net.policy = lambda flight: () if flight.target == A else (LATENCY,)
    net.install(B, C)
    net.settle(5.0)
    assert lows(net, B) == [10] * 2
    assert all(stability(net, x).stable == {B: 10} for x in (B, C))


def test_nothing_above_the_digest_of_a_newcomer_is_purged_before_it_has_it() -> None:
    net = group(2, rounds=Stability(interval=0.1))
    net.members[A].send(numbered(10))
    net.run(0.02)
    net.members[C] = Member(C, [NakAck3(), Stability(interval=0.1)], 60_000)
    net.policy = without(C)
    net.install(A, B, C)
    net.members[A].send(numbered(10, 11))
    net.run(5.0)
    assert lows(net)[:2] == [10, 10]
    net.policy = clean
    net.settle(5.0)
    assert net.members[C].payloads(A) == numbered(10, 11)
    assert lows(net) == [20] * 3


def test_the_snapshot_says_what_is_stable_and_names_missing_voters() -> None:
    net = group()
    net.members[A].send(numbered(10))
    net.settle(5.0)
    net.policy = without(C)
    net.members[A].send(numbered(10, 11))
    net.run(5.0)
    snapshot = stability(net, A).snapshot()
    assert snapshot.stable == {A: 10}
    assert snapshot.waits_for == (C,)


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["interval", "max_bytes"])
def test_settings_below_their_bounds_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"Stability.{field} is 0"):
        Stability(**{field: 0})


def test_it_needs_a_table() -> None:
    member = Member(1, [NakAck3()], 60_000)
    part = Stability().build(member.env)
    with pytest.raises(ConfigError, match="the stack has nothing for multicast"):
        part.connect(Ports())


def table_of(member: Member) -> NakAck3Layer:
    part = member.parts[0]
    assert isinstance(part, NakAck3Layer)
    return part
