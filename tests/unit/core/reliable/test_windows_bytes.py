"""The bound in bytes of a receive window: what a sender that ignores its own bound can fill."""

import pytest

from ringcast.core.reliable.windows import BYTES_SLACK, ReceiveWindow, SendWindow
from tests.unit.core.batches import run, spans

SIZE = 50_000
MAX_BYTES = 100_000


def window(keep: bool) -> ReceiveWindow:
    return ReceiveWindow(10_000, keep=keep, max_bytes=MAX_BYTES)


@pytest.mark.parametrize("keep", [False, True])
def test_what_lies_behind_a_gap_is_bounded_in_bytes(keep: bool) -> None:
    receiver = window(keep)
    for seqno in range(2, 1_000):
        assert receiver.put(run(seqno, size=SIZE)) == []
    bound = 2 * MAX_BYTES + BYTES_SLACK
    assert receiver.nbytes == bound  # twenty-four messages fill it to the byte
    assert receiver.overflows == 998 - receiver.nbytes // SIZE


@pytest.mark.parametrize("keep", [False, True])
def test_the_message_that_closes_the_gap_has_room(keep: bool) -> None:
    receiver = window(keep)
    for seqno in range(2, 1_000):
        receiver.put(run(seqno, size=SIZE))
    high = receiver.high
    handed = spans(receiver.put(run(1, size=SIZE)))
    assert handed[0] == (1, 1)
    assert receiver.handed == high


@pytest.mark.parametrize("keep", [False, True])
def test_what_waits_for_the_application_is_bounded_in_bytes(keep: bool) -> None:
    receiver = window(keep)
    for seqno in range(1, 1_000):
        receiver.put(run(seqno, size=SIZE))
    assert receiver.held_bytes <= 3 * MAX_BYTES + BYTES_SLACK
    assert receiver.handed == receiver.high == receiver.held_bytes // SIZE
    receiver.deliver(receiver.handed)
    receiver.purge(receiver.handed)
    assert receiver.held_bytes == 0
    assert spans(receiver.put(run(receiver.high + 1, size=SIZE))) == [
        (receiver.high, receiver.high)
    ]


def test_a_window_without_a_bound_in_bytes_holds_its_capacity() -> None:
    receiver = ReceiveWindow(100)
    for seqno in range(2, 101):
        receiver.put(run(seqno, size=SIZE))
    assert receiver.nbytes == 99 * SIZE


def test_a_sender_that_keeps_its_bound_loses_nothing() -> None:
    receiver = window(keep=True)
    for seqno in range(1, 200):
        receiver.purge(seqno - 1 - MAX_BYTES // SIZE)
        receiver.put(run(seqno, size=SIZE))
        receiver.deliver(seqno)
    assert receiver.overflows == 0
    assert receiver.handed == 199


def test_of_a_run_that_does_not_fit_the_first_messages_are_taken() -> None:
    receiver = window(keep=True)
    assert spans(receiver.put(run(1, 200, SIZE))) == [(1, 26)]
    assert receiver.overflows == 174


def test_bytes_that_wait_for_the_application_are_counted_run_by_run() -> None:
    receiver = ReceiveWindow(10)
    receiver.put(run(2, 2, size=5))
    receiver.put(run(5, size=5))
    assert spans(receiver.put(run(1, size=5))) == [(1, 1), (2, 3)]
    assert (receiver.held_bytes, receiver.nbytes) == (20, 5)
    receiver.put(run(4, size=5))
    receiver.deliver(3)
    assert receiver.held_bytes == 10
    receiver.deliver(5)
    assert receiver.held_bytes == 0


def test_the_average_size_is_that_of_the_messages_that_are_kept() -> None:
    sender = SendWindow(10, max_bytes=1, offset=5)
    assert sender.message_bytes == 0
    sender.append(run(0, 4, size=3))
    assert sender.message_bytes == 3
    sender.purge(8)
    assert (sender.outstanding, sender.message_bytes) == (1, 3)
