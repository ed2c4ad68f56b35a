"""What the application takes, what is dropped for it, and what is put aside."""

from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event
from ringcast.core.stack.stack import Stack
from ringcast.runtime.member.incoming import RELIEF_SECONDS, Incoming
from tests.unit.runtime.lone import Bell, lone_stack


def count(events: list[Event]) -> int:
    """How many messages there are."""
    return sum(len(event) for event in events if isinstance(event, Batch))


def stack_with(messages: int, **settings: object) -> Stack:
    """A stack whose application has something to take."""
    stack = lone_stack(**settings)
    stack.send([b"x" * 10] * messages, None, 1.0)
    return stack


def test_messages_count_as_delivered_when_the_application_comes_back() -> None:
    stack = stack_with(5, capacity=5)
    incoming = Incoming(stack, True, 1_000)
    assert count(incoming.take(3, 1.0, "me")) == 3
    assert not stack.writable()
    assert count(incoming.take(3, 1.0, "me")) == 2
    assert stack.writable()
    assert incoming.take(3, 1.0, "me") == []


def test_who_wants_no_messages_has_them_dropped() -> None:
    stack = stack_with(5, capacity=5)
    incoming = Incoming(stack, False, 1_000)
    assert incoming.settle(1.0)
    assert not incoming.settle(1.0)
    assert stack.writable()
    assert not incoming.ready


def test_a_leaver_finds_messages_put_aside_up_to_a_bound() -> None:
    stack = stack_with(5)
    incoming = Incoming(stack, True, 40)
    assert not incoming.settle(1.0)
    incoming.leaving = True
    assert incoming.settle(1.0)
    stack.send([b"y" * 10], None, 1.0)
    incoming.settle(1.0)
    assert incoming.counters["dropped_while_leaving"] == 1
    assert count(incoming.take(100, 1.0, "me")) == 5
    assert incoming.aside == 0


def test_a_blocked_sender_that_is_the_reader_is_helped_at_once() -> None:
    stack = stack_with(5, capacity=5)
    incoming = Incoming(stack, True, 1_000)
    incoming.take(1, 1.0, "me")
    assert not incoming.relieve(1.0, ["another thread"])
    assert incoming.relieve(1.0, ["me"])
    assert stack.writable()
    assert incoming.aside == 40
    assert count(incoming.take(100, 1.0, "me")) == 4


def test_any_blocked_sender_is_helped_when_nobody_comes() -> None:
    stack = stack_with(5, capacity=5)
    incoming = Incoming(stack, True, 1_000)
    incoming.take(1, 1.0, "me")
    assert not incoming.relieve(1.0 + RELIEF_SECONDS / 2, ["another thread"])
    assert incoming.relieve(1.0 + RELIEF_SECONDS, ["another thread"])


def test_who_never_came_is_not_helped() -> None:
    incoming = Incoming(stack_with(5, capacity=5), True, 1_000)
    assert not incoming.relieve(100.0, [None, "me"])


def test_what_is_put_aside_is_bounded() -> None:
    stack = stack_with(5, capacity=5)
    incoming = Incoming(stack, True, 40)
    incoming.take(1, 1.0, "me")
    assert incoming.relieve(1.0, ["me"])
    stack.send([b"x" * 10] * 5, None, 1.0)
    assert not incoming.relieve(1.0, ["me"])
    assert stack.waiting


def test_those_who_wait_are_told_once() -> None:
    incoming = Incoming(lone_stack(), True, 40)
    first, second = Bell(), Bell()
    incoming.watch(first)
    incoming.watch(second)
    incoming.unwatch(second)
    incoming.tell()
    incoming.tell()
    assert (first.told, second.told) == (1, 0)
    assert not incoming.readers
