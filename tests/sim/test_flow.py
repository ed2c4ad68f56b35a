"""Credits in whole groups: no member hangs or is flooded, whichever is lost, slow, gone or dead."""

from collections import Counter

import pytest

from ringcast import presets
from ringcast.control.discovery import Discovery
from ringcast.control.slow_members import SlowMembers
from ringcast.core.model.events import Expelled
from ringcast.errors import TooLarge
from ringcast.layers.flow.layer import Flow, FlowLayer
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import Member, World
from ringcast.sim.engine.faults import FrameInFlight
from ringcast.spec import StackSpec

CREDITS = 20_000
SIZE = 1_000


def stable(**settings: object) -> StackSpec:
    """The preset with few credits, so that there are many rounds."""
    return presets.stable().replace(Flow(max_credits=CREDITS, **settings))  # type: ignore[arg-type]


def trio(seed: int = 1, spec: StackSpec | None = None) -> tuple[World, Member, Member, Member]:
    world = World(seed=seed, spec=spec or stable())
    a, b, c = world.join("a", "b", "c")
    return world, a, b, c


def flow_of(member: Member) -> FlowLayer:
    return next(part for part in member.stack.parts if isinstance(part, FlowLayer))


def over_the_bound(world: World) -> list[str]:
    """Where more of a sender waits for an application than may."""
    flows = {member.me: flow_of(member) for member in world.running}
    return [
        f"{source.waiting} bytes of {sender} wait at {me}"
        for me, flow in flows.items()
        for sender, source in flow.sources.items()
        if sender in flows and source.waiting > flows[sender].allowed(flow)
    ]


def messages(count: int, size: int = SIZE) -> list[bytes]:
    return [str(n).encode().ljust(size, b".") for n in range(count)]


# --- what is lost --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["CREDIT", "ASK"])
def test_with_every_third_of_them_lost_the_sender_never_hangs(kind: str) -> None:
    world, a, b, c = trio()
    seen: Counter[str] = Counter()

    def is_third(frame: FrameInFlight) -> bool:
        seen[kind] += frame.kind == kind
        return frame.kind == kind and seen[kind] % 3 == 0

    world.drop(is_third)
    a.send(messages(500))
    b.send(messages(500))
    world.settle()
    assert len(c.delivered) == 1_000
    assert seen[kind] > 20
    assert world.check() == []


def test_a_receiver_that_never_counts_enough_does_not_stop_the_sender() -> None:
    world, a, b, c = trio(spec=stable(max_block_time=0.5))
    rule = world.drop(lambda frame: frame.target == "c" and frame.kind == "DATA")
    a.send(messages(100))
    world.run_until(lambda: not a.blocked, seconds=0.5 * 100 * SIZE / CREDITS + 0.5)
    assert len(c.delivered) == 0
    rule.remove()
    world.settle()
    assert len(b.delivered) == len(c.delivered) == 100
    assert world.check() == []


@pytest.mark.parametrize("seed", range(3))
def test_under_loss_and_reordering_all_arrives_within_the_bound(seed: int) -> None:
    world = World(seed=seed, spec=stable(), loss=0.1, reorder=0.1, duplicate=0.1)
    a, b, c = world.join("a", "b", "c")
    a.send(messages(300))
    b.send(messages(300))
    c.busy()
    for _ in range(60):
        world.run(0.05)
        assert over_the_bound(world) == []
        if c.is_busy:
            c.idle()
        else:
            c.busy()
    c.idle()
    world.settle()
    assert len(c.delivered) == 600
    assert world.check() == []


# --- who is slow, gone or dead -------------------------------------------------------------------


def test_a_slow_application_stops_its_senders_and_no_more_than_the_credits_wait_for_it() -> None:
    world, a, b, c = trio()
    c.busy()
    a.send(messages(500))
    b.send(messages(500))
    world.run(60.0)
    assert a.blocked
    assert b.blocked
    for sender in (a, b):
        assert CREDITS <= flow_of(c).sources[sender.me].waiting < CREDITS + SIZE
    assert over_the_bound(world) == []
    c.idle()
    world.settle()
    assert len(c.delivered) == 1_000


@pytest.mark.parametrize("end", ["leaves", "crashes", "is paused"])
def test_when_the_last_creditor_goes_the_sender_goes_on(end: str) -> None:
    world, a, b, c = trio()
    c.busy()
    a.send(messages(100))
    world.run(1.0)
    assert a.blocked
    if end == "leaves":
        c.leave()
    elif end == "crashes":
        c.crash()
    else:
        c.pause()
    world.run_until(lambda: not a.blocked, seconds=30.0)
    world.run(2.0)
    assert len(b.delivered) == 100
    assert world.check() == []


def test_a_suspicion_is_as_good_as_an_answer() -> None:
    world, a, _b, c = trio()
    c.busy()
    a.send(messages(100))
    world.run(1.0)
    assert a.blocked
    c.pause()
    seen: list[bool] = []

    def has_gone_on() -> bool:
        if not a.blocked:
            seen.append(a.view is not None and c.me in a.view)
        return bool(seen)

    world.run_until(has_gone_on, seconds=30.0)


def test_members_that_send_from_where_they_receive_do_not_lock_each_other() -> None:
    world, a, b, _c = trio()
    a.send(messages(40))
    b.send(messages(40))
    answered = {a: 0, b: 0}
    while min(answered.values()) < 1_000:
        world.run(0.001)
        for member, other in ((a, b), (b, a)):
            heard = sum(1 for message in member.delivered if message.sender == other.me)
            member.send([bytes(SIZE)] * (heard - answered[member]))
            answered[member] = heard
        assert world.now < 60.0
    assert over_the_bound(world) == []


def test_a_newcomer_under_load_has_full_credit_both_ways() -> None:
    world, a, b, _c = trio()
    a.send(messages(1_000))
    world.run(0.01)
    (d,) = world.join("d")
    d.send(messages(100))
    world.settle()
    assert len([m for m in b.delivered if m.sender == d.me]) == 100
    assert world.check() == []


def test_a_newcomer_does_not_fill_the_memory_of_a_member_that_gets_the_view_late() -> None:
    world = World(seed=1, spec=presets.stable().replace(Flow(max_credits=1_000)))
    a, b = world.join("a", "b")
    b.busy()
    rule = world.drop(lambda f: f.kind == "VIEW" and f.target == "b")
    c = world.start("c")
    world.run_until(lambda: c.view is not None and len(c.view) == 3, 10.0)
    c.send_many([bytes(500)] * 50)
    world.run(1.0)
    assert len(a.delivered) <= 4, "two messages are a round; a second one is asked for"
    rule.remove()
    world.run(1.0)
    assert world.check() == []
    b.idle()
    world.settle()
    assert len(a.delivered) == len(b.delivered) == 50
    assert world.check() == []


def test_one_that_leaves_has_first_sent_what_it_was_given_though_it_waits_for_credits() -> None:
    world, a, b, c = trio(spec=presets.lan().insert(Flow(max_credits=CREDITS)))
    rule = world.drop(lambda frame: frame.kind == "CREDIT")
    message = bytes(50 * CREDITS)
    a.send(message)
    a.leave()
    world.run(1.0)
    assert a.probe.outstanding == 0
    rule.remove()
    world.run_until(lambda: not a.alive, seconds=10.0)
    world.settle()
    assert [m.payload for m in b.delivered] == [m.payload for m in c.delivered] == [message]
    assert world.check() == []


# --- policies ------------------------------------------------------------------------------------


def test_a_slow_member_is_waited_for_by_name() -> None:
    world, a, _b, c = trio(spec=stable().insert(SlowMembers(bound=2.0)))
    c.busy()
    a.send(messages(100))
    world.run(10.0)
    slow = a.stats()["slow"]
    assert isinstance(slow, dict)
    assert slow["held_back"] == {"c": pytest.approx(10.0, abs=1.0)}
    assert a.blocked


@pytest.mark.parametrize("slow", ["a", "b", "c"])
@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("window", ["credits", "acks"])
def test_a_slow_member_is_taken_out_of_the_group_and_told_why(
    slow: str, loss: float, window: str
) -> None:
    spec = stable() if window == "credits" else presets.lan().replace(NakAck4(capacity=20))
    world, *members = trio(spec=spec.insert(SlowMembers(policy="evict", bound=2.0)))
    still = world.members[slow]
    sender, other = (member for member in members if member is not still)
    world.loss = loss
    still.busy()
    sender.send(messages(100))
    evicted = world.now
    world.run_until(
        lambda: sender.view is not None and still.me not in sender.view, 1.25 * 2.0 + 1.0
    )
    assert world.now - evicted >= 2.0
    reasons = [m.stack.snapshot().roles["membership"] for m in (sender, other)]
    assert "held the group back" in str(reasons), "the coordinator knows why, for the live view"
    world.run_until(lambda: len(other.delivered) == 100, seconds=2.0)
    still.idle()
    world.settle()
    told = [event.reason for event in still.events if isinstance(event, Expelled)]
    assert told == [f"evicted: held the group back for 2 seconds, as seen by {sender.name}"]
    assert not any(isinstance(event, Expelled) for event in sender.events + other.events)
    assert world.united  # It has come back by a merge.
    assert world.check() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_skipped_member_hears_of_its_last_gap_from_a_sender_that_leaves(seed: int) -> None:
    """It waited for the messages for ten seconds, and then went on in a group of its own."""
    spec = presets.lan().insert(SlowMembers(policy="skip", bound=0.5))
    world, fast, feed, slow = trio(seed, spec.replace("NakAck4", capacity=64))
    slow.busy()
    feed.send([b"x"] * 1_000)
    world.run_until(lambda: len(fast.delivered) == 1_000, seconds=30.0)
    rule = world.drop(lambda f: f.target == "c" and f.source == "b" and f.kind in ("DATA", "LAST"))
    for count in (1_032, 1_064):  # The second says that the first is freed: the others forget it.
        feed.send([b"y"] * 32)
        world.run_until(lambda: len(fast.delivered) == count, seconds=30.0)  # noqa: B023
        world.run(0.2)
    feed.leave()
    world.run_until(lambda: len(fast.views[-1]) == 2, seconds=30.0)
    rule.remove()
    slow.idle()
    world.run_until(lambda: slow.views[-1] == fast.views[-1], seconds=5.0)
    assert not any(isinstance(event, Expelled) for event in (*slow.events, *fast.events))
    assert len(slow.delivered) + sum(e.last - e.first + 1 for e in slow.skipped) == 1_064
    assert world.check() == []


def test_a_member_that_stays_slow_costs_the_others_a_tenth_of_their_time() -> None:
    """It stays away for ten times the bound, and is back each time within a search of that."""
    spec = presets.lan().replace(NakAck4(capacity=20), Discovery(merge_interval=0.5))
    world, sender, other, slow = trio(spec=spec.insert(SlowMembers(policy="evict", bound=0.2)))
    slow.busy()
    for _ in range(3):
        began = world.now
        sender.send(messages(100))
        world.run_until(lambda: len(sender.view or ()) == 2, 0.25 + 0.1)
        gone = world.now
        world.run_until(lambda: len(sender.view or ()) == 3, 2.0 + 0.1 + 0.1)
        assert world.now - gone >= 2.0
        assert gone - began <= 0.15 * (world.now - began)
    assert len(other.delivered) == 300
    slow.idle()
    world.settle()
    assert world.check() == []


# --- what is too large ---------------------------------------------------------------------------


def test_a_message_larger_than_the_credits_is_refused_at_once_with_the_number() -> None:
    world, a, _b, _c = trio(spec=stable().without("Fragment"))
    a.send(bytes(CREDITS))
    world.settle()
    with pytest.raises(TooLarge, match="20,001"):
        a.send(bytes(CREDITS + 1))


def test_with_fragments_a_message_may_be_much_larger_than_the_credits() -> None:
    world, a, b, _c = trio()
    a.send(bytes(100 * CREDITS))
    world.settle()
    assert [len(message.payload) for message in b.delivered] == [100 * CREDITS]
