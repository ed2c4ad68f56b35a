"""Bounded blocking: past its time a message goes out without credits, alone or in fragments."""

from ringcast.layers.flow.layer import Flow, FlowLayer
from ringcast.layers.fragment.layer import Fragment, FragmentLayer
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.unicast import Unicast
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers

CREDITS = 1_000


def flow_of(member: Climber) -> FlowLayer:
    return member.get(FlowLayer)


def test_past_its_time_a_message_goes_out_without_credits() -> None:
    flow = Flow(max_credits=CREDITS, max_block_times="100:10,1000:100")
    net, (a, b, c) = climbers(3, flow, NakAck4(), Unicast(), mtu=5_000)
    c.is_slow = True
    a.send([bytes(1_000), bytes(100), bytes(100), bytes(500), bytes(1_001)])
    start = net.now
    net.run(0.0)
    arrivals = []
    while len(b.messages) < 4:
        before = len(b.messages)
        net.step()
        arrivals += [round(net.now - start, 3)] * (len(b.messages) - before)
    assert arrivals == [0.001, 0.011, 0.021, 0.121]
    assert a.env.counters["sent_without_credits"] == 3
    net.run(10.0)
    assert len(b.messages) == 4  # The last one is larger than any step: it waits for credits.
    assert flow_of(a).holding == 1
    c.is_slow = False
    net.run(1.0)
    assert [len(p) for p in c.payloads(A)] == [1_000, 100, 100, 500, 1_001]


def test_bounded_blocking_lets_large_messages_through_fragment_by_fragment() -> None:
    flow = Flow(max_credits=CREDITS, max_block_times="2000:20")
    specs = (Fragment(), flow, NakAck4(), Unicast())
    net, (a, b, c) = climbers(3, *specs)
    c.is_slow = True
    message = bytes(range(256)) * 40
    a.send([message, b"tail", message])
    net.run(2.0)
    assert b.payloads(A) == [message, b"tail", message]
    assert a.payloads(A) == [message, b"tail", message]
    assert a.get(FragmentLayer).holding == 0


def test_a_group_of_one_sends_itself_any_number_of_fragments() -> None:
    flow = Flow(max_credits=100, max_block_times="1000:5")
    net, (a,) = climbers(1, Fragment(frag_size=100), flow, NakAck4(capacity=2), Unicast())
    message = bytes(range(250)) * 1_000
    a.is_slow = True
    a.send([bytes(100), message, b"tail"])
    assert flow_of(a).holding == 1
    a.is_slow = False
    net.settle()
    assert a.payloads(A) == [bytes(100), message, b"tail"]


def test_a_newcomer_gets_a_message_whole_of_which_a_fragment_waited_for_credits() -> None:
    flow = Flow(max_credits=CREDITS, max_block_times="2000:500")
    specs = (Fragment(), flow, NakAck4(), Unicast())
    net, (a, b, c, d) = climbers(4, *specs, installed=False)
    net.install(A, B, C)
    c.is_slow = True
    message = bytes(range(250)) * 10
    a.send([b"first", message])
    net.run(0.1)
    assert flow_of(a).holding == 1
    net.install(A, B, C, D)
    c.is_slow = False
    net.run(5.0)
    assert d.payloads(A) == [message]
    assert b.payloads(A) == c.payloads(A) == [b"first", message]
    assert d.events == []


def test_what_went_out_past_its_time_is_not_forgiven() -> None:
    flow = Flow(max_credits=CREDITS, max_block_times="100:10")
    net, (a, _, c) = climbers(3, flow, NakAck4(), Unicast(), mtu=5_000)
    c.is_slow = True
    a.send([bytes(1_000), *[bytes(100)] * 15])
    net.run(0.5)
    assert a.env.counters["sent_without_credits"] == 15
    assert net.sent["ASK"] > 0
    c.take(1)  # That is all that was asked about.
    net.run(0.01)
    assert flow_of(a).credits <= 0
    assert flow_of(c).sources[A].waiting == 1_500 <= flow_of(a).allowed(flow_of(c))
    c.is_slow = False
    net.settle()
    assert flow_of(a).credits == CREDITS
