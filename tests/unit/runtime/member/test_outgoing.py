"""Messages on their way into the window: gathered, queued, fed and given up."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, Batch
from ringcast.core.stack.stack import Stack
from ringcast.errors import Closed, NotMember, TooLarge
from ringcast.runtime.member.outgoing import HOT_GAP, LONG_AGO, SINGLES_BYTES, Outgoing, PendingSend
from tests.unit.runtime.lone import ME, Bell, lone_stack


def outgoing(**settings: object) -> tuple[Outgoing, Stack, list[int]]:
    """What is tested, with the stack below it and one entry per transmission."""
    stack = lone_stack(**settings)
    sent: list[int] = []
    return Outgoing(stack, lambda: sent.append(len(stack.drain()))), stack, sent


def payloads(stack: Stack) -> list[bytes]:
    """What has come back to the application, which takes it."""
    events = stack.take(10_000, stack.env.now)
    stack.consumed(stack.env.now)
    return [bytes(p) for event in events if isinstance(event, Batch) for p in event.payloads]


def test_what_finds_room_is_sent_at_once() -> None:
    out, stack, sent = outgoing()
    assert out.send([b"a", b"b"], None, 1.0) == 2
    assert sent == [1]
    assert payloads(stack) == [b"a", b"b"]


def test_a_single_message_that_comes_alone_is_never_noted_down() -> None:
    out, _, sent = outgoing()
    for number in range(3):
        assert not out.note(b"x")
        assert out.send([b"x"], None, number * 2 * HOT_GAP) == 1
    assert len(sent) == 3
    assert not out.hot


def test_single_messages_close_together_are_gathered_in_order() -> None:
    out, stack, sent = outgoing()
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0 + HOT_GAP / 2)
    assert out.hot
    assert out.note(b"3")
    assert out.note(b"4")
    assert len(sent) == 2
    out.send([b"5"], None, 1.0 + HOT_GAP)
    assert len(sent) == 3
    assert payloads(stack) == [b"1", b"2", b"3", b"4", b"5"]


def test_what_may_be_answers_is_not_gathered() -> None:
    """A member that has taken messages since its last one is in a conversation."""
    out, _, sent = outgoing()
    for number in range(3):
        assert not out.note(b"x")
        out.send([b"x"], None, number * HOT_GAP / 2)
        out.last_single = LONG_AGO
    assert len(sent) == 3
    assert not out.hot


def test_gathering_ends_when_nothing_more_comes() -> None:
    out, stack, _ = outgoing()
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0)
    out.note(b"3")
    states = [out.hot]
    for now in (1.0, 1.1):
        out.flush(now)
        states.append(out.hot)
    assert states == [True, True, False]
    assert payloads(stack) == [b"1", b"2", b"3"]


def test_the_caller_that_fills_a_datagram_has_to_send() -> None:
    out, _, _ = outgoing()
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0)
    noted = 0
    while out.note(bytes(1_000)):
        noted += 1
    assert noted == SINGLES_BYTES // 1_000
    assert not out.note(bytes(5_000)), "large messages are not gathered"


def test_what_was_noted_down_is_not_lost_when_the_next_message_is_too_large() -> None:
    out, stack, _ = outgoing(max_message=100)
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0)
    out.note(b"3")
    with pytest.raises(TooLarge, match="101 bytes is larger than the 100"):
        out.send([bytes(101)], None, 1.0)
    out.flush(1.0)
    assert payloads(stack) == [b"1", b"2", b"3"]


def test_what_can_never_be_sent_is_refused_though_others_wait() -> None:
    out, _, _ = outgoing(capacity=1, max_message=100)
    out.send([b"1"], None, 1.0)
    out.add(PendingSend([b"2"], None, Bell(), 1.0))
    with pytest.raises(TooLarge):
        out.send([bytes(101)], None, 1.0)
    with pytest.raises(NotMember):
        out.send([b"x"], Address(9), 1.0)


def test_a_run_has_the_time_of_its_largest_message_from_when_it_was_moved_last() -> None:
    out, stack, _ = outgoing(capacity=2, max_block_times="10:5,100:50")
    run = PendingSend([b"1", bytes(50), b"3"], None, Bell(), 1.0)
    run.sent = out.send(run.payloads, None, 1.0)
    out.add(run)
    assert (run.sent, run.limit, run.moved) == (2, 0.05, 1.0)
    assert not out.feed(1.1)
    assert run.moved == 1.0
    payloads(stack)
    assert out.feed(1.2)
    assert (run.sent, run.moved, run.since) == (3, 1.2, 1.0)
    unbound = PendingSend([bytes(101)], None, Bell(), 1.0)
    out.add(unbound)
    assert unbound.limit is None


def test_what_finds_no_room_waits_and_is_fed_first_come_first() -> None:
    out, stack, _ = outgoing(capacity=3)
    assert out.send([b"1", b"2", b"3", b"4"], None, 1.0) == 3
    bells = [Bell(), Bell()]
    for bell, rest in zip(bells, ([b"4"], [b"5", b"6", b"7"]), strict=True):
        out.add(PendingSend(rest, None, bell, 1.0))
    assert out.send([b"8"], None, 1.0) == 0, "nobody overtakes those who wait"
    assert not out.feed(1.0)
    assert payloads(stack) == [b"1", b"2", b"3"]
    assert out.feed(1.0)
    assert [bell.told for bell in bells] == [1, 0]
    assert payloads(stack) == [b"4", b"5", b"6"]
    assert out.feed(1.0)
    assert [bell.told for bell in bells] == [1, 1]
    assert not out.queues
    assert payloads(stack) == [b"7"]


def test_gathered_messages_that_find_no_room_wait_before_the_caller_behind_them() -> None:
    out, stack, _ = outgoing(capacity=2)
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0)
    assert out.note(b"3")
    assert out.send([b"4"], None, 1.0) == 0
    out.add(PendingSend([b"4"], None, Bell(), 1.0))
    assert not out.note(b"5"), "nothing is noted down while a sender waits"
    assert out.unsent == 1
    assert payloads(stack) == [b"1", b"2"]
    out.feed(1.0)
    assert payloads(stack) == [b"3", b"4"]
    assert out.unsent == 0


def test_other_destinations_do_not_wait_for_a_full_window() -> None:
    out, stack, _ = outgoing()
    while out.send([bytes(50_000)], None, 1.0):
        pass
    out.add(PendingSend([b"2"], None, Bell(), 1.0))
    assert out.send([b"to me"], ME, 1.0) == 1
    assert payloads(stack)[-1] == b"to me"


def test_a_caller_that_gives_up_is_taken_out() -> None:
    out, stack, _ = outgoing(capacity=1)
    out.send([b"1"], None, 1.0)
    run = PendingSend([b"2"], None, Bell(), 1.0)
    out.add(run)
    out.remove(run)
    out.remove(run)
    assert not out.queues
    payloads(stack)
    assert not out.feed(1.0)


def test_callers_that_wait_get_closed_and_what_was_left_behind_stays() -> None:
    out, _, _ = outgoing(capacity=1)
    out.send([b"1"], None, 1.0)
    out.send([b"2"], None, 1.0)
    waiting = PendingSend([b"x"], None, Bell(), 1.0)
    out.add(PendingSend([b"2"], None, None, 1.0))
    out.add(waiting)
    out.fail("because")
    assert isinstance(waiting.error, Closed)
    assert "because" in str(waiting.error)
    assert waiting.done
    assert out.unsent == 1


def test_a_run_for_a_member_that_has_left_fails() -> None:
    out, _, _ = outgoing()
    bell = Bell()
    stranger = PendingSend([b"x"], ME.__class__(99), bell, 1.0)
    out.add(stranger)
    out.feed(1.0)
    assert isinstance(stranger.error, NotMember)
    assert bell.told == 1


def test_nothing_is_sent_once_the_stack_is_closed() -> None:
    out, stack, _ = outgoing()
    stack.finish("over")
    with pytest.raises(Closed, match="over"):
        out.send([b"x"], None, 1.0)


def test_service_messages_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.member.outgoing.SERVICE_QUEUE_MAX", 3)
    out, stack, _ = outgoing()
    out.barriers = 1  # So that they wait.
    for _ in range(10):
        out.send_service(b"x", None, CALL, 1.0)
    assert len(out.queues[None]) == 3
    assert stack.counters["dropped_service_queue_full"] == 7
