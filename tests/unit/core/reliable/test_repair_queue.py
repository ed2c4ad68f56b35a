"""What is sent again: what was requested, once in a round trip."""

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.repair_queue import RepairQueue

A, B, C = (Address(n) for n in (1, 2, 3))
RTT = 0.01


def test_a_request_is_queued_once_while_it_waits() -> None:
    queue = RepairQueue()
    assert queue.request(A, RangeSet([(1, 4)]), 0.0, RTT) == 4
    assert queue.request(A, RangeSet([(3, 6)]), 0.0, RTT) == 2
    assert queue.take(100, 0.0) == (A, RangeSet([(1, 6)]))
    assert not queue


def test_what_was_sent_again_is_not_sent_again_within_a_round_trip() -> None:
    queue = RepairQueue()
    queue.request(A, RangeSet([(1, 4)]), 0.0, RTT)
    queue.take(100, 0.0)
    assert queue.request(A, RangeSet([(1, 4)]), 0.9 * RTT, RTT) == 0
    assert queue.request(B, RangeSet([(1, 4)]), 0.9 * RTT, RTT) == 4
    assert queue.request(A, RangeSet([(1, 4)]), 2.1 * RTT, RTT) == 4


def test_what_two_receivers_wait_for_goes_to_the_group_once() -> None:
    queue = RepairQueue()
    queue.request(A, RangeSet([(1, 4)]), 0.0, RTT)
    queue.request(B, RangeSet([(3, 6)]), 0.0, RTT)
    assert queue.take(100, 0.0) == (None, RangeSet([(1, 4)]))
    assert queue.take(100, 0.0) == (B, RangeSet([(5, 6)]))
    assert not queue
    assert queue.request(C, RangeSet([(1, 4)]), 0.9 * RTT, RTT) == 0, "it is on its way to all"


def test_nothing_goes_to_the_group_where_only_unicast_is_allowed() -> None:
    queue = RepairQueue(is_unicast=True)
    queue.request(A, RangeSet([(1, 4)]), 0.0, RTT)
    queue.request(B, RangeSet([(1, 4)]), 0.0, RTT)
    assert [queue.take(100, 0.0)[0] for _ in range(2)] == [A, B]


def test_a_part_is_taken_and_the_rest_stays() -> None:
    queue = RepairQueue()
    queue.request(A, RangeSet([(1, 4)]), 0.0, RTT)
    assert queue.take(3, 0.0) == (A, RangeSet([(1, 3)]))
    assert queue.take(3, 0.0) == (A, RangeSet([(4, 4)]))


def test_a_receiver_that_left_is_sent_nothing() -> None:
    queue = RepairQueue()
    queue.request(A, RangeSet([(1, 4)]), 0.0, RTT)
    queue.forget(A)
    assert not queue
