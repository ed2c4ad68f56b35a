"""When a receiver acks: at once, on the tick, or with a whole large message."""

import pytest

from ringcast.core.reliable.ack_map import AckMap
from ringcast.core.reliable.ticker import ACK_BYTES, ACK_SECONDS, ACK_SOON, Ticker
from ringcast.core.stack.env import PACKET_BYTES_MAX
from ringcast.core.wire.frames import Ack, Last
from ringcast.layers.multicast.ack_sender import AckSender
from ringcast.layers.multicast.flight_control import FlightControl
from ringcast.layers.multicast.nakack4 import NakAck4
from tests.unit.layers.multicast.parts import SPEC, B, Parts, run

ACK_MESSAGES = 10


class Receiver(Parts):
    """A member that acks what it takes of B."""

    def __init__(
        self,
        flight_bytes: int = 4_000_000,
        capacity: int = SPEC.capacity,
        ack_threshold: int = ACK_MESSAGES,
    ) -> None:
        super().__init__()
        spec = NakAck4(capacity=capacity, ack_threshold=ack_threshold, flight_bytes=flight_bytes)
        ack_map = AckMap()
        ack_map.install(self.change, 0)
        flight = FlightControl(self.env, flight_bytes, spec.max_bytes, self.group.sent, ack_map)
        flight.install(self.change, 0)
        self.flight = flight
        ticker = Ticker(self.layer, spec.xmit_interval)
        soon = Ticker(self.layer, ACK_SECONDS, ACK_SOON)
        self.acks = AckSender(self.env, spec, self.group, flight, ticker, soon)
        self.acks.install(self.change)

    def take(self, first: int, count: int) -> None:
        """Messages of B arrive and are taken."""
        window = self.group.windows[B]
        window.put(run(first, count))
        window.deliver(first + count - 1)
        self.acks.on_delivered(B, window, 10 * count)

    def acked(self) -> list[tuple[int, int]]:
        """What B was told: delivered and ahead."""
        frames = self.frames()
        assert all(to == B for to, _ in frames)
        return [(frame.delivered, frame.ahead) for _, frame in frames if isinstance(frame, Ack)]


def test_enough_deliveries_are_acked_at_once() -> None:
    member = Receiver()
    member.take(1, ACK_MESSAGES)
    assert member.acked() == [(ACK_MESSAGES, 0)]


def test_fewer_deliveries_are_acked_on_the_tick() -> None:
    member = Receiver()
    member.take(1, 2)
    assert member.acked() == []
    assert member.env.timers.deadline == SPEC.xmit_interval
    member.acks.send_due()
    member.acks.send_due()
    assert member.acked() == [(2, 0)]


def test_arrivals_behind_a_gap_are_acked_as_ahead() -> None:
    member = Receiver(flight_bytes=400)
    window = member.group.windows[B]
    window.put(run(2, 10))
    member.acks.on_arrived(B, window, 100)
    assert member.acked() == [(0, 10)]


def test_arrivals_in_order_leave_the_ack_to_the_delivery_for_twice_as_long() -> None:
    member = Receiver(flight_bytes=400)
    window = member.group.windows[B]
    window.put(run(1, 10))
    member.acks.on_arrived(B, window, 100)
    assert member.acked() == []
    window.put(run(11, 10))
    member.acks.on_arrived(B, window, 100)
    assert member.acked() == [(0, 20)]


def test_fragments_are_not_acked_while_the_whole_message_will_be() -> None:
    member = Receiver()
    member.acks.suppress_until(B, 40)
    member.take(1, 39)
    assert member.acked() == []
    member.acks.acked_by_large(B, 39)
    member.acks.send_due()
    assert member.acked() == []


def test_fragments_that_fit_the_window_are_acked_as_a_whole_only() -> None:
    member = Receiver()
    member.acks.suppress_until(B, SPEC.capacity)
    member.take(1, SPEC.capacity - 1)
    assert member.acked() == []


def test_fragments_of_a_larger_message_are_acked_when_half_of_the_window_is_used() -> None:
    member = Receiver()
    member.acks.suppress_until(B, SPEC.capacity + 1)
    member.take(1, SPEC.capacity // 2)
    assert member.acked() == [(SPEC.capacity // 2, 0)]


def test_a_final_announcement_that_is_repeated_is_acked() -> None:
    member = Receiver()
    final = Last(member.group.view, 0, 3, 3)
    member.acks.on_last(final, B)
    member.acks.send_due()
    assert member.acked() == []
    member.acks.on_last(final, B)
    member.acks.send_due()
    assert member.acked() == [(0, 0)]


@pytest.mark.parametrize(("capacity", "threshold", "expected"), [(3, 10, 1), (40, 100, 10)])
def test_a_receiver_acks_at_once_after_a_quarter_of_the_window_at_most(
    capacity: int, threshold: int, expected: int
) -> None:
    member = Receiver(capacity=capacity, ack_threshold=threshold)
    for seqno in range(1, expected):
        member.take(seqno, 1)
        assert member.acked() == []
    member.take(expected, 1)
    assert member.acked() == [(expected, 0)]


def test_every_arrival_behind_a_gap_is_acked_where_one_byte_may_be_in_flight() -> None:
    member = Receiver(flight_bytes=1)
    window = member.group.windows[B]
    window.put(run(2))
    member.acks.on_arrived(B, window, 1)
    assert member.acked() == [(0, 1)]


def test_arrivals_of_several_packets_are_acked_soon_and_once() -> None:
    member = Receiver()
    member.env.resize(PACKET_BYTES_MAX)
    window = member.group.windows[B]
    window.put(run(1, 10))
    member.acks.on_arrived(B, window, ACK_BYTES)
    assert member.env.timers.is_set(member.layer, ACK_SOON)
    member.env.timers.cancel(member.layer, ACK_SOON)
    member.acks.on_arrived(B, window, 1)
    assert not member.env.timers.is_set(member.layer, ACK_SOON), "it is running already"
    member.acks.send_soon()
    assert member.acked() == [(0, 10)]
    member.acks.on_arrived(B, window, ACK_BYTES)
    assert member.env.timers.is_set(member.layer, ACK_SOON)


def test_arrivals_that_stay_on_the_machine_wait_for_the_tick() -> None:
    member = Receiver()
    member.env.resize(PACKET_BYTES_MAX + 1)
    window = member.group.windows[B]
    window.put(run(1, 10))
    member.acks.on_arrived(B, window, ACK_BYTES)
    assert not member.env.timers.is_set(member.layer, ACK_SOON)


def test_acks_to_several_senders_come_as_much_later() -> None:
    member = Receiver()
    assert member.acks.interval == ACK_SECONDS
    member.flight.active_senders = 3
    assert member.acks.interval == pytest.approx(3 * ACK_SECONDS)


def test_the_first_final_announcement_of_nothing_is_acked() -> None:
    member = Receiver()
    member.acks.on_last(Last(member.group.view, 0, 0, 0), B)
    member.acks.send_due()
    assert member.acked() == [(0, 0)], "a joiner that has sent nothing yet lacks an ack"
