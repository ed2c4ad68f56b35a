"""Connections that end and begin: a peer that parts and is met again gets nothing twice."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.stack.env import PACKET_BYTES_MAX
from ringcast.core.wire.frames import UnicastAck, UnicastData, UnicastNak, UnicastReset
from ringcast.layers.unicast import Unicast
from ringcast.layers.unicast.connections import Inbound, Inbounds, Over
from tests.unit.harness import Flight, Member, bad_network, clean, lose, numbered
from tests.unit.layers.pair import A, B, C, is_data, layer, pair, send_each

# --- congestion ---------------------------------------------------------------------------------


def test_only_packets_are_subject_to_congestion_control() -> None:
    net = pair()
    sender, spec = net.members[A], Unicast()
    sender.env.resize(PACKET_BYTES_MAX + 1)
    assert layer(net, A).room(B) == (spec.capacity, spec.max_bytes)
    sender.send(numbered(1), B)
    assert layer(net, A).room(B)[1] > spec.max_bytes // 2
    sender.env.resize(PACKET_BYTES_MAX)
    assert 0 < layer(net, A).room(B)[1] < spec.max_bytes // 2


# --- views and connections that end -------------------------------------------------------------


def test_connections_go_on_across_views() -> None:
    net = pair()
    net.members[C] = Member(C, [Unicast()], 60_000)
    net.policy = lose(is_data(2))
    send_each(net, A, B, numbered(3))
    net.install(A, B, C)
    send_each(net, A, B, numbered(3, start=4))
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(6)
    assert net.sent["URESET"] == 0


def test_what_is_unacked_when_the_peer_leaves_is_dropped_and_counted() -> None:
    net = pair()
    net.members[B].is_slow = True
    net.members[A].send(numbered(5), B)
    net.run(0.5)
    net.install(A, on=[A])
    assert net.members[A].env.counters["unicast_dropped_unacked"] == 5
    assert layer(net, A).outbound == {}
    assert layer(net, A).room(B) == (0, 0)


def test_both_part_and_meet_again() -> None:
    net = pair()
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    net.install(A)
    net.install(B)
    net.install(A, B)
    net.members[A].send(numbered(5, start=6), B)
    net.settle(1.0)
    assert net.members[B].payloads(A, B) == numbered(10)


def test_a_receiver_that_closed_goes_on_where_it_was() -> None:
    """B had a view without A, A had none without B, and the acks of what B took were lost."""
    net = pair()
    net.policy = lose(lambda frame: isinstance(frame, UnicastAck), 1_000)
    net.members[A].send(numbered(5), B)
    net.run(0.05)
    assert len(net.members[B].messages) == 5
    net.install(B, on=[B])
    net.members[A].send(numbered(5, start=6), B)
    net.run(0.5)
    assert net.members[B].env.counters["dropped_not_member"] > 0
    net.policy = clean
    net.install(A, B)
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(10)
    assert net.sent["URESET"] == 0


def test_a_receiver_that_was_left_behind_stops_asking() -> None:
    """A closed the connection with a gap at B, which had no view without A."""
    net = pair()
    net.policy = lose(lambda frame: isinstance(frame, UnicastData) and frame.first == 2, 1_000)
    send_each(net, A, B, numbered(3))
    net.run(0.5)
    assert net.members[B].payloads(A, B) == numbered(1)
    net.install(A, on=[A])
    net.install(A, B)
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(1)
    net.members[A].send([b"new"], B)
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == [*numbered(1), b"new"]


def test_a_new_connection_ends_the_old_one_and_late_frames_of_it_are_dropped() -> None:
    net = pair()
    late: list[Flight] = []

    def keep(flight: Flight) -> Sequence[float]:
        late.append(flight)
        return clean(flight)

    net.policy = keep
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    net.install(A, on=[A])
    net.install(A, B)
    net.members[A].send([b"new"], B)
    net.settle(1.0)
    for flight in late[:]:
        net.members[flight.target].receive(flight.frame, flight.source)
    net.settle(1.0)
    assert net.members[B].payloads(A, B) == [*numbered(5), b"new"]
    assert net.members[B].env.counters["dropped_closed_connection"] > 0


def test_a_receiver_that_has_forgotten_asks_for_a_new_connection() -> None:
    net = pair()
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    layer(net, B)._inbounds = Inbounds(100, 0.001, 0.1, 1)
    send_each(net, A, B, numbered(5, start=6))
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(10)
    assert [m[2] for m in net.members[B].messages[5:]] == [1, 2, 3, 4, 5]
    assert net.members[A].env.counters["unicast_restarted"] == 1


def test_a_lost_reset_is_repeated() -> None:
    net = pair()
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    layer(net, B)._inbounds = Inbounds(100, 0.001, 0.1, 1)
    net.policy = lose(lambda frame: isinstance(frame, UnicastReset), 3)
    net.members[A].send(numbered(5, start=6), B)
    net.settle(2.0)
    assert net.members[B].payloads(A, B) == numbered(10)


def test_a_late_reset_changes_nothing() -> None:
    net = pair()
    net.members[A].send(numbered(5), B)
    net.settle(1.0)
    conn = layer(net, A).outbound[B].conn
    for stranger in (conn - 1, conn + 1):
        net.members[A].receive(UnicastReset(stranger), B)
    assert layer(net, A).outbound[B].conn == conn
    net.members[A].receive(UnicastReset(conn), B)
    assert layer(net, A).outbound == {}


def test_a_request_for_an_unknown_connection_is_answered_by_a_reset() -> None:
    net = pair()
    net.members[A].send(numbered(1), B)
    net.settle(1.0)
    frame = UnicastNak(5, layer(net, B)._inbounds.open[A].window.gaps)
    net.members[A].receive(frame, B)
    net.settle(1.0)
    assert net.sent["URESET"] == 1
    assert net.members[B].env.counters["dropped_closed_connection"] == 1


# --- which connection a frame belongs to --------------------------------------------------------


def opened(inbounds: Inbounds, conn: int, low: int = 0) -> Inbound:
    found = inbounds.find(A, conn, low)
    assert isinstance(found, Inbound)
    return found


def test_connections_are_told_apart() -> None:
    inbounds = Inbounds(100, 0.001, 0.1, 10)
    first = opened(inbounds, 5)
    assert opened(inbounds, 5, low=3) is first
    assert inbounds.find(A, 4, 0) is Over.LATE
    second = opened(inbounds, 6)
    assert second is not first
    assert inbounds.find(A, 5, 0) is Over.LATE
    assert inbounds.find(A, 7, 1) is Over.LOST
    assert inbounds.find(A, 7, 0) is Over.LOST, "it must never be opened again"
    assert inbounds.find(A, 6, 0) is Over.LATE
    assert opened(inbounds, 8).window.handed == 0


def test_a_closed_connection_opens_behind_what_was_handed_up() -> None:
    inbounds = Inbounds(100, 0.001, 0.1, 10)
    inbound = opened(inbounds, 5)
    inbound.window.high = inbound.window.handed = 40
    inbounds.close(A)
    inbounds.close(A)
    assert inbounds.remembered == 1
    again = opened(inbounds, 5)
    assert again is not inbound
    assert again.window.low == again.acked == 40


def test_remembered_connections_are_bounded() -> None:
    inbounds = Inbounds(100, 0.001, 0.1, 3)
    for address in range(1, 6):
        inbounds.find(Address(address), 5, 0)
        inbounds.close(Address(address))
    assert inbounds.remembered == 3
    assert inbounds.forgotten == 2


@given(
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([0.0, 0.05, 0.3]),
    views=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6),
)
def test_nothing_is_delivered_twice_by_parting_and_meeting(
    seed: int, spread: float, views: list[tuple[bool, bool]]
) -> None:
    """One or both have a view without the other, again and again, on a bad network."""
    net = pair(capacity=8)
    net.policy = bad_network(seed, 0.2, 0.3, spread)
    count = 0
    for a_parts, b_parts in views:
        net.members[A].send(numbered(10, start=count + 1), B)
        count += 10
        net.run(0.1)
        for address, parts in ((A, a_parts), (B, b_parts)):
            if parts:
                net.install(address, on=[address])
                net.run(0.05)
        net.install(A, B)
        net.run(0.05)
    net.members[A].send([b"0"], B)
    net.settle(3_600.0)
    numbers = [int(bytes(payload)) for payload in net.members[B].payloads(A, B)]
    assert numbers[-1] == 0
    assert numbers[:-1] == sorted(set(numbers[:-1]))
