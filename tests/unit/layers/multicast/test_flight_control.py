"""Bytes in flight: how acks make room, and how active senders share it."""

from ringcast.core.reliable.ack_map import AckMap
from ringcast.core.stack.env import PACKET_BYTES_MAX
from ringcast.layers.multicast.flight_control import (
    ACTIVE_SENDER_SECONDS,
    STILL_TICKS,
    FlightControl,
)
from tests.unit.layers.multicast.parts import A, B, C, Parts, installation

FLIGHT = 120


def control(parts: Parts, window_bytes: int = 10_000) -> FlightControl:
    ack_map = AckMap()
    ack_map.install(parts.change, 0)
    flight = FlightControl(parts.env, FLIGHT, window_bytes, parts.group.sent, ack_map)
    flight.install(parts.change, 0)
    return flight


def test_sent_messages_are_in_flight_until_they_arrive_at_all_members() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    assert flight.room() == FLIGHT - 40
    assert not flight.on_arrived(B, 3) or flight.room() == FLIGHT - 40
    assert flight.on_arrived(C, 2)
    assert flight.room() == FLIGHT - 20


def test_only_a_member_at_the_minimum_makes_room() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    flight.on_arrived(B, 2)
    assert not flight.on_arrived(B, 3)
    assert flight.on_arrived(C, 1)


def test_arrivals_that_go_back_or_past_what_was_sent_do_not_count() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    assert flight.on_arrived(B, 2)
    assert not flight.on_arrived(B, 1)
    assert not flight.on_arrived(B, 5)


def test_a_released_member_is_not_waited_for() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    flight.on_arrived(B, 4)
    flight._ack_map.released.add(C)
    flight.on_released()
    assert flight.room() == FLIGHT


def test_active_senders_share_the_bound_and_idle_ones_leave_it() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(1)
    flight.sent_at.update({A: 0.0, B: 0.0, C: 0.0})
    assert flight.room() == FLIGHT // 3 - 10
    parts.env.now = ACTIVE_SENDER_SECONDS
    flight.sent_at[A] = parts.env.now
    assert flight.room() == FLIGHT - 10


def test_a_bound_as_large_as_the_window_is_not_shared() -> None:
    parts = Parts()
    flight = control(parts, window_bytes=FLIGHT)
    assert not flight.is_shared
    parts.send(1)
    flight.sent_at.update({A: 0.0, B: 0.0})
    assert flight.room() == FLIGHT - 10


def test_a_view_without_the_slowest_makes_room() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    flight.on_arrived(B, 4)
    flight.install(installation(A, B, old=(A, B, C), number=2), 4)
    assert flight.arrived == 4


def test_what_is_freed_no_longer_counts_as_in_flight() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    for member in (B, C):
        flight.on_arrived(member, 3)
    parts.group.sent.deliver(2)
    parts.group.sent.purge(2)
    assert flight.room() == FLIGHT - 10


def test_senders_are_counted_anew_after_a_quarter_of_the_time() -> None:
    parts = Parts()
    flight = control(parts)
    flight.sent_at.update({A: 0.0, B: 0.0})
    assert flight.count_senders() == 2
    flight.sent_at[C] = 0.0
    parts.env.now = ACTIVE_SENDER_SECONDS / 4 - 0.001
    assert flight.count_senders() == 2
    parts.env.now = ACTIVE_SENDER_SECONDS / 4
    assert flight.count_senders() == 3


def test_a_member_where_nothing_arrives_is_passed_over_until_something_does() -> None:
    parts = Parts()
    flight = control(parts)
    parts.send(4)
    flight.on_arrived(B, 4)
    for _ in range(STILL_TICKS - 1):
        assert not flight.pass_over_still()
        assert not flight.is_still(C)
    assert flight.pass_over_still()
    assert flight.is_still(C)
    assert not flight.is_still(B)
    assert flight.room() == FLIGHT
    assert not flight.pass_over_still(), "it makes room once"
    flight.on_arrived(C, 1)
    assert not flight.is_still(C)
    assert flight.room() == FLIGHT - 30, "its path counts again"


def test_a_member_that_left_no_longer_counts_as_a_sender() -> None:
    parts = Parts()
    flight = control(parts)
    flight.sent_at.update({A: 0.0, B: 0.0, C: 0.0})
    flight.install(installation(A, B, old=(A, B, C), number=2), 0)
    assert flight.count_senders() == 2


def test_a_sender_without_a_pace_has_none_now() -> None:
    assert control(Parts()).paced_rate == 0


def test_congestion_counts_only_where_datagrams_are_packets() -> None:
    parts = Parts()
    ack_map = AckMap()
    ack_map.install(parts.change, 0)
    flight = FlightControl(parts.env, 4_000_000, 16_000_000, parts.group.sent, ack_map)
    flight.install(parts.change, 0)
    parts.env.resize(PACKET_BYTES_MAX + 1)
    assert flight.room() == flight.window == 4_000_000
    flight.congestion.on_lost(B, 1, 1_000.0)
    assert flight.paced_rate == 0
    parts.env.resize(PACKET_BYTES_MAX)
    assert flight.room() <= flight.window < 4_000_000
    assert flight.paced_rate > 0
