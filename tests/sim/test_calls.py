"""Calls in the simulator: everybody who is asked has a reply, of a kind that says what happened."""

from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.batch import Message
from ringcast.errors import LocalError
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.wire import Wire
from ringcast.services.calls import CALLS_MAX
from ringcast.services.replies import Outcome
from ringcast.sim import Member, World

LAN = presets.lan()


def echo(member: Member) -> None:
    """Answer calls with what was asked."""
    member.service.answer(lambda call: member.name.encode() + b":" + bytes(call.payload))


def group(world: World, *names: str) -> list[Member]:
    members = world.join(*names)
    for member in members:
        echo(member)
    return members


def test_all_members_answer_a_call() -> None:
    world = World(1, LAN)
    a, b, c = members = group(world, "a", "b", "c")
    call = a.call(b"?")
    world.run_until(lambda: call.done, 1.0)
    assert call.replies.answers == {m.me: f"{m.name}:?".encode() for m in members}
    assert call.replies.ok
    assert len(b.delivered) == len(c.delivered) == 0, "a call is no message"
    world.settle()
    assert world.check() == []


def test_some_members_answer_a_call() -> None:
    world = World(2, LAN)
    a, b, c = group(world, "a", "b", "c")
    call = a.call(b"?", to=[c, b])
    world.run_until(lambda: call.done, 1.0)
    assert call.replies.answers == {b.me: b"b:?", c.me: b"c:?"}
    assert not a.service.calls


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(20))
def test_calls_come_in_their_senders_order_among_its_messages(seed: int, loss: float) -> None:
    world, dice = World(seed, LAN, loss=loss), Random(seed)
    members = group(world, "a", "b", "c")
    heard: dict[str, list[bytes]] = {member.name: [] for member in members}
    for member in members:
        member.service.answer(order_of(member, heard[member.name]))
    calls = []
    for number in range(60):
        a = members[0]
        if dice.random() < 0.5:
            calls.append(a.call(b"%d" % number, timeout=60.0))
        else:
            a.send(b"%d" % number)
        world.run(dice.uniform(0.0, 0.01))
    world.run_until(lambda: all(call.done for call in calls), 60.0)
    world.settle()
    assert all(call.replies.ok and len(call.replies) == 3 for call in calls)
    for member in members:
        asked = heard[member.name]
        assert asked == sorted(asked, key=lambda text: int(text.split()[0]))
        for text in asked:  # All messages that were sent before a call came before it.
            number, count = map(int, text.split())
            before = [m for m in member.delivered if int(bytes(m.payload)) < number]
            assert len(before) == count
    assert world.check() == []


def order_of(member: Member, heard: list[bytes]):  # type: ignore[no-untyped-def]
    def answer(call: Message) -> bytes:
        heard.append(b"%d %d" % (int(bytes(call.payload)), len(member.delivered)))
        return b""

    return answer


@pytest.mark.parametrize("spec", [LAN, LAN.replace(Wire(mtu=1_400)), presets.stable()])
def test_large_questions_have_large_answers(spec: object) -> None:
    world = World(3, spec)  # type: ignore[arg-type]
    a, b = group(world, "a", "b")
    question = bytes(range(256)) * 40_000
    call = a.call(question, timeout=60.0)
    world.run_until(lambda: call.done, 60.0)
    assert call.replies.answers == {a.me: b"a:" + question, b.me: b"b:" + question}
    world.settle()
    assert world.check() == []


# How many are waited for --------------------------------------------------------------------------


def test_the_first_answer_may_be_enough() -> None:
    world = World(4, LAN)
    a, b, c = group(world, "a", "b", "c")
    b.busy()
    a.busy()
    call = a.call(b"?", wait="first")
    world.run_until(lambda: call.done, 1.0)
    assert call.replies.answers == {c.me: b"c:?"}
    assert len(call.replies) == 1


def test_a_number_of_answers_may_be_enough() -> None:
    world = World(5, LAN)
    a, b, c = group(world, "a", "b", "c")
    b.busy()
    call = a.call(b"?", wait=2)
    world.run_until(lambda: call.done, 1.0)
    assert set(call.replies) == {a.me, c.me}


def test_no_error_counts_as_the_first_answer() -> None:
    world = World(6, LAN)
    a, b = group(world, "a", "b")

    def fail(call: Message) -> bytes:
        raise ValueError("not today")

    a.service.answer(fail)
    b.busy()
    call = a.call(b"?", wait="first", timeout=60.0)
    world.run(1.0)
    assert not call.done
    assert call.replies[a.me].outcome is Outcome.ERROR
    assert call.replies[a.me].error == "not today"
    b.idle()
    world.run_until(lambda: call.done, 1.0)
    assert call.replies.answers == {b.me: b"b:?"}


def test_what_cannot_be_waited_for_is_refused() -> None:
    world = World(7, LAN)
    (a,) = group(world, "a")
    for wrong in (0, -1, "most"):
        with pytest.raises(LocalError, match="wait is"):
            a.call(b"?", wait=wrong)


# When there is no answer --------------------------------------------------------------------------


def test_members_without_a_handler_say_so() -> None:
    world = World(8, LAN)
    a, b = world.join("a", "b")
    echo(b)
    b.call(b"?")
    call = a.call(b"?")
    world.run_until(lambda: call.done, 1.0)
    assert call.replies[a.me].outcome is Outcome.NO_HANDLER
    assert call.replies[b.me].payload == b"b:?"


def test_a_busy_member_runs_out_of_time() -> None:
    world = World(9, LAN)
    a, b = group(world, "a", "b")
    b.busy()
    before = world.now
    call = a.call(b"?", timeout=2.0)
    world.run_until(lambda: call.done, 5.0)
    assert world.now - before == pytest.approx(2.0)
    assert call.replies[b.me].outcome is Outcome.TIMED_OUT
    assert call.replies[a.me].ok
    b.idle()
    world.settle()
    assert a.stack.counters["late_answers"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_member_that_crashes_is_gone(seed: int) -> None:
    world = World(seed, LAN, loss=0.1 if seed % 2 else 0.0)
    a, b, c = group(world, "a", "b", "c")
    c.busy()
    call = a.call(b"?", timeout=60.0)
    world.run(Random(seed).uniform(0.0, 0.3))
    c.crash()
    world.run_until(lambda: call.done, 20.0)
    assert call.replies[c.me].outcome is Outcome.GONE
    assert call.replies[b.me].payload == b"b:?"


def test_a_member_that_leaves_is_gone() -> None:
    world = World(10, LAN)
    a, b, c = group(world, "a", "b", "c")
    c.busy()
    call = a.call(b"?", to=[b, c], timeout=60.0)
    world.run(0.1)
    c.leave()
    world.run_until(lambda: call.done, 30.0)
    assert call.replies[c.me].outcome is Outcome.GONE


@pytest.mark.parametrize("seed", range(10))
def test_across_a_partition_the_others_are_gone(seed: int) -> None:
    world = World(seed, LAN)
    a, b, c, d = group(world, "a", "b", "c", "d")
    world.partition([a, b], [c, d])
    calls = [a.call(b"?", timeout=60.0), c.call(b"?", timeout=60.0)]
    world.run_until(lambda: all(call.done for call in calls), 30.0)
    kinds = [{reply.outcome for reply in call.replies.values()} for call in calls]
    assert kinds == [{Outcome.VALUE, Outcome.GONE}] * 2
    assert set(calls[0].replies.answers) == {a.me, b.me}
    assert set(calls[1].replies.answers) == {c.me, d.me}
    world.heal()
    world.settle()
    call = a.call(b"again")
    world.run_until(lambda: call.done, 5.0)
    assert len(call.replies.answers) == 4
    assert world.check() == []


def test_a_call_that_finds_no_room_is_sent_when_there_is_some() -> None:
    world = World(11, LAN.replace(NakAck4(capacity=4)))
    a, b = group(world, "a", "b")
    b.busy()
    a.send([b"x"] * 10)
    call = a.call(b"?", timeout=60.0)
    world.run(5.0)
    assert not call.done
    assert a.blocked
    b.idle()
    world.run_until(lambda: call.done, 5.0)
    assert call.replies.ok


def test_a_call_that_never_left_runs_out_of_time() -> None:
    world = World(12, LAN.replace(NakAck4(capacity=4)))
    a, b = group(world, "a", "b")
    b.busy()
    a.send([b"x"] * 10)
    call = a.call(b"?", timeout=2.0)
    world.run_until(lambda: call.done, 5.0)
    assert len(call.replies) == 0


def test_open_calls_are_limited() -> None:
    world = World(13, LAN)
    a, b = group(world, "a", "b")
    b.busy()
    calls = [a.call(b"?", to=[b], timeout=60.0) for _ in range(CALLS_MAX)]
    with pytest.raises(LocalError, match="calls wait for answers"):
        a.call(b"?")
    b.idle()
    world.run_until(lambda: all(call.done for call in calls), 10.0)
    assert not a.call(b"?").done


# Newcomers ----------------------------------------------------------------------------------------


def test_a_newcomer_without_its_state_answers_later_but_misses_nothing() -> None:
    world = World(14, LAN)
    a, b = group(world, "a", "b")
    counts = {"a": 0, "b": 0, "c": 0}

    def count(member: Member) -> None:
        def add(call: Message) -> bytes:
            counts[member.name] += 1
            return b""

        member.service.answer(add)
        member.service.provide(lambda: [b"%d" % counts[member.name]])

    for member in (a, b):
        count(member)
    first = a.call(b"+1")
    world.run_until(lambda: first.done, 1.0)
    c = world.start("c", state=True)
    count(c)
    c.service.reads = False
    world.run_until(lambda: c.me in (a.view or ()), 5.0)
    call = a.call(b"+1")
    world.run_until(lambda: call.done, 1.0)
    assert call.replies[c.me].outcome is Outcome.ERROR
    assert "state" in call.replies[c.me].error
    alone = a.call(b"+1", to=[c])
    world.run_until(lambda: alone.done, 1.0)
    c.service.reads = True
    world.run_until(lambda: c.service.state is not None, 5.0)
    state = c.service.state
    assert state is not None
    assert int(state) + counts["c"] == counts["a"] == counts["b"] == 2
