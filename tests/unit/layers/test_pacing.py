"""Pacing: no more is under way than sockets hold, few are asked, and nobody is waited for long."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.model.events import Skipped
from ringcast.core.wire.frames import Credit, CreditRequest, Data
from ringcast.errors import ConfigError
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.pacing import PASSED_OVER_TIMEOUTS, Pacing, PacingLayer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import LATENCY, Flight, Net, Policy, bad_network, clean, lose
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers

LIMIT = 1_200
GIVE_UP = Pacing().give_up
MESSAGES: list[Payload] = [bytes([n]) * 100 for n in range(100)]


def group(
    count: int = 3, *, asked: int = 4, installed: bool = True, tick: float = 0.1
) -> tuple[Net, list[Climber]]:
    pace, window = Pacing(max_bytes=LIMIT, asked=asked), NakAck4(xmit_interval=tick)
    return climbers(count, pace, window, Unicast(), mtu=5_000, installed=installed)


def pace_of(member: Climber) -> PacingLayer:
    return member.get(PacingLayer)


def still(*members: Address) -> Policy:
    """A network on which some get no messages to the group."""

    def policy(flight: Flight) -> Sequence[float]:
        return () if flight.target in members and isinstance(flight.frame, Data) else clean(flight)

    return policy


def test_no_more_is_under_way_than_may_and_everything_gets_through() -> None:
    net, (a, b, c) = group()
    a.send(MESSAGES)
    most = 0
    while len(c.messages) < len(MESSAGES):
        net.step()
        most = max(most, pace_of(a).under_way)
    assert LIMIT - 100 <= most <= LIMIT
    assert b.payloads(A) == c.payloads(A) == MESSAGES


def test_the_sender_goes_on_while_an_answer_is_on_its_way() -> None:
    net, (a, b, _) = group()
    a.send(MESSAGES)
    start = net.now
    net.run(0.0)
    while len(b.messages) < len(MESSAGES):
        net.step()
    round_trips = 100 * len(MESSAGES) / LIMIT
    assert net.now - start <= (round_trips + 1) * 2 * LATENCY


def test_few_are_asked_and_all_of_them_in_turn() -> None:
    net, (a, *others) = group(9, asked=3)
    asked: Counter[Address] = Counter()

    def policy(flight: Flight) -> Sequence[float]:
        if isinstance(flight.frame, CreditRequest):
            asked[flight.target] += 1
        return clean(flight)

    net.policy = policy
    a.send(MESSAGES)
    net.settle()
    assert sum(asked.values()) == net.sent["CREDIT"] == 3 * (len(MESSAGES) // 4)
    assert set(asked) == {other.address for other in others}
    assert all(other.payloads(A) == MESSAGES for other in others)


def test_the_slowest_is_asked_again_and_again_and_sets_the_pace() -> None:
    net, (a, *others) = group(9, asked=3)
    asked: Counter[Address] = Counter()

    def policy(flight: Flight) -> Sequence[float]:
        if isinstance(flight.frame, CreditRequest):
            asked[flight.target] += 1
        return (0.01,) if flight.target == D else clean(flight)

    net.policy = policy
    a.send(MESSAGES)
    start = net.now
    net.settle()
    assert asked[D] > 0.7 * net.sent["ASK"] / 3
    assert net.now - start > 0.5 * 0.01 * 100 * len(MESSAGES) / LIMIT
    assert a.env.counters["passed_over"] == 0
    assert others[2].payloads(A) == MESSAGES


def test_one_that_stands_still_is_passed_over_once_and_then_left_alone() -> None:
    net, (a, b, c) = group()
    net.policy = still(C)
    a.send(MESSAGES)
    net.run(2 * GIVE_UP)
    assert b.payloads(A) == MESSAGES
    assert a.env.counters["passed_over"] == 1
    assert c.payloads(A) == []
    net.policy = clean
    net.run((PASSED_OVER_TIMEOUTS + 1) * GIVE_UP)
    assert c.payloads(A) == MESSAGES
    a.send(MESSAGES)
    net.settle()
    assert a.env.counters["passed_over"] == 1


def test_when_all_are_passed_over_one_is_asked_all_the_same() -> None:
    net, (a, b, c) = group()
    net.policy = still(B, C)
    a.send(MESSAGES)
    net.run(2 * GIVE_UP)
    net.policy = clean
    most = 0
    while len(b.messages) < len(MESSAGES):
        net.step()
        most = max(most, pace_of(a).under_way)
    assert most <= LIMIT
    net.settle()
    assert b.payloads(A) == c.payloads(A) == MESSAGES


@pytest.mark.parametrize("kind", [CreditRequest, Credit])
def test_a_lost_request_or_answer_is_made_good(kind: type) -> None:
    net, (a, b, _) = group()
    net.policy = lose(lambda frame: isinstance(frame, kind), 4)
    a.send(MESSAGES)
    net.run(2 * GIVE_UP)
    assert b.payloads(A) == MESSAGES
    assert a.env.counters["passed_over"] == 0


def test_over_a_bad_network_all_arrives() -> None:
    net, members = group(4, asked=2)
    net.policy = bad_network(5, loss=0.2, copies=0.2, spread=0.01)
    for member in members:
        member.send(MESSAGES)
    net.settle()
    for member in members:
        assert all(member.payloads(other.address) == MESSAGES for other in members)


@pytest.mark.parametrize("end", ["leaves", "is suspected"])
def test_a_sender_does_not_wait_for_a_member_that_left(end: str) -> None:
    net, (a, b, _) = group()
    net.policy = still(C)
    a.send(MESSAGES)
    net.run(0.01)
    assert pace_of(a).waits_for == (C,)
    assert a.waiting > 0
    if end == "leaves":
        net.install(A, B, on=[A, B])
    else:
        a.suspect(C, True)
    net.run(0.01)
    assert C not in pace_of(a).waits_for
    assert len(b.messages) > LIMIT // 100


def test_a_group_of_one_waits_for_no_answer() -> None:
    net, (a,) = group(1)
    a.send(MESSAGES)
    net.settle()
    assert a.payloads(A) == MESSAGES
    assert net.sent["ASK"] == 0
    assert pace_of(a).under_way < LIMIT


def test_a_newcomer_answers_for_what_it_gets() -> None:
    net, (a, _, c) = group(installed=False)
    net.install(A, B)
    a.send(MESSAGES)
    net.run(0.01)
    net.install(A, B, C)
    a.send(MESSAGES)
    net.settle()
    assert a.env.counters["passed_over"] == 0
    assert c.payloads(A)[-1] == MESSAGES[-1]


def test_one_that_only_skips_is_not_asked_again_for_that() -> None:
    net, (a, b, c) = group()
    net.policy = still(C)
    a.send(MESSAGES)
    net.run(1.5 * GIVE_UP)
    assert a.env.counters["passed_over"] == 1
    a.get(NakAck4Layer).release(C)
    net.run(0.5)  # It is told that they will not come.
    assert len(c.told(Skipped)) == 1
    a.send(MESSAGES)
    net.run(0.5 * GIVE_UP)
    assert b.payloads(A) == MESSAGES + MESSAGES
    assert a.env.counters["passed_over"] == 1


def test_one_that_lacks_something_answers_for_what_lies_behind_it() -> None:
    net, (a, b, c) = group()

    def policy(flight: Flight) -> Sequence[float]:
        is_lost = isinstance(flight.frame, Data) and flight.frame.first == 2
        return () if is_lost and flight.target == C else clean(flight)

    net.policy = policy
    a.send(MESSAGES)
    net.run(len(MESSAGES) * GIVE_UP / 4)  # Each request is answered when it is repeated.
    assert b.payloads(A) == MESSAGES
    assert c.payloads(A) == MESSAGES[:1]
    assert a.env.counters["passed_over"] == 0


def test_a_stranger_is_answered_at_once_and_messages_to_one_member_are_not_counted() -> None:
    net, (a, b, _) = group()
    a.receive(CreditRequest(1 << 60, 0, 0), Address(99))
    assert a.env.out.frames == [(Address(99), Credit(1 << 60))]
    a.env.out.frames.clear()
    a.send(MESSAGES, B)
    net.settle()
    assert b.payloads(A, B) == MESSAGES
    assert net.sent["ASK"] == 0
    a.receive(Credit(1 << 60), B)
    assert pace_of(a).under_way == 0


@pytest.mark.parametrize("name", ["max_bytes", "asked", "give_up"])
def test_settings_that_make_no_sense_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Pacing(**{name: 0})


def test_a_request_that_overtakes_the_messages_is_no_sign_of_a_loss() -> None:
    net, (a, b, _) = group()
    net.policy = lambda flight: (0.001 if isinstance(flight.frame, CreditRequest) else 0.003,)
    a.send(MESSAGES)
    net.settle()
    assert b.payloads(A) == MESSAGES
    assert net.sent["NAK"] == 0


def test_the_last_message_that_was_lost_is_asked_for_when_the_request_is_repeated() -> None:
    net, (a, b, c) = group(tick=1.0)
    last = LIMIT // 100
    first = [True]

    def policy(flight: Flight) -> Sequence[float]:
        frame = flight.frame
        if isinstance(frame, Data) and flight.target == C and frame.first == last and first:
            first.clear()
            return ()
        return clean(flight)

    net.policy = policy
    a.send(MESSAGES)
    net.run(0.08)  # Sooner than anybody announces it.
    assert b.payloads(A) == c.payloads(A) == MESSAGES
    assert (net.sent["LAST"], net.sent["NAK"]) == (0, 1)
    assert a.env.counters["passed_over"] == 0


def test_what_was_lost_does_not_count_as_the_time_that_an_answer_takes() -> None:
    net, (a, b, _) = group()
    dice = random.Random(5)

    def policy(flight: Flight) -> Sequence[float]:
        is_pace = isinstance(flight.frame, Credit | CreditRequest)
        return () if is_pace and dice.random() < 0.15 else (0.01,)

    net.policy = policy
    messages = MESSAGES * 20
    a.send(messages)
    start = net.now
    while len(b.messages) < len(messages):
        net.step()
    questions = 100 * len(messages) / (LIMIT / 3)
    assert net.now - start <= questions * 0.012
