"""Total order in simulated groups: one order everywhere, whatever happens to members."""

from collections.abc import Sequence

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.errors import ConfigError
from ringcast.layers.large import LargeMessages
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.sequencer import Sequencer, SequencerLayer
from ringcast.sim import Member, World
from ringcast.spec import StackSpec

Order = Sequence[tuple[Address, int]]


def order_of(member: Member) -> Order:
    """What an application was given, message by message."""
    return [(message.sender, message.seqno) for message in member.delivered]


def ordered(seed: int = 1, loss: float = 0.0) -> World:
    return World(seed=seed, spec=presets.lan().with_total_order(), loss=loss)


def test_without_it_members_disagree() -> None:
    """The group of the next test, to show that the order is not a coincidence."""
    world = World(seed=1, spec=presets.lan(), loss=0.05)
    members = world.join("a", "b", "c")
    for _ in range(20):
        for member in members:
            member.send([b"x"] * 5)
        world.run(0.001)
    world.settle()
    assert order_of(members[0]) != order_of(members[1])


def test_all_members_deliver_in_one_order() -> None:
    world = ordered(loss=0.05)
    members = world.join("a", "b", "c")
    for _ in range(20):
        for member in members:
            member.send([b"x"] * 5)
        world.run(0.001)
    world.settle()
    assert len(order_of(members[0])) == 300
    assert order_of(members[0]) == order_of(members[1]) == order_of(members[2])
    assert world.check() == []


@pytest.mark.slow
def test_five_senders_a_killed_sequencer_and_a_join_under_load() -> None:
    world = ordered(seed=7, loss=0.05)
    members = world.join("a", "b", "c", "d", "e")
    for step in range(200):
        for number, member in enumerate(members):
            if member.alive:
                member.send([b"%d" % number * 20] * 100)
        world.run(0.002)
        if step == 40:
            world.start("f")
        if step == 140:
            members[0].crash()
    world.settle(60)
    survivors = members[1:]
    assert len(order_of(survivors[0])) >= 80_000
    assert all(order_of(member) == order_of(survivors[0]) for member in survivors)
    late = order_of(world.members["f"])
    assert late
    assert late == order_of(survivors[0])[-len(late) :]
    assert world.check() == []


def test_a_sequencer_that_sends_alone_sends_no_orders() -> None:
    world = ordered()
    a, b, _ = world.join("a", "b", "c")
    for _ in range(50):
        a.send([b"x"] * 10)
        world.run(0.001)
    world.settle()
    assert len(order_of(b)) == 500
    assert a.stack.counters["orders_sent"] == 0


def test_orders_are_few_when_others_send_much() -> None:
    world = ordered()
    a, b, _ = world.join("a", "b", "c")
    b.send([b"x" * 100] * 10_000)
    world.settle()
    assert len(order_of(a)) == 10_000
    assert 1 <= a.stack.counters["orders_sent"] <= 100


def test_messages_larger_than_the_window_do_not_lock_the_group_up() -> None:
    spec = presets.lan().with_total_order().replace("NakAck4", capacity=2, ack_threshold=1)
    world = World(seed=3, spec=spec.replace("Wire", mtu=1_400), loss=0.02)
    members = world.join("a", "b", "c")
    for member in members:
        member.send([bytes(20_000), b"small"])
    world.settle(120)
    assert all(order_of(member) == order_of(members[0]) for member in members)
    assert len(order_of(members[0])) == 6
    assert world.check() == []


def test_partitions_have_an_order_each_and_one_after_the_merge() -> None:
    world = ordered(seed=5, loss=0.02)
    members = world.join("a", "b", "c", "d")
    a, b, c, d = members
    world.partition(["a", "b"], ["c", "d"])
    for _ in range(100):
        for member in members:
            member.send(b"apart")
        world.run(0.1)
    world.heal()
    world.run_until(lambda: world.united, 60, "one view")
    for _ in range(10):
        for member in members:
            member.send(b"together")
    world.settle(60)
    assert order_of(a) == order_of(b)
    assert order_of(c) == order_of(d)
    assert order_of(a)[-40:] == order_of(c)[-40:]
    assert world.check() == []


def test_the_check_notices_an_order_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the script, messages are delivered as they arrive."""
    monkeypatch.setattr(SequencerLayer, "_on_arrived", lambda self, _, item: self._pass_up(item))
    world = ordered(loss=0.05)
    members = world.join("a", "b", "c")
    for _ in range(20):
        for member in members:
            member.send([b"x"] * 5)
        world.run(0.001)
    world.settle()
    assert any("where" in violation.text for violation in world.check())


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (presets.lan().replace(NakAck4(retain=False)), "survivors that agree"),
        (presets.lan().replace(NakAck4(loopback=False)), "loopback"),
        (presets.lan().insert(LargeMessages()), "leave out LargeMessages"),
    ],
)
def test_stacks_without_agreement_are_refused(spec: StackSpec, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        spec.insert(Sequencer())
