"""Large messages as a whole: one ack each, a sender that goes on, receivers that skip and go on."""

from collections.abc import Sequence
from random import Random

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.model.events import Skipped, Undelivered
from ringcast.core.wire.codec import decode_frame, encode_frame
from ringcast.core.wire.frames import Ack, Data, Nak, Unacked, Whole
from ringcast.errors import ConfigError
from ringcast.layers.fragment.layer import Fragment, FragmentLayer
from ringcast.layers.large import LargeMessages, LargeMessagesLayer
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Flight, Net, Policy, bad_network, clean, lose
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers

TIMEOUT = 6.0
"""ack_timeout × (attempts + 1), with the usual settings."""


def group(
    count: int = 3, *, large: LargeMessages | None = None, max_bytes: int = 4_000_000
) -> tuple[Net, list[Climber]]:
    multicast = NakAck4(max_bytes=max_bytes, retain=False)
    return climbers(count, large or LargeMessages(), Fragment(), multicast, Unicast())


def noise(size: int, seed: int = 0) -> bytes:
    return Random(seed).randbytes(size)


def unacked(member: Climber) -> dict[int, set[Address]]:
    return {last: sent.missing for last, sent in member.get(LargeMessagesLayer).unacked.items()}


def without(kinds: type | tuple[type, ...], target: Address) -> Policy:
    """A network on which frames of these kinds never reach one member."""

    def policy(flight: Flight) -> Sequence[float]:
        cut_off = flight.target == target and isinstance(flight.frame, kinds)
        return () if cut_off else clean(flight)

    return policy


# --- acks ----------------------------------------------------------------------------------------


def test_a_message_costs_one_ack_a_receiver_whatever_the_number_of_fragments() -> None:
    net, (a, b, c) = group()
    messages: list[Payload] = [noise(40_000, seed) for seed in range(5)]
    a.send(messages)
    net.settle()
    assert b.payloads(A) == c.payloads(A) == messages
    assert net.sent["WHOLE"] == 5 * 2
    # The ack of the whole speaks for its fragments; others tell at intervals what has arrived.
    assert net.sent["ACK"] <= 5 * 2
    assert net.sent["UNACKED"] == 0
    assert unacked(a) == {}
    assert a.told(Undelivered) == []


def test_small_messages_are_not_followed() -> None:
    net, (a, _, _) = group()
    a.send([b"x"] * 100)
    net.settle()
    assert net.sent["WHOLE"] == 0


def test_a_message_larger_than_the_window_costs_an_ack_for_each_half_before_the_last_two() -> None:
    net, (a, b, _) = group(max_bytes=20_000)
    a.send([noise(105_000)])
    net.settle()
    assert len(b.payloads(A)) == 1
    assert net.sent["WHOLE"] == 2
    assert 2 * 9 <= net.sent["ACK"] <= 2 * (9 + 2)


def test_small_messages_behind_a_large_one_are_acked_as_always() -> None:
    net, (a, b, _) = group()
    a.send([noise(40_000), b"small", noise(40_000)])
    net.run(0.05)
    assert net.sent["WHOLE"] == 4
    arrivals = net.sent["ACK"]
    a.send([b"small"])
    net.settle()
    assert len(b.payloads(A)) == 4
    assert net.sent["ACK"] == arrivals + 2
    assert a.get(NakAck4Layer).sent.outstanding == 0


def test_a_busy_application_holds_the_window_but_is_not_taken_for_a_loss() -> None:
    net, (a, _, c) = group()
    c.is_slow = True
    a.send([noise(40_000)])
    net.run(0.5)
    assert list(unacked(a).values()) == [{C}]
    net.run(1.0)
    assert list(unacked(a).values()) == [set()]  # It was asked, and has it.
    window = a.get(NakAck4Layer).sent
    assert window.outstanding > 0
    assert net.sent["UNACKED"] == 1
    net.run(TIMEOUT)
    assert (window.outstanding, window.nbytes, unacked(a)) == (0, 0, {})
    assert a.told(Undelivered) == []
    c.is_slow = False
    net.settle()
    assert len(c.payloads(A)) == 1
    assert a.env.counters["caught_up"] == 1


def test_an_application_that_takes_its_time_acks_when_it_has_taken_the_message() -> None:
    net, (a, _, c) = group()
    c.is_slow = True
    a.send([noise(40_000)])
    net.run(1.5)
    c.is_slow = False
    net.settle()
    assert unacked(a) == {}
    assert a.env.counters["released"] == 0
    assert (net.sent["WHOLE"], net.sent["UNACKED"]) == (3, 1)


def test_a_lost_ack_of_the_whole_is_made_good_by_an_ack_of_the_window() -> None:
    net, (a, _, _) = group()
    net.policy = without(Whole, A)
    a.send([noise(40_000)])
    net.run(0.5)
    assert a.get(NakAck4Layer).sent.outstanding == 0
    assert 2 <= net.sent["ACK"] <= 4


def test_a_lost_ack_is_given_again_when_the_sender_asks() -> None:
    net, (a, _, _) = group()
    net.policy = without(Whole, A)
    a.send([noise(40_000)])
    net.run(0.5)
    (last,) = unacked(a)
    assert unacked(a) == {last: {B, C}}
    net.policy = clean
    net.run(1.0)
    assert unacked(a) == {}
    assert net.sent["UNACKED"] == 2
    assert net.sent["WHOLE"] == 4
    assert a.told(Undelivered) == []


def test_a_sender_does_not_wait_for_leavers_and_suspects() -> None:
    net, (a, _, _, _) = group(4)
    net.policy = without(Whole, A)
    a.send([noise(40_000)])
    net.run(0.5)
    (last,) = unacked(a)
    a.suspect(B, True)
    assert unacked(a) == {last: {C, D}}
    net.install(A, B, C, on=[A, B, C])
    assert unacked(a) == {last: {C}}
    a.suspect(C, True)
    assert unacked(a) == {}
    a.send([noise(40_000)])
    assert unacked(a) == {}
    a.suspect(C, False)
    net.run(0.1)
    a.send([noise(40_000)])
    assert list(unacked(a).values()) == [{C}]


def test_a_newcomer_owes_no_ack_for_what_was_sent_before_it_came() -> None:
    multicast = NakAck4(retain=False)
    net, (a, _, _, d) = climbers(
        4, LargeMessages(), Fragment(), multicast, Unicast(), installed=False
    )
    net.install(A, B, C)
    net.policy = without(Whole, A)
    a.send([noise(40_000)])
    net.run(0.5)
    net.install(A, B, C, D)
    a.send([noise(40_000)])
    net.run(0.5)
    assert list(unacked(a).values()) == [{B, C}, {B, C, D}]
    assert len(d.payloads(A)) == 1


def test_a_group_of_one_waits_for_no_ack() -> None:
    net, (a,) = group(1)
    a.send([noise(40_000)])
    net.settle()
    assert len(a.payloads(A)) == 1
    assert unacked(a) == {}


# --- the sender goes on --------------------------------------------------------------------------


def test_a_sender_frees_a_late_message_and_names_the_members_that_lack_it() -> None:
    net, (a, b, c) = group()
    net.policy = without(Data, C)
    messages: list[Payload] = [noise(40_000, 1), b"small", noise(30_000, 2)]
    a.send(messages)
    net.run(TIMEOUT - 0.1)  # The second one leaves when the sender has passed over C.
    assert b.payloads(A) == messages
    window = a.get(NakAck4Layer).sent
    assert (window.outstanding > 0, a.told(Undelivered)) == (True, [])
    net.run(0.9)
    seqnos = [seqno for _, _, seqno, payload in b.messages if len(payload) > 5]
    assert a.told(Undelivered) == [Undelivered(seqno, (C,)) for seqno in seqnos]
    assert (window.outstanding, window.nbytes) == (0, 0)
    assert net.sent["UNACKED"] == 2 * 5
    assert c.messages == []


def test_the_one_that_comes_back_skips_exactly_what_was_freed() -> None:
    net, (a, b, c) = group()
    net.policy = without(Data, C)
    a.send([noise(40_000, 1), noise(30_000, 2)])
    net.run(TIMEOUT + 1.0)
    net.policy = clean
    later: list[Payload] = [b"small", noise(20_000, 3)]
    a.send(later)
    net.run(2.0)
    assert c.payloads(A) == later
    gone = {seqno for _, _, seqno, _ in b.messages[:2]}
    skipped = c.told(Skipped)
    assert set(range(1, max(gone) + 1)) == {
        seqno for event in skipped for seqno in range(event.first, event.last + 1)
    }
    assert c.messages[0][2] == max(gone) + 1
    assert a.get(NakAck4Layer).sent.outstanding == 0
    assert a.env.counters["caught_up"] >= 1
    a.send([noise(20_000, 4)])
    net.settle()
    assert len(c.payloads(A)) == 3
    assert len(a.told(Undelivered)) == 2


def test_the_one_that_comes_back_hears_of_what_it_missed_though_nothing_more_is_sent() -> None:
    net, (a, _, c) = group()
    net.policy = without(object, C)
    a.send([noise(40_000, 1)])
    net.run(TIMEOUT + 20.0)
    assert a.get(NakAck4Layer).sent.outstanding == 0
    net.policy = clean
    net.settle()
    assert c.payloads(A) == []
    assert [event.last for event in c.told(Skipped)] == [a.get(NakAck4Layer).sent.high]
    assert a.env.counters["caught_up"] == 1


def test_a_lost_ack_of_the_one_that_comes_back_is_given_again() -> None:
    net, (a, _, c) = group()
    net.policy = without(object, C)
    a.send([noise(40_000, 1)])
    net.run(TIMEOUT + 1.0)
    net.policy = lose(lambda frame: isinstance(frame, Ack), 2)
    net.settle()
    assert len(c.told(Skipped)) == 1
    assert a.env.counters["caught_up"] == 1


def test_a_message_in_time_is_never_reported_over_a_bad_network() -> None:
    net, (a, b, c) = group(max_bytes=20_000)
    net.policy = bad_network(3, loss=0.1, copies=0.1, spread=0.004)
    messages: list[Payload] = [noise(50_000, seed) for seed in range(4)]
    a.send(messages)
    b.send(messages)
    net.settle()
    for member in (a, b, c):
        assert member.payloads(A) == member.payloads(B) == messages
        assert member.told(Undelivered) == []
        assert member.told(Skipped) == []
        assert unacked(member) == {}


def test_more_messages_than_are_followed_count_as_timed_out() -> None:
    net, (a, _, _) = group(large=LargeMessages(max_unacked=2))
    net.policy = without(Whole, A)
    a.send([noise(2_000, seed) for seed in range(3)])
    net.run(0.5)
    assert len(unacked(a)) == 2
    assert [event.members for event in a.told(Undelivered)] == [(B, C)]


# --- the receiver goes on ------------------------------------------------------------------------


def cut_off_at(seqnos: set[int], target: Address) -> Policy:
    """A network on which these messages never reach one member."""

    def policy(flight: Flight) -> Sequence[float]:
        frame = flight.frame
        is_cut = isinstance(frame, Data) and frame.first in seqnos and flight.target == target
        return () if is_cut else clean(flight)

    return policy


@pytest.mark.parametrize("seqnos", [{2}, {5}, {2, 5, 9}, {9}, {10}, {2, 3, 4, 5, 6, 7, 8, 9}])
def test_a_receiver_that_asks_in_vain_skips_the_message_and_goes_on(seqnos: set[int]) -> None:
    net, (a, b, c) = group(large=LargeMessages(receive_timeout=2.0, ack_timeout=60.0))
    net.policy = cut_off_at(seqnos, C)
    piece = a.get(FragmentLayer).frag_size - 24
    messages: list[Payload] = [b"first", noise(9 * piece, 1), b"third", noise(3 * piece, 2)]
    a.send(messages)  # Seqnos 1, 2 to 10, 11, and 12 to 14.
    net.run(1.9)
    assert c.payloads(A) == [b"first"]
    net.run(0.5)
    assert c.payloads(A) == [b"first", *messages[2:]]
    ranges = [(event.first, event.last) for event in c.told(Skipped)]
    skipped = {seqno for first, last in ranges for seqno in range(first, last + 1)}
    assert 10 in skipped
    assert skipped <= set(range(2, 11))
    assert b.payloads(A) == messages
    assert c.get(FragmentLayer).incomplete_bytes == 0
    asked = net.sent["NAK"]
    net.policy = clean
    net.run(5.0)
    assert net.sent["NAK"] == asked  # It asks no more,
    assert c.payloads(A) == [b"first", *messages[2:]]  # and late fragments start nothing anew.
    assert list(unacked(a).values()) == [{C}]


@pytest.mark.parametrize("seqnos", [{1}, {11}, {2, 3, 4, 5, 6, 7, 8, 9, 10}])
def test_a_receiver_gives_up_nothing_that_is_not_known_to_be_large(seqnos: set[int]) -> None:
    net, (a, _, c) = group(large=LargeMessages(receive_timeout=2.0, ack_timeout=60.0))
    net.policy = cut_off_at(seqnos, C)
    piece = a.get(FragmentLayer).frag_size - 24
    messages: list[Payload] = [b"first", noise(9 * piece, 1), b"third", noise(3 * piece, 2)]
    a.send(messages)  # Seqnos 1, 2 to 10, 11, and 12 to 14.
    net.run(20.0)
    assert c.told(Skipped) == []
    net.policy = clean
    net.run(2.0)
    assert c.payloads(A) == messages


def test_each_message_is_skipped_at_its_own_deadline() -> None:
    net, (a, _, c) = group(large=LargeMessages(receive_timeout=2.0, ack_timeout=60.0))
    piece = a.get(FragmentLayer).frag_size - 24
    net.policy = cut_off_at({2, 6, 10, 14, 18}, C)
    for seed in range(5):
        a.send([noise(3 * piece, seed), b"small"])  # Four seqnos each.
        net.run(0.2)
    net.run(0.9)
    assert c.payloads(A) == []
    for count in range(1, 6):
        net.run(0.2)
        assert len(c.payloads(A)) == count
    spans = {(event.first, event.last, event.reason) for event in c.told(Skipped)}
    holes = {(first, first) for first in (2, 6, 10, 14, 18)}
    assert holes <= {(first, last) for first, last, _ in spans}


def test_a_younger_message_may_be_skipped_before_an_older_small_one_has_come() -> None:
    net, (a, _, c) = group(large=LargeMessages(receive_timeout=2.0, ack_timeout=60.0))
    piece = a.get(FragmentLayer).frag_size - 24
    net.policy = cut_off_at({1, 3}, C)
    a.send([b"small", noise(3 * piece, 1), b"last"])
    net.run(5.0)
    assert c.events == []
    net.policy = clean
    net.run(5.0)
    assert c.payloads(A) == [b"small", b"last"]
    reasons = {event.reason for event in c.told(Skipped) if event.first == 3}
    assert reasons == {"it did not come within 2 seconds"}


def test_a_message_that_was_given_up_is_not_waited_for_again_in_its_later_parts() -> None:
    large = LargeMessages(receive_timeout=2.0, ack_timeout=60.0)
    net, (a, b, c) = group(large=large, max_bytes=8_000)
    net.policy = cut_off_at({2, 30}, C)
    piece = a.get(FragmentLayer).frag_size - 24
    messages: list[Payload] = [noise(40 * piece, 1), b"next"]
    a.send(messages)
    net.run(2.2)  # Seqno 2 is given up, the window moves, and 30 is missing as well.
    assert c.payloads(A) == [b"next"]
    skipped = {n for event in c.told(Skipped) for n in range(event.first, event.last + 1)}
    assert {2, 30, 40} <= skipped <= set(range(1, 41))
    assert b.payloads(A) == messages


def test_a_receiver_whose_application_stands_still_skips_what_would_fill_its_memory() -> None:
    net, (a, b, c) = group(large=LargeMessages(max_waiting_bytes=100_000), max_bytes=50_000)
    c.is_slow = True
    messages: list[Payload] = [noise(40_000, seed) for seed in range(8)]
    a.send(messages)
    net.run(0.5)
    a.get(NakAck4Layer).release(C)
    net.run(TIMEOUT + 1.0)
    assert b.payloads(A) == messages
    assert c.inbox.nbytes <= 100_000
    late = [event.members for event in a.told(Undelivered)]
    assert late == [(C,)] * 6
    c.is_slow = False
    net.settle()
    assert c.payloads(A) == messages[:2]
    assert len(c.told(Skipped)) == 6
    a.send([b"next"])
    net.settle()
    assert c.payloads(A)[-1] == b"next"


def test_a_timer_runs_only_while_something_is_asked_for() -> None:
    net, (a, b, _) = group(large=LargeMessages(receive_timeout=2.0))
    net.policy = lambda flight: () if net.now < 0.7 and flight.target == B else (0.001,)
    a.send([noise(40_000, 1)])
    assert net.settle() < 60.0
    assert len(b.payloads(A)) == 1
    assert b.told(Skipped) == []
    assert net.sent["NAK"] > 0


def test_frames_of_strangers_and_about_nothing_change_nothing() -> None:
    net, (a, _, _) = group()
    net.policy = without(Whole, A)
    a.send([noise(40_000)])
    net.run(0.5)
    (last,) = unacked(a)
    a.receive(Whole(last, last), Address(99))
    a.receive(Unacked((5,)), Address(99))
    a.receive(Whole(last + 1, last + 1), B)
    a.receive(Unacked((1 << 60,)), B)
    assert unacked(a) == {last: {B, C}}
    assert a.get(NakAck4Layer).windows[B].high <= a.get(NakAck4Layer).spec.capacity
    net.policy = without((Nak, Whole), B)
    a.receive(Whole(last, last), B)
    assert unacked(a) == {last: {C}}


@pytest.mark.parametrize(
    "name", ["ack_timeout", "receive_timeout", "attempts", "max_unacked", "max_waiting_bytes"]
)
def test_settings_that_make_no_sense_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        LargeMessages(**{name: 0})


def test_a_reminder_names_no_more_messages_than_a_frame_may_list() -> None:
    large = LargeMessages(max_unacked=9_000)
    _, (a, _) = climbers(2, large, Fragment(), NakAck4(retain=False), Unicast(), mtu=520_000)
    layer = a.get(LargeMessagesLayer)
    for last in range(1, 6_001):
        layer.sent(last)
    a.env.now += 2 * large.ack_timeout
    layer.on_timer("remind")
    (reminder,) = [frame for _, frame in a.env.out.frames if isinstance(frame, Unacked)]
    assert decode_frame(encode_frame(reminder)) == reminder
    assert len(reminder.seqnos) > 4_000
