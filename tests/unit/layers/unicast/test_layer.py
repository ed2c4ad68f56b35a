"""Unicast: in order, exactly once, whatever the network does, and nothing runs when all is done."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.stack.snapshot import ReceivedMarks, SentMarks
from ringcast.core.wire.frames import UnicastAck, UnicastData, UnicastLast
from ringcast.layers.unicast import Unicast
from tests.unit.harness import LATENCY, Member, Net, bad_network, lose, numbered
from tests.unit.layers.pair import A, B, C, is_data, layer, pair, send_each

# --- what everybody relies on -------------------------------------------------------------------


def test_messages_arrive_in_order_and_then_nothing_runs() -> None:
    net = pair()
    net.members[A].send(numbered(1_000), B)
    net.members[B].send(numbered(10), A)
    net.settle(1.0)
    assert net.members[B].payloads(A, B) == numbered(1_000)
    assert net.members[A].payloads(B, A) == numbered(10)
    assert layer(net, A).drained
    assert net.sent["UNAK"] == net.sent["URESET"] == 0


def test_a_lost_last_message_is_repaired_long_before_the_tick() -> None:
    net = pair()
    net.policy = lose(is_data(1))
    net.members[A].send(numbered(1), B)
    net.run(0.3 * Unicast().xmit_interval)
    assert net.members[B].payloads(A, B) == numbered(1)
    assert (net.sent["ULAST"], net.sent["UNAK"]) == (1, 1)


def test_an_idle_connection_costs_no_timer() -> None:
    net = pair()
    net.members[A].send(numbered(1), B)
    net.settle(1.0)
    assert all(m.env.timers.deadline == float("inf") for m in net.members.values())


def test_batches_are_cut_to_the_mtu() -> None:
    net = pair(mtu=1_400)
    net.members[A].send(numbered(100, size=200), B)
    net.settle(1.0)
    assert net.members[B].payloads(A, B) == numbered(100, size=200)
    assert net.sent["UDATA"] > 15


def test_a_message_to_oneself_comes_back_and_is_acked_by_being_taken() -> None:
    net = pair(capacity=10)
    me = net.members[A]
    me.is_slow = True
    me.send(numbered(12), A)
    assert layer(net, A).own.outstanding == 10
    assert me.waiting == 2
    me.take(3)
    me.go_on()
    assert me.waiting == 0
    me.take()
    me.take()
    assert me.messages == [(A, A, n, str(n).encode()) for n in range(1, 13)]
    assert layer(net, A).own.outstanding == 0
    assert net.sent.total() == 0


def test_batches_go_up_with_their_destination() -> None:
    net = pair()
    net.members[A].send([b"x"], B)
    net.settle(1.0)
    assert net.members[B].messages == [(A, B, 1, b"x")]


def test_every_frame_twice_is_delivered_once() -> None:
    net = pair()
    net.policy = lambda flight: (LATENCY, 3 * LATENCY)
    send_each(net, A, B, numbered(50))
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(50)


# --- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1, 5, 10])
def test_a_lost_message_is_asked_for(first: int) -> None:
    net = pair()
    net.policy = lose(is_data(first))
    send_each(net, A, B, numbered(10))
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(10)
    assert net.sent["UNAK"] == 1


def test_the_only_message_and_the_first_announcement_are_lost() -> None:
    net = pair()
    net.policy = lose(lambda frame: isinstance(frame, UnicastData | UnicastLast), 2)
    net.members[A].send([b"x"], B)
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == [b"x"]


def test_lost_acks_are_repeated() -> None:
    net = pair()
    net.policy = lose(lambda frame: isinstance(frame, UnicastAck), 3)
    net.members[A].send(numbered(10), B)
    net.settle(2.0)
    assert layer(net, A).drained
    assert net.members[B].payloads(A, B) == numbered(10)


def test_a_gap_is_not_asked_for_when_it_is_only_late() -> None:
    net = pair()
    net.policy = lambda flight: (LATENCY * 1.5,) if is_data(3)(flight.frame) else (LATENCY,)
    send_each(net, A, B, numbered(10))
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(10)
    assert net.sent["UNAK"] == 0


# --- windows ------------------------------------------------------------------------------------


def test_the_sender_waits_at_capacity_and_an_ack_releases_it() -> None:
    net = pair(capacity=10)
    receiver = net.members[B]
    receiver.is_slow = True
    net.members[A].send(numbered(30), B)
    net.run(1.0)
    assert layer(net, A).room(B)[0] == 0
    assert net.members[A].waiting == 20
    receiver.take(1)
    net.run(1.0)
    assert net.members[A].waiting == 19
    receiver.is_slow = False
    net.settle(5.0)
    assert receiver.payloads(A, B) == numbered(30)


def test_the_window_is_bounded_by_bytes_as_well() -> None:
    net = pair(max_bytes=10_000)
    net.members[B].is_slow = True
    net.members[A].send(numbered(100, size=1_000), B)
    net.run(1.0)
    assert net.members[A].waiting == 90
    net.members[B].is_slow = False
    net.settle(5.0)
    assert net.members[B].payloads(A, B) == numbered(100, size=1_000)


def test_acks_by_threshold_come_before_the_tick() -> None:
    net = pair(capacity=8)
    net.members[A].send(numbered(8 * 20), B)
    net.run(0.099)
    assert net.members[B].payloads(A, B) == numbered(160)


def test_a_receiver_with_a_smaller_window_completes() -> None:
    net = Net(Member(A, [Unicast(capacity=100)], 60_000), Member(B, [Unicast(capacity=7)], 60_000))
    net.install(A, B)
    net.members[B].is_slow = True
    send_each(net, A, B, numbered(100))
    net.run(0.5)
    net.members[B].is_slow = False
    assert net.settle(30.0) < 0.5, "it does not wait for an announcement each time"
    assert net.members[B].payloads(A, B) == numbered(100)


def test_there_is_no_room_for_a_process_outside_the_view() -> None:
    net = pair()
    assert layer(net, A).room(C) == (0, 0)
    assert layer(net, A).room(None) == (0, 0)


# --- frames that are not right ------------------------------------------------------------------


def test_frames_of_strangers_are_dropped_and_counted() -> None:
    net = pair()
    net.members[B].receive(UnicastData(5, 1, 0, 0, 0, [b"x"], 1), C)
    net.settle(1.0)
    assert net.members[B].messages == []
    assert net.members[B].env.counters["dropped_not_member"] == 1
    assert net.sent.total() == 0


def test_acks_of_another_connection_or_beyond_what_was_sent_change_nothing() -> None:
    net = pair()
    net.members[B].is_slow = True
    net.members[A].send(numbered(10), B)
    conn = layer(net, A).outbound[B].conn
    for ack in (UnicastAck(conn + 1, 10), UnicastAck(conn, 11), UnicastAck(conn, 0)):
        net.members[A].receive(ack, B)
    assert layer(net, A).outbound[B].window.low == 0
    net.members[A].receive(UnicastAck(conn, 4), B)
    net.members[A].receive(UnicastAck(conn, 3), B)
    assert layer(net, A).outbound[B].window.low == 4


def test_connection_ids_are_never_0_and_rise() -> None:
    net = pair()
    unicast = layer(net, A)
    conns = [unicast._new_outbound(B).conn for _ in range(100)]
    assert conns == sorted(set(conns))
    assert conns[0] > 0
    assert conns[-1] < 2**64


# --- snapshot -----------------------------------------------------------------------------------


def test_the_snapshot_has_the_marks() -> None:
    net = pair()
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    sent = SentMarks(low=5, delivered=5, high=5, nbytes=0)
    assert layer(net, A).snapshot().to == {B: sent}
    received = ReceivedMarks(low=5, delivered=5, handed=5, high=5, missing=0, nbytes=0)
    assert layer(net, B).snapshot().from_ == {A: received}
    assert layer(net, B).snapshot().plain()["from"] == {"1": asdict(received)}


# --- anything may happen ------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.1, 0.5]),
    copies=st.sampled_from([0.0, 0.3, 1.0]),
    spread=st.sampled_from([0.0, 0.005, 0.3]),
    capacity=st.integers(1, 40),
    bursts=st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=8),
)
def test_exactly_once_in_order_and_it_always_ends(
    seed: int,
    loss: float,
    copies: float,
    spread: float,
    capacity: int,
    bursts: list[tuple[bool, int]],
) -> None:
    net = pair(capacity=capacity, max_bytes=capacity * 50)
    net.policy = bad_network(seed, loss, copies, spread)
    sent: dict[Address, list[bytes | memoryview]] = {A: [], B: []}
    for is_first, count in bursts:
        source, target = (A, B) if is_first else (B, A)
        run = numbered(count, start=len(sent[source]) + 1)
        sent[source] += run
        net.members[source].send(run, target)
        net.run(0.05)
    net.settle(3_600.0)
    assert net.members[B].payloads(A, B) == sent[A]
    assert net.members[A].payloads(B, A) == sent[B]
    assert layer(net, A).drained
    assert layer(net, B).drained
