"""Multicast, as users rely on it: complete, in order, once, whatever the network does."""

from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Ack
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import Member, World
from ringcast.spec import StackSpec

BOTH = pytest.mark.parametrize("preset", [presets.lan, presets.stable], ids=["lan", "stable"])


def numbered(name: str, count: int) -> list[bytes]:
    return [f"{name}{number}".encode() for number in range(count)]


def given(member: Member, sender: Member) -> list[bytes]:
    return [bytes(m.payload) for m in member.delivered if m.sender == sender.me]


def expect_everything(world: World, sent: dict[Member, list[bytes]]) -> None:
    world.settle()
    for member in world.running:
        for sender, payloads in sent.items():
            assert given(member, sender) == payloads
    assert world.check() == []


@BOTH
def test_two_senders_and_three_members(preset: Callable[[], StackSpec]) -> None:
    world = World(seed=1, spec=preset())
    a, b, _ = world.join("a", "b", "c")
    sent = {a: numbered("a", 1000), b: numbered("b", 1000)}
    for sender, payloads in sent.items():
        for payload in payloads:
            sender.send(payload)
    expect_everything(world, sent)


@BOTH
def test_datagrams_that_all_arrive_twice_are_delivered_once(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(seed=2, spec=preset(), duplicate=1.0)
    a, b, _ = world.join("a", "b", "c")
    sent = {a: numbered("a", 500), b: numbered("b", 500)}
    for sender, payloads in sent.items():
        for payload in payloads:
            sender.send(payload)
            world.run(0.0001)
    expect_everything(world, sent)


@BOTH
def test_a_member_that_the_sender_cannot_reach_gets_the_messages_from_another(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(seed=3, spec=preset())
    a, b, c = world.join("a", "b", "c")
    view = c.view
    world.drop(lambda f: f.kind == "DATA" and (f.source, f.target) == ("a", "c"))
    payloads = numbered("a", 1000)
    for payload in payloads:
        a.send(payload)
    world.run(3.0)
    assert c.view == view
    expect_everything(world, {a: payloads})
    assert b.stack.counters["resent"] >= len(payloads)


@BOTH
@pytest.mark.parametrize(("source", "is_one_way"), [("a", True), ("b", True), ("b", False)])
def test_a_member_that_does_not_hear_a_sender_at_all_gets_its_messages_from_another(
    preset: Callable[[], StackSpec], source: str, is_one_way: bool
) -> None:
    """It cannot know that they exist, nor does any announcement reach it."""
    world = World(seed=3, spec=preset())
    world.join("a", "b", "c", "d")
    sender, receiver = world.members[source], world.members["d"]
    view = receiver.view
    world.drop(lambda f: (f.source, f.target) == (source, "d"))
    if not is_one_way:
        world.drop(lambda f: (f.source, f.target) == ("d", source))
    payloads = numbered(source, 1000)
    for payload in payloads:
        sender.send(payload)
        world.run(0.001)
    world.run(2.0)
    assert receiver.view == view
    assert [message.payload for message in receiver.delivered] == payloads
    assert world.check() == []


@BOTH
def test_a_silent_sender_that_has_sent_nothing_is_no_reason_for_requests(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(seed=3, spec=preset())
    a, b, c = world.join("a", "b", "c")
    a.send(b"before")
    world.settle()
    world.drop(lambda f: (f.source, f.target) == ("a", "c"))
    questions = world.frames["KNOWN"]
    world.run(2.0)
    assert 1 <= world.frames["KNOWN"] - questions <= 4, "no answers: the others have no more"
    assert c.stack.counters["requested"] == 0
    assert len(b.delivered) == len(c.delivered) == 1


@pytest.mark.parametrize("preset", [presets.lan, presets.stable, presets.bulk])
@pytest.mark.parametrize("deaf", ["d", "abcd"])
def test_everything_arrives_where_multicast_no_longer_does(
    preset: Callable[[], StackSpec], deaf: str
) -> None:
    """A switch forgets who listens: unicast, and so all signs of life, still arrive."""
    world = World(seed=3, spec=preset())
    members = world.join("a", "b", "c", "d")
    view = members[0].view
    for source in "abcd":
        for target in deaf:
            world.link(source, target).multicast_loss = 1.0
    for member in members:
        member.send_many([bytes(1_000)] * 3_000)
    world.run(20.0)
    assert {member.view for member in members} == {view}
    assert [len(member.delivered) for member in members] == [12_000] * 4
    assert not any(member.blocked for member in members)
    assert world.check() == []


@BOTH
def test_everything_arrives_at_ten_percent_loss(preset: Callable[[], StackSpec]) -> None:
    world = World(seed=3, spec=preset(), loss=0.1)
    a, b, _ = world.join("a", "b", "c")
    sent = {a: numbered("a", 1000), b: numbered("b", 1000)}
    for sender, payloads in sent.items():
        for payload in payloads:
            sender.send(payload)
            world.run(0.0001)
    expect_everything(world, sent)


def test_half_of_everything_lost() -> None:
    world = World(seed=4, spec=presets.lan(), keep=False)
    a, *_ = world.join("a", "b", "c")
    world.loss = 0.5
    for number in range(500):
        a.send([b"%06d" % (number * 100 + i) for i in range(100)])
        world.run(0.001)
    world.settle()
    assert [len(member.delivered) for member in world.running] == [50_000] * 3
    assert world.frames["NAK"] < 5_000, "requests stay in proportion"
    assert world.check() == []


def test_the_last_five_of_ten_lost() -> None:
    world = World(seed=5, spec=presets.lan())
    a, _b, _c = world.join("a", "b", "c")
    payloads = numbered("a", 10)
    a.send(payloads[:5])
    world.run(0.01)
    rule = world.drop(lambda f: f.kind == "DATA" and any(n in f.seqnos for n in range(6, 11)))
    a.send(payloads[5:])
    world.run(0.01)
    rule.remove()
    assert rule.count == 2
    expect_everything(world, {a: payloads})


def test_the_last_message_and_its_first_announcement_lost() -> None:
    world = World(seed=6, spec=presets.lan())
    a, _b, _ = world.join("a", "b", "c")
    data = world.drop(lambda f: f.kind == "DATA" and f.target == "b")
    announced = world.drop(lambda f: f.kind == "LAST" and f.target == "b" and announced.count < 1)
    a.send(b"only")
    world.run(0.05)
    data.remove()
    expect_everything(world, {a: [b"only"]})
    assert announced.count == 1


def test_the_last_ack_lost() -> None:
    world = World(seed=7, spec=presets.lan())
    a, *_ = world.join("a", "b", "c")
    acks = world.drop(lambda f: f.kind == "ACK" and f.source == "b" and acks.count < 1)
    a.send(numbered("a", 10))
    world.run_until(lambda: acks.count == 1, seconds=5)
    assert a.probe.low < a.probe.high
    world.settle()
    assert a.probe.low == a.probe.high == 10


def test_a_silent_member_blocks_the_sender_until_a_view_without_it() -> None:
    world = World(seed=8, spec=presets.lan().replace(NakAck4(capacity=5)))
    a, b, c = world.join("a", "b", "c")
    c.pause()
    for number in range(20):
        a.send(b"%d" % number)
    world.run(1.0)
    assert a.blocked
    assert a.probe.high - a.probe.low == 5
    assert not a.try_send(b"more")
    world.run_until(lambda: a.view is not None and c.me not in a.view, seconds=30)
    world.settle()
    assert a.queued == 0
    assert len(b.delivered) == 20
    assert world.check() == []


def test_a_busy_application_stops_its_senders_and_not_the_group() -> None:
    world = World(seed=9, spec=presets.lan().replace(NakAck4(capacity=10)))
    a, b, _ = world.join("a", "b", "c")
    b.busy()
    a.send(numbered("a", 100))
    world.run(20.0)
    assert a.blocked
    assert a.probe.outstanding == 10
    assert a.view is not None
    assert len(a.view) == 3, "b is alive, only its application is busy"
    b.idle()
    expect_everything(world, {a: numbered("a", 100)})


def test_one_member_alone_never_blocks() -> None:
    world = World(seed=10, spec=presets.lan().replace(NakAck4(capacity=10)))
    (a,) = world.join("a")
    for number in range(1000):
        assert a.try_send(b"%d" % number)
    assert len(a.delivered) == 1000


def test_stale_duplicate_and_foreign_acks_change_nothing() -> None:
    world = World(seed=11, spec=presets.lan().replace(NakAck4(capacity=10)))
    a, b, c = world.join("a", "b", "c")
    a.send(numbered("a", 10))
    world.settle()
    b.busy()
    a.send(numbered("b", 10))
    world.run(0.5)
    before = (a.probe.low, a.probe.high)
    for source, delivered in ((c.me, 3), (c.me, 20), (Address(999), 20), (a.me, 20), (b.me, 10)):
        world.inject(b"".join(encode(group_id("sim"), source, [Ack(delivered)])), a)
    world.run(0.1)
    assert (a.probe.low, a.probe.high) == before
    b.idle()
    world.settle()
    assert world.check() == []


def test_a_late_ack_of_a_departed_member_does_not_hold_the_sender() -> None:
    world = World(seed=12, spec=presets.lan().replace(NakAck4(capacity=10)))
    a, _b, c = world.join("a", "b", "c")
    c.crash()
    world.settle()
    world.inject(b"".join(encode(group_id("sim"), c.me, [Ack(1)])), a)
    a.send(numbered("a", 110))
    expect_everything(world, {a: numbered("a", 110)})


def test_a_receiver_whose_window_is_smaller_than_the_senders() -> None:
    world = World(seed=13, spec=presets.lan())
    (a,) = world.join("a")
    (b,) = world.join("b", spec=presets.lan().replace(NakAck4(capacity=8)))
    payloads = numbered("a", 300)
    a.send(payloads)
    expect_everything(world, {a: payloads})
    assert b.probe.multicast.windows[a.me].overflows > 0


def test_twenty_joins_while_a_sender_runs_flat_out() -> None:
    world = World(seed=14, spec=presets.lan(), keep=False)
    a, _ = world.join("a", "b")
    run = [bytes(100)] * 64
    for number in range(20):
        for _ in range(50):
            a.send(run)
        before = a.probe.high
        joiner = world.start(f"j{number}")
        world.run_until(lambda j=joiner: j.view is not None, seconds=10)  # type: ignore[misc]
        for _ in range(50):
            a.send(run)
        world.run_until(lambda n=before: a.probe.high > n, seconds=10)  # type: ignore[misc]
    world.settle()
    assert world.united
    assert world.check() == []


def test_a_member_two_views_behind_is_given_nothing_of_the_view_between() -> None:
    world = World(1, presets.lan())
    a, b, _, d = world.join("a", "b", "c", "d")
    d.pause()
    rule = world.drop(lambda frame: frame.target == "d")
    world.run_until(lambda: len(a.view or ()) == 3, 20.0)
    a.busy()  # So that b's message stays in its window.
    b.send(b"of the view between")
    world.run(0.5)
    world.start("e")
    world.run_until(lambda: len(a.view or ()) == 4, 20.0)
    rule.remove()
    b.send(b"of the last view")
    world.run(0.3)
    d.resume()
    world.run(1.0)
    assert world.check() == []


@BOTH
def test_what_a_broken_member_made_up_of_another_is_forgotten_with_the_next_view(
    preset: Callable[[], StackSpec],
) -> None:
    world = World(seed=4, spec=preset())
    a, b, c, d = world.join("a", "b", "c", "d")
    layer = next(part for part in c.stack.parts if isinstance(part, ReliableMulticast))
    window = layer.windows[a.me]
    layer._hand_up(a.me, window.put(Batch(a.me, [b"made up"] * 4, 28, first=1)))
    window.expect(6)
    layer._gaps.note(a.me, window)
    d.crash()
    world.run_until(lambda: world.united, 10.0, "a view without d")
    for member in (a, b, c):
        member.send(numbered(member.name, 20))
    world.settle()
    assert [bytes(m.payload) for m in c.delivered if m.sender == a.me] == [
        *[b"made up"] * 4,
        *numbered("a", 20),
    ]
    assert c.stack.counters["skipped"] == 0
