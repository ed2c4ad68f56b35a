"""Total order in simulated groups: one order everywhere, whatever happens to members."""

import random
from collections.abc import Callable, Sequence

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError
from ringcast.layers.compress.layer import Compress
from ringcast.layers.large import LargeMessages
from ringcast.layers.majority import Majority
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


def under_load(world: World, steps: int, pause: float) -> None:
    """Let every member send now and then, while its queue is not long."""
    rng = random.Random(steps)
    for _ in range(steps):
        for member in world.running:
            if member.view is not None and member.queued < 100:
                member.send([b"{price: %d}" % rng.randrange(99)] * rng.choice((1, 1, 20)))
        world.run(pause)


def cut_pairs(world: World) -> None:
    """One pair of members after the other does not hear each other, or one of them does not."""
    rng = random.Random(5)
    for _ in range(4):
        one, other = rng.sample(world.running, 2)
        ways = [world.link(one, other), world.link(other, one)][: rng.choice((1, 2))]
        for way in ways:
            way.loss = 1.0
        under_load(world, 15, rng.choice((0.002, 0.1, 0.3)))
        for way in ways:
            way.loss = world.loss
        under_load(world, 5, 0.05)


def merge_again_and_again(world: World) -> None:
    """Two groups with a sequencer each become one while both send."""
    for sides in (("ab", "cde"), ("ace", "bd"), ("a", "bcde")):
        world.partition(*sides)
        under_load(world, 12, 0.2)
        world.heal()
        under_load(world, 12, 0.1)


def crash_in_a_row(world: World) -> None:
    """The next sequencer crashes before the group has noticed that the last one did."""
    for name, pause in (("a", 0.001), ("b", 1.5), ("c", 2.0)):
        under_load(world, 20, 0.002)
        world.members[name].crash()
        world.run(pause)
    world.start("f")
    under_load(world, 30, 0.05)


def restart_members(world: World) -> None:
    """Members crash and come back at once, at the same place, the sequencer among them."""
    for name, pause in (("a", 0.0), ("c", 0.01), ("b", 2.0), ("a", 0.5)):
        under_load(world, 20, 0.002)
        world.run(pause)
        world.members[name].restart()
        under_load(world, 10, 0.05)


@pytest.mark.parametrize("added", [(), (Compress(algorithm="zlib", threshold=1), Majority())])
@pytest.mark.parametrize(
    "happens", [cut_pairs, merge_again_and_again, crash_in_a_row, restart_members]
)
def test_the_order_survives(happens: Callable[[World], None], added: tuple[Spec, ...]) -> None:
    spec = presets.lan().with_total_order().replace("NakAck4", capacity=64).insert(*added)
    world = World(seed=8, spec=spec, loss=0.05)
    world.join(*"abcde")
    happens(world)
    world.run_until(lambda: world.united, 60, "one view")
    if all(not isinstance(protocol, Majority) for protocol in spec):
        for member in world.running:
            member.send([b"end"] * 5)
        world.settle(60)
        ends = {tuple(order_of(member)[-20:]) for member in world.running}
        assert len(ends) == 1
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
