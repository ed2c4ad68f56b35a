"""Credits: a slow application stops its senders, and nothing else does, for long."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.stack.part import Installation
from ringcast.core.wire.frames import Credit, CreditRequest, Data
from ringcast.errors import ConfigError
from ringcast.layers.flow.layer import Flow, FlowLayer
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Flight, Net, bad_network, clean, lose
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers

CREDITS = 1_000
MESSAGE: Payload = bytes(100)


def group(
    count: int = 3, *, flow: Flow | None = None, installed: bool = True
) -> tuple[Net, list[Climber]]:
    flow = flow or Flow(max_credits=CREDITS)
    return climbers(count, flow, NakAck4(), Unicast(), mtu=5_000, installed=installed)


def flow_of(member: Climber) -> FlowLayer:
    return member.get(FlowLayer)


def within_bounds(*members: Climber) -> bool:
    """Whether no application has more of a sender before it than it may."""
    flows = {member.address: flow_of(member) for member in members}
    return all(
        source.waiting <= flows[sender].allowed(flow)
        for flow in flows.values()
        for sender, source in flow.sources.items()
        if sender in flows
    )


# --- a round of credits --------------------------------------------------------------------------


def test_the_message_that_uses_the_credits_up_is_sent_and_the_request_goes_behind_it() -> None:
    _, (a, _, _) = group()
    a.send([bytes(999), bytes(999), bytes(999)])
    frames = [frame for _, frame in a.env.out.frames]
    assert [type(frame) for frame in frames] == [Data, Data, CreditRequest]
    assert frames[-1] == CreditRequest(2, 1_998, 0)
    assert a.waiting == 1
    assert flow_of(a).missing == {A, B, C}


def test_all_messages_get_through_and_every_round_costs_one_answer_a_receiver() -> None:
    net, (a, b, c) = group()
    messages = [bytes([n]) * 100 for n in range(100)]
    a.send(messages)
    net.settle()
    assert a.payloads(A) == b.payloads(A) == c.payloads(A) == messages
    assert net.sent["ASK"] == 10
    assert net.sent["CREDIT"] == 20
    assert flow_of(a).credits == CREDITS


def test_a_slow_application_stops_its_sender_and_bounds_what_waits_for_it() -> None:
    net, (a, b, c) = group()
    c.is_slow = True
    a.send([MESSAGE] * 100)
    net.run(60.0)
    assert len(b.payloads(A)) == CREDITS // 100
    assert flow_of(c).sources[A].waiting == CREDITS
    assert flow_of(a).missing == {C}
    assert within_bounds(a, b, c)
    c.is_slow = False
    net.settle()
    assert len(c.payloads(A)) == 100


def test_an_application_that_takes_message_by_message_is_never_given_more_than_the_bound() -> None:
    net, (a, b, c) = group()
    c.is_slow = True
    a.send([bytes(130)] * 60)
    b.send([bytes(170)] * 60)
    for _ in range(200):
        net.run(0.05)
        c.take(1)
        for sender in (A, B):
            assert flow_of(c).sources[sender].waiting < CREDITS + 170
        assert within_bounds(a, b, c)
    assert len(c.payloads(A)) == len(c.payloads(B)) == 60


def test_a_slow_own_application_stops_its_own_messages_too() -> None:
    net, (a, _, _) = group()
    a.is_slow = True
    a.send([MESSAGE] * 30)
    net.run(30.0)
    assert a.waiting == 20
    a.is_slow = False
    net.settle()
    assert a.waiting == 0


def test_one_that_wants_no_own_messages_does_not_wait_for_itself() -> None:
    specs = (Flow(max_credits=CREDITS), NakAck4(loopback=False), Unicast())
    net, (a, b) = climbers(2, *specs, mtu=5_000)
    a.send([MESSAGE] * 100)
    net.settle()
    assert len(b.payloads(A)) == 100


def test_a_group_of_one_never_waits() -> None:
    net, (a,) = group(1)
    a.send([MESSAGE] * 100)
    assert len(a.payloads(A)) == 0
    net.settle()
    assert len(a.payloads(A)) == 100
    assert not net.sent["ASK"]


def test_messages_to_one_member_cost_no_credits() -> None:
    net, (a, b, _) = group()
    a.send([MESSAGE] * 50, to=B)
    assert flow_of(a).credits == CREDITS
    net.settle()
    assert len(b.payloads(A, B)) == 50


def test_two_that_answer_each_message_from_where_they_receive_do_not_lock_each_other() -> None:
    net, (a, b) = group(2)
    a.send([MESSAGE] * 30)
    b.send([MESSAGE] * 30)
    seen = {A: 0, B: 0}
    while min(seen.values()) < 300:
        net.step()
        for member, other in ((a, b), (b, a)):
            new = len(member.payloads(other.address)) - seen[member.address]
            seen[member.address] += new
            member.send([MESSAGE] * new)
        assert net.now < 60.0
    assert within_bounds(a, b)


# --- what is lost --------------------------------------------------------------------------------


def test_a_lost_request_or_answer_is_asked_for_again() -> None:
    count = [0]

    def policy(flight: Flight) -> tuple[float, ...]:
        if isinstance(flight.frame, Credit | CreditRequest):
            count[0] += 1
            if count[0] % 3 == 0:
                return ()
        return tuple(clean(flight))

    net, (a, b, c) = group()
    net.policy = policy
    a.send([MESSAGE] * 200)
    assert net.settle() < 20.0
    assert len(b.payloads(A)) == len(c.payloads(A)) == 200
    assert a.env.counters["credit_requests_repeated"] > 0


def no_data_for_c(flight: Flight) -> tuple[float, ...]:
    return () if flight.target == C and isinstance(flight.frame, Data) else (0.001,)


def test_a_receiver_that_never_gets_enough_answers_the_urgent_request() -> None:
    net, (a, b, c) = group(flow=Flow(max_credits=CREDITS, max_block_time=0.5))
    net.policy = no_data_for_c
    a.send([MESSAGE] * 30)
    net.run(0.45)
    assert a.waiting == 20
    net.run(0.1)
    assert a.waiting == 10
    net.run(0.6)
    assert a.waiting == 0
    assert len(b.payloads(A)) == 30
    assert c.env.counters["credits_forced"] == 2
    net.policy = clean
    net.run(5.0)
    assert len(c.payloads(A)) == 30
    assert within_bounds(a, b, c)
    assert flow_of(c).sources[A].forced == 0


def test_an_urgent_request_does_not_hurry_an_application_that_is_behind() -> None:
    net, (a, _, c) = group(flow=Flow(max_credits=CREDITS, max_block_time=0.5))
    c.is_slow = True
    a.send([MESSAGE] * 30)
    net.run(20.0)
    assert a.waiting == 20
    assert flow_of(c).sources[A].urgent
    c.is_slow = False
    net.run(0.1)
    assert a.waiting == 0


def test_messages_that_were_skipped_are_not_waited_for() -> None:
    net, (a, b, c) = group()
    net.policy = lose(lambda frame: isinstance(frame, Data) and frame.first == 3, 1_000_000)
    for _ in range(10):
        a.top.down(Batch(A, [MESSAGE], 100))
    a.send([MESSAGE] * 5)
    net.run(0.3)
    for member in (b, c):
        member.get(NakAck4Layer).give_up(A, 3, 3, "for this test")
    net.run(0.3)
    assert a.waiting == 0
    assert c.events == [Skipped(A, 3, 3, "for this test")]
    assert len(c.payloads(A)) == 14


@pytest.mark.parametrize("seed", range(5))
def test_over_a_bad_network_all_is_delivered_within_the_bounds(seed: int) -> None:
    net, (a, b, c) = group()
    net.policy = bad_network(seed, loss=0.15, copies=0.1, spread=0.004)
    a.send([bytes(70)] * 300)
    b.send([bytes(330)] * 100)
    while a.waiting or b.waiting:
        net.step()
        assert within_bounds(a, b, c)
    net.settle()
    assert len(c.payloads(A)) == 300
    assert len(c.payloads(B)) == 100


# --- members come and go -------------------------------------------------------------------------


def blocked_by_c() -> tuple[Net, list[Climber]]:
    net, members = group()
    members[2].is_slow = True
    members[0].send([MESSAGE] * 30)
    net.run(5.0)
    assert flow_of(members[0]).missing == {C}
    return net, members


def test_the_last_creditor_leaves_and_the_sender_goes_on() -> None:
    net, (a, b, _) = blocked_by_c()
    net.install(A, B, on=[A, B])
    net.run(1.0)
    assert a.waiting == 0
    assert len(b.payloads(A)) == 30


def test_the_last_creditor_is_suspected_and_the_sender_goes_on() -> None:
    net, (a, b, c) = blocked_by_c()
    a.suspect(C, True)
    net.run(1.0)
    assert a.waiting == 0
    assert within_bounds(a, b, c)


def test_a_suspicion_that_is_withdrawn_makes_the_sender_wait_again() -> None:
    net, (a, b, c) = blocked_by_c()
    a.suspect(C, True)
    a.suspect(C, False)
    net.run(5.0)
    assert a.waiting == 10
    assert within_bounds(a, b, c)
    c.is_slow = False
    net.run(5.0)
    assert a.waiting == 0
    a.send([MESSAGE] * 50)
    c.is_slow = True
    net.run(5.0)
    assert within_bounds(a, b, c)


def test_a_member_that_is_released_is_waited_for_again_when_it_has_caught_up() -> None:
    net, (a, b, c) = blocked_by_c()
    assert flow_of(a).positions() == {A: 1, B: 1, C: 0}
    flow_of(a).release(C)
    net.run(5.0)
    assert a.waiting == 0
    assert flow_of(a).positions() == {A: 3, B: 3} or flow_of(a).credits > 0
    assert within_bounds(a, b, c)
    c.is_slow = False
    net.run(5.0)
    a.send([MESSAGE] * 10)
    net.run(1.0)
    c.is_slow = True
    a.send([MESSAGE] * 20)
    net.run(5.0)
    assert flow_of(a).missing == {C}


def test_a_newcomer_has_full_credit_both_ways_and_answers_only_for_what_it_saw() -> None:
    net, (a, b, c, d) = group(4, installed=False)
    net.install(A, B, C)
    a.send([MESSAGE] * 9)
    net.run(1.0)
    d.is_slow = True
    net.install(A, B, C, D)
    a.send([MESSAGE] * 30)
    net.run(5.0)
    assert flow_of(a).missing == {D}
    assert flow_of(d).sources[A].waiting == 100
    assert within_bounds(a, b, c, d)
    d.send([MESSAGE] * 5)
    d.is_slow = False
    net.settle()
    assert len(d.payloads(A)) == 30
    assert len(a.payloads(D)) == 5


def test_a_request_of_an_unknown_member_is_granted() -> None:
    _, (a, _, _) = group()
    a.receive(CreditRequest(77, 5, 0), Address(99))
    assert a.env.out.frames == [(Address(99), Credit(77))]


def test_an_unknown_member_is_granted_one_round_and_more_only_where_it_is_urgent() -> None:
    _, (a, _, _) = group()
    newcomer = Address(99)
    for request in (
        CreditRequest(2, 300, 0),
        CreditRequest(2, 300, 0),  # The answer was lost.
        CreditRequest(4, 200, 0),  # It may fill the memory of a member that is late.
        CreditRequest(4, 200, 1),
    ):
        a.receive(request, newcomer)
    assert a.env.out.frames == [(newcomer, Credit(high)) for high in (2, 2, 4)]
    flow, view = flow_of(a), a.view
    assert view is not None
    starts = {**dict.fromkeys(view.members, 0), newcomer: 0}
    flow.on_view(Installation(view, view, starts, (newcomer,), ()))
    assert flow.sources[newcomer].forced == 500


def test_what_was_granted_to_a_member_of_the_next_view_may_come_on_top() -> None:
    _, (a, _, _) = group()
    newcomer = Address(99)
    a.receive(CreditRequest(77, 300, 0), newcomer)
    flow, view = flow_of(a), a.view
    assert view is not None
    starts = {**dict.fromkeys(view.members, 0), newcomer: 75}
    flow.on_view(Installation(view, view, starts, (newcomer,), ()))
    assert flow.sources[newcomer].forced == 300
    flow.taken(newcomer, 77)
    assert flow.sources[newcomer].forced == 0


def test_a_late_answer_to_an_earlier_round_counts_for_nothing() -> None:
    net, (a, _, _) = blocked_by_c()
    a.receive(Credit(9), C)
    assert flow_of(a).missing == {C}
    a.receive(Credit(10), Address(99))
    assert flow_of(a).missing == {C}
    a.receive(Credit(10), C)
    assert flow_of(a).missing == set()
    net.run(0.1)
    assert a.waiting == 10


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"max_credits": 0}, "max_credits"),
        ({"max_block_time": 0}, "max_block_time"),
        ({"ask_interval": 0}, "ask_interval"),
        ({"ask_interval": 3.0, "max_block_time": 2.0}, "ask_interval"),
        ({"max_block_times": "100:10,50:20"}, "max_block_times"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Flow(**settings)  # type: ignore[arg-type]


def test_the_window_below_still_says_no() -> None:
    specs = (Flow(max_credits=CREDITS), NakAck4(capacity=4), Unicast())
    net, (a, _, c) = climbers(3, *specs)
    c.is_slow = True
    a.send([b"x"] * 10)
    net.run(5.0)
    assert a.waiting == 6
    assert flow_of(a).credits > 0
    assert a.get(NakAck4Layer).positions()[C] == 0
