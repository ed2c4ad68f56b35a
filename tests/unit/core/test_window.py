"""The windows by example: what fits, what is missing, what is handed up and when it is freed."""

import gc
import weakref
from collections.abc import Sequence

import pytest

from ringcast.core.ranges import RangeSet
from ringcast.core.window import ReceiveWindow, Run, SendWindow
from ringcast.errors import ConfigError, LocalError

OFFSETS = [0, 7, 2**32 - 5, 2**63 - 5]


def numbers(runs: Sequence[Run[int]]) -> list[list[int] | tuple[int, int]]:
    """What was handed up: a list of messages a run, a pair of seqnos for what was skipped."""
    return [(first, last) if items is None else list(items) for first, last, items in runs]


def whole(low: int, high: int) -> RangeSet:
    return RangeSet([(low, high)])


class TestSendWindow:
    def test_capacity_messages_fit_and_one_ack_releases_exactly_one(self) -> None:
        window: SendWindow[bytes] = SendWindow(10)
        assert window.append([b"x"] * 10, 10) == 1
        assert window.room() == window.room_for([b"x"]) == 0
        with pytest.raises(LocalError, match="room_for"):
            window.append([b"x"], 1)
        assert window.high == 10
        assert window.purge(1) == 1
        assert window.room() == window.room_for([b"x", b"x"]) == 1
        assert window.append([b"x"], 1) == 11
        assert window.room() == 0

    def test_a_run_goes_in_whole_or_not_at_all(self) -> None:
        window: SendWindow[bytes] = SendWindow(3)
        with pytest.raises(LocalError):
            window.append([b"x"] * 4, 4)
        with pytest.raises(LocalError):
            window.append([], 0)
        assert (window.high, window.outstanding_bytes) == (0, 0)

    @pytest.mark.parametrize("offset", OFFSETS)
    def test_order_is_kept_past_the_end_of_the_array(self, offset: int) -> None:
        window: SendWindow[bytes] = SendWindow(5, offset=offset)
        for first in range(offset + 1, offset + 60, 3):
            items = [str(first + i).encode() for i in range(3)]
            assert window.append(items, sum(map(len, items))) == first
            assert window.get(whole(first, first + 2)) == [(first, items)]
            assert window.purge(first + 1) in (2, 3)
        assert window.outstanding == 1

    def test_purge_stops_at_high_and_a_lower_one_does_nothing(self) -> None:
        window: SendWindow[bytes] = SendWindow(10)
        window.append([b"x"] * 5, 5)
        assert window.purge(3) == 3
        assert window.purge(2) == window.purge(3) == 0
        assert window.low == 3
        assert window.purge(99) == 2
        assert (window.low, window.delivered, window.high) == (5, 5, 5)
        assert window.room() == 10

    def test_own_deliveries_move_a_mark_and_free_nothing(self) -> None:
        window: SendWindow[bytes] = SendWindow(10)
        window.append([b"1", b"2", b"3"], 3)
        assert window.deliver(2) == 2
        assert window.deliver(1) == 0
        assert window.deliver(99) == 1
        assert (window.low, window.delivered, window.high) == (0, 3, 3)
        assert window.get(whole(1, 3)) == [(1, [b"1", b"2", b"3"])]

    def test_bytes_are_released_with_the_messages_inside_a_run_too(self) -> None:
        window: SendWindow[bytes] = SendWindow(10)
        window.append([b"1", b"22", b"333"], 6)
        window.append([b"4444", b"55555"], 9)
        left = []
        for to in range(1, 6):
            window.purge(to)
            left.append(window.outstanding_bytes)
        assert left == [14, 12, 9, 5, 0]

    def test_bytes_of_headers_go_with_the_last_message_of_a_run(self) -> None:
        window: SendWindow[bytes] = SendWindow(10)
        window.append([b"1", b"2"], 32)
        window.purge(1)
        assert window.outstanding_bytes == 31
        window.purge(2)
        assert window.outstanding_bytes == 0

    def test_bytes_bound_the_window_with_an_overshoot_of_one_message(self) -> None:
        window: SendWindow[bytes] = SendWindow(100, max_bytes=10)
        payloads = [b"1234"] * 5
        assert window.room_for(payloads, 20) == window.room_for(payloads) == 2
        assert window.room_for(payloads[:2], 8) == 2
        window.append(payloads[:2], 8)
        assert window.room_for(payloads) == 1
        window.append(payloads[:1], 4)
        assert window.room() == window.room_for(payloads) == window.room_for([b""]) == 0
        with pytest.raises(LocalError):
            window.append([b""], 0)
        window.purge(1)
        assert window.room() == 98

    def test_a_message_above_the_bound_goes_alone(self) -> None:
        window: SendWindow[bytes] = SendWindow(100, max_bytes=10)
        assert window.room_for([b"x" * 99, b"x"]) == 1
        window.append([b"x" * 99], 99)
        assert window.room_for([b"x"]) == 0
        window.purge(1)
        assert window.room_for([b"x"]) == 1

    @pytest.mark.parametrize(("capacity", "max_bytes"), [(0, None), (-3, None), (1, 0)])
    def test_a_window_without_room_is_refused(self, capacity: int, max_bytes: int | None) -> None:
        with pytest.raises(ConfigError):
            SendWindow(capacity, max_bytes)

    @pytest.mark.parametrize("keep", [False, True])
    def test_a_run_that_continues_comes_back_as_the_same_object(self, keep: bool) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10, keep=keep)
        items = [1, 2, 3]
        [(first, last, handed)] = window.arrive(1, items)
        assert (first, last) == (1, 3)
        assert handed is items
        assert (window.delivered, window.handed, window.high, window.received) == (0, 3, 3, 3)

    @pytest.mark.parametrize("offset", OFFSETS)
    def test_a_gap_stops_the_run_and_its_fill_frees_it(self, offset: int) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10, offset)
        got = []
        for seqno in (1, 2, 4, 5, 6, 3):
            got += numbers(window.arrive(offset + seqno, [seqno]))
        assert got == [[1], [2], [3, 4, 5, 6]]
        assert window.handed == window.high == offset + 6
        assert window.stored == 0

    def test_a_second_5_changes_nothing(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.put(1, [1, 2])
        assert window.put(5, [5]) == 1
        assert window.put(5, [-5]) == 0
        assert window.duplicates == 1
        window.put(3, [3, 4])
        assert window.take() == [1, 2, 3, 4, 5]
        assert window.put(5, [-5]) == 0
        assert window.take() == []
        assert (window.duplicates, window.received) == (2, 5)

    def test_a_partly_new_run_stores_its_new_parts(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(20)
        window.put(1, [1, 2])
        window.take()
        window.put(5, [5, 6])
        window.put(9, [9])
        assert window.put(2, [-2, 3, 4, -5, -6, 7, 8, -9, 10, 11]) == 6
        assert window.duplicates == 4
        assert window.take() == list(range(3, 12))

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("offset", OFFSETS)
    def test_fill_take_purge_past_the_end_of_the_array(self, offset: int, keep: bool) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(7, offset, keep)
        got: list[int] = []
        for first in range(offset + 1, offset + 60, 4):
            window.put(first + 2, [first + 2, first + 3])
            window.put(first, [first, first + 1])
            got += window.take()
            window.purge(first + 2)
        assert got == list(range(offset + 1, offset + 61))
        assert window.overflows == window.duplicates == 0

    def test_taking_is_bounded(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.put(1, [1, 2, 3, 4, 5])
        assert window.take(2) == [1, 2]
        assert numbers(window.hand(2)) == [[3, 4]]
        assert window.hand(0) == []
        assert window.take(99) == [5]


class TestBounds:
    def test_exactly_capacity_messages_fit_the_rest_is_dropped_and_counted(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        assert window.put(1, list(range(1, 13))) == 10
        assert (window.overflows, window.high) == (2, 10)
        assert window.put(11, [11]) == 0
        assert window.put(500, [500]) == 0
        assert (window.overflows, window.high) == (4, 10)
        assert window.take(1) == [1]
        assert window.put(11, [11]) == 1
        assert window.put(12, [12]) == 0

    def test_what_the_application_has_not_taken_counts(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(4)
        assert numbers(window.arrive(1, [1, 2, 3, 4])) == [[1, 2, 3, 4]]
        assert window.arrive(5, [5]) == []
        assert (window.delivered, window.overflows) == (0, 1)
        assert window.deliver(2) == 2
        assert (window.low, window.delivered) == (2, 2)
        assert numbers(window.arrive(5, [5, 6, 7])) == [[5, 6]]
        assert window.overflows == 2

    def test_in_order_traffic_allocates_no_slot_and_keeps_nothing_alive(self) -> None:
        window: ReceiveWindow[Token] = ReceiveWindow(10)
        token = Token()
        watch = weakref.ref(token)
        window.arrive(1, [token])
        del token
        gc.collect()
        assert watch() is None
        assert window.stored == 0

    @pytest.mark.parametrize("capacity", [0, -1])
    def test_a_window_without_room_is_refused(self, capacity: int) -> None:
        with pytest.raises(ConfigError):
            ReceiveWindow(capacity)


class TestMissing:
    def test_gaps_are_known_without_a_scan(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(100)
        window.put(3, [3, 4])
        window.put(10, [10])
        assert list(window.missing()) == [(1, 2), (5, 9)]
        assert window.missing_count == 7 == window.high - window.delivered - window.stored
        window.put(6, [6, 7])
        assert repr(window.missing()) == "{1-2, 5, 8-9}"

    def test_an_announcement_makes_the_last_messages_missing(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.arrive(1, [1, 2])
        window.expect(5)
        window.expect(4)
        assert list(window.missing()) == [(3, 5)]
        assert numbers(window.arrive(3, [3, 4])) == [[3, 4]]
        assert list(window.missing()) == [(5, 5)]
        assert numbers(window.arrive(5, [5, 6])) == [[5, 6]]
        assert window.high == 6

    def test_only_what_would_fit_is_asked_for(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.expect(1_000)
        assert list(window.missing()) == [(1, 10)]
        assert window.missing_count == 1_000
        window.put(1, [1, 2])
        window.take()
        assert list(window.missing()) == [(3, 12)]

    def test_a_request_for_a_million_missing_messages_is_bounded(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(2_000_000)
        for seqno in range(2, 2_001, 2):
            window.put(seqno, [seqno])
        window.expect(1_000_000)
        assert window.missing_count == 999_000
        asked = window.missing(max_ranges=64)
        assert asked.count_ranges == 64
        assert list(asked)[:2] == [(1, 1), (3, 3)]
        assert window.missing(max_ranges=64, max_numbers=10).count == 10
        assert window.missing_count == 999_000

    def test_what_is_asked_for_is_a_copy(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.expect(3)
        window.missing().clear()
        assert window.missing_count == 3


class TestKeeping:
    def test_taking_only_moves_the_marker_until_purged(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10, keep=True)
        window.put(1, [1, 2, 3])
        assert window.take() == [1, 2, 3]
        assert (window.low, window.delivered, window.stored) == (0, 3, 3)
        assert window.get(whole(1, 9)) == [(1, [1, 2, 3])]
        assert window.purge(2) == 2
        assert window.get(whole(1, 9)) == [(3, [3])]
        assert window.stored == 1

    def test_purge_stops_at_delivered_and_a_lower_one_does_nothing(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10, keep=True)
        window.arrive(1, [1, 2, 3, 4])
        window.deliver(3)
        assert window.purge(99) == 3
        assert window.purge(1) == 0
        assert (window.low, window.delivered, window.handed) == (3, 3, 4)
        assert window.get(whole(1, 9)) == [(4, [4])]

    def test_handed_up_messages_are_let_go_unless_kept(self) -> None:
        for keep in (False, True):
            window: ReceiveWindow[Token] = ReceiveWindow(10, keep=keep)
            token = Token()
            watch = weakref.ref(token)
            window.put(1, [token])
            del token
            window.take()
            gc.collect()
            assert (watch() is not None) is keep
            window.purge(1)
            gc.collect()
            assert watch() is None


class TestHolding:
    def test_nothing_above_the_hold_is_handed_up(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10)
        window.hold(3)
        assert numbers(window.arrive(1, [1, 2])) == [[1, 2]]
        assert numbers(window.arrive(3, [3, 4, 5])) == [[3]]
        assert window.arrive(6, [6]) == []
        assert window.stored == 3
        window.hold(5)
        assert numbers(window.hand()) == [[4, 5]]
        window.hold(None)
        assert numbers(window.hand()) == [[6]]
        assert numbers(window.arrive(7, [7])) == [[7]]


class TestSkipping:
    def test_runs_and_skips_come_in_order(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(20)
        window.put(3, [3, 4])
        window.put(7, [7])
        assert window.skip(1, 8) == 5
        assert window.missing_count == 0
        assert numbers(window.hand()) == [(1, 2), [3, 4], (5, 6), [7], (8, 8)]
        assert window.handed == window.high == 8
        assert numbers(window.arrive(9, [9])) == [[9]]

    def test_marks_jump_only_when_hand_comes_to_the_skip(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(20)
        window.put(1, [1])
        window.put(6, [6])
        assert window.skip(4, 5) == 2
        assert numbers(window.hand()) == [[1]]
        assert list(window.missing()) == [(2, 3)]
        assert numbers(window.arrive(2, [2, 3])) == [[2, 3], (4, 5), [6]]

    def test_what_comes_too_late_is_a_duplicate(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(20)
        window.put(3, [3])
        window.skip(2, 2)
        assert window.put(2, [2]) == 0
        assert window.duplicates == 1
        assert numbers(window.arrive(1, [1])) == [[1], (2, 2), [3]]

    def test_skipping_to_the_low_of_a_sender_far_ahead(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(4)
        assert window.skip_to(1_000) == 1_000
        assert window.skip_to(900) == 0
        assert numbers(window.hand()) == [(1, 1_000)]
        assert (window.low, window.handed) == (0, 1_000)
        assert window.put(500, [500]) == 0
        assert (window.duplicates, window.overflows) == (1, 0)
        assert window.deliver(1_000) == 1_000
        assert numbers(window.arrive(1_001, [1, 2, 3, 4])) == [[1, 2, 3, 4]]

    def test_what_was_skipped_is_never_given(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(10, keep=True)
        window.put(1, [1])
        window.skip(2, 3)
        window.put(4, [4])
        assert window.take() == [1, 4]
        assert window.get(whole(1, 9)) == [(1, [1]), (4, [4])]
        assert window.stored == 2
        window.purge(2)
        assert window.get(whole(1, 9)) == [(4, [4])]
        assert window.stored == 1

    def test_a_kept_window_purges_past_a_skip_longer_than_itself(self) -> None:
        window: ReceiveWindow[int] = ReceiveWindow(4, keep=True)
        window.arrive(1, [1, 2])
        window.skip_to(100)
        assert numbers(window.hand()) == [(3, 100)]
        window.deliver(100)
        assert window.purge(100) == 100
        assert window.stored == 0
        assert numbers(window.arrive(101, [5, 6, 7, 8])) == [[5, 6, 7, 8]]


def test_reset_starts_anew_and_leaves_the_counters() -> None:
    window: ReceiveWindow[int] = ReceiveWindow(10, keep=True)
    window.put(1, [1, 2])
    window.put(5, [5, 5])
    window.skip(3, 3)
    window.hold(1)
    window.reset(100)
    assert (window.low, window.delivered, window.handed, window.high) == (100,) * 4
    assert window.missing_count == window.stored == 0
    assert numbers(window.arrive(101, [1, 2])) == [[1, 2]]
    assert window.received == 6


class Token:
    """Something that a weak reference can watch."""
