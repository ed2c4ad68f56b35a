"""The windows by example: what fits, what is missing, what is handed up and when it is freed."""

import gc
import weakref

import pytest

from ringcast.core.model.batch import FRAGMENT, Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.repair import Repair, RequestTiming
from ringcast.core.reliable.windows import Hole, ReceiveWindow, SendWindow
from ringcast.core.wire.codec import encode
from ringcast.core.wire.frames import Nak
from ringcast.core.wire.layout import HEADER_SIZE
from ringcast.errors import ConfigError, LocalError
from tests.unit.core.batches import A, run, spans, whole

OFFSETS = [0, 7, 2**32 - 5, 2**63 - 5]
MTU = 1_500


def sending(count: int, capacity: int = 10) -> SendWindow:
    """A window with this many messages in it, of one byte each."""
    window = SendWindow(capacity)
    window.append(run(1, count))
    return window


class TestSendWindow:
    def test_capacity_messages_fit_and_one_ack_releases_exactly_one(self) -> None:
        window = sending(10, capacity=10)
        assert window.room()[0] == 0
        with pytest.raises(LocalError, match="room"):
            window.append(run(0))
        assert (window.low, window.high, window.nbytes) == (0, 10, 10)
        assert window.purge(1) == 1
        assert window.room()[0] == 1
        window.append(run(0))
        assert (window.high, window.room()[0], window.outstanding) == (11, 0, 10)

    def test_a_run_goes_in_whole_or_not_at_all(self) -> None:
        window = SendWindow(3)
        with pytest.raises(LocalError):
            window.append(run(0, 4))
        with pytest.raises(LocalError, match="empty"):
            window.append(Batch(A, [], 0))
        assert (window.high, window.nbytes) == (0, 0)

    @pytest.mark.parametrize("offset", OFFSETS)
    def test_numbers_and_order_go_on_as_the_window_moves(self, offset: int) -> None:
        window = SendWindow(5, offset=offset)
        for first in range(offset + 1, offset + 60, 3):
            sent = run(first, 3)
            sent.first = 0
            window.append(sent)
            assert sent.first == first
            assert spans(window.get(whole(first, first + 2))) == [(first, first + 2)]
            assert window.purge(first + 1) in (2, 3)
        assert (window.low, window.high) == (offset + 59, offset + 60)

    def test_purge_stops_at_high_and_a_lower_one_does_nothing(self) -> None:
        window = sending(5)
        assert window.purge(3) == 3
        assert window.purge(2) == window.purge(3) == window.purge(-1) == 0
        assert window.low == 3
        assert window.purge(99) == 2
        assert (window.low, window.delivered, window.high) == (5, 5, 5)
        assert window.room()[0] == 10

    def test_purge_takes_delivered_along(self) -> None:
        window = sending(5)
        window.deliver(1)
        window.purge(3)
        assert (window.low, window.delivered) == (3, 3)
        window.deliver(4)
        window.purge(3)
        assert (window.low, window.delivered) == (3, 4)

    def test_own_deliveries_move_a_mark_and_free_nothing(self) -> None:
        window = sending(3)
        marks = []
        for up_to in (2, 1, 99):
            window.deliver(up_to)
            marks.append((window.low, window.delivered, window.high))
        assert marks == [(0, 2, 3), (0, 2, 3), (0, 3, 3)]
        assert spans(window.get(whole(1, 3))) == [(1, 3)]

    def test_what_is_kept_is_given_cut_to_the_ranges(self) -> None:
        window = sending(4)
        window.append(run(5, 4))
        window.purge(2)
        asked = RangeSet([(0, 0), (2, 3), (6, 99)])
        assert spans(window.get(asked)) == [(3, 3), (6, 8)]
        assert (
            window.get(whole(1, 2)) == window.get(whole(9, 2**64)) == window.get(RangeSet()) == []
        )

    def test_the_bytes_of_a_message_go_with_it(self) -> None:
        window = SendWindow(10)
        window.append(run(1, 3, size=4))
        window.append(run(4, 2, size=5))
        left = []
        for up_to in range(1, 6):
            window.purge(up_to)
            left.append(window.nbytes)
        assert left == [18, 14, 10, 5, 0]

    def test_bytes_bound_the_window_and_one_message_may_pass_them(self) -> None:
        window = SendWindow(100, max_bytes=10)
        assert window.room() == (100, 10)
        window.append(run(1, 2, size=4))
        assert window.room() == (98, 2)
        window.append(run(3, 1, size=99))
        assert window.room() == (0, 0)
        window.purge(2)
        assert window.room() == (0, 0)
        window.purge(3)
        assert window.room() == (100, 10)

    @pytest.mark.parametrize(("capacity", "max_bytes"), [(0, None), (-3, None), (1, 0)])
    def test_a_window_without_room_is_refused(self, capacity: int, max_bytes: int | None) -> None:
        with pytest.raises(ConfigError, match="at least 1"):
            SendWindow(capacity, max_bytes)


class TestOrder:
    @pytest.mark.parametrize("keep", [False, True])
    def test_a_run_that_continues_comes_back_as_the_same_object(self, keep: bool) -> None:
        window = ReceiveWindow(10, keep=keep)
        sent = run(1, 3)
        assert window.put(sent) == [sent]
        assert (window.low, window.delivered, window.handed, window.high) == (0, 0, 3, 3)
        assert window.nbytes == (3 if keep else 0)

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("offset", OFFSETS)
    def test_a_gap_stops_the_run_and_its_fill_frees_it(self, offset: int, keep: bool) -> None:
        window = ReceiveWindow(10, offset, keep)
        got = [spans(window.put(run(offset + seqno))) for seqno in (1, 2, 4, 5, 6, 3)]
        firsts = [[first - offset for first, _ in found] for found in got]
        assert firsts == [[1], [2], [], [], [], [3, 4, 5, 6]]
        assert window.handed == window.high == offset + 6
        assert window.nbytes == (6 if keep else 0)

    def test_a_second_5_changes_nothing(self) -> None:
        window = ReceiveWindow(10)
        window.put(run(1, 2))
        assert window.put(run(5)) == window.put(run(5)) == []
        assert (window.duplicates, window.nbytes) == (1, 1)
        assert spans(window.put(run(3, 2))) == [(3, 4), (5, 5)]
        assert window.put(run(5)) == []
        assert (window.duplicates, window.overflows, window.handed) == (2, 0, 5)

    def test_a_partly_new_run_adds_its_new_parts(self) -> None:
        window = ReceiveWindow(20)
        window.put(run(1, 2))
        window.put(run(5, 2))
        window.put(run(9))
        assert spans(window.put(run(2, 10))) == [(3, 4), (5, 6), (7, 8), (9, 9), (10, 11)]
        assert (window.duplicates, window.nbytes) == (4, 0)

    def test_a_part_keeps_what_the_wire_said(self) -> None:
        window = ReceiveWindow(10)
        window.put(run(1))
        sent = run(1, 3)
        sent.flags, sent.sent_at = FRAGMENT, 9
        [handed] = window.put(sent)
        assert isinstance(handed, Batch)
        assert (handed.first, handed.flags, handed.sent_at, handed.sender) == (2, FRAGMENT, 9, A)

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("offset", OFFSETS)
    def test_fill_take_purge_and_fill_again_keeps_the_order(self, offset: int, keep: bool) -> None:
        window = ReceiveWindow(7, offset, keep)
        got: list[tuple[int, int] | Hole] = []
        for first in range(offset + 1, offset + 60, 4):
            assert window.put(run(first + 2, 2)) == []
            got += spans(window.put(run(first, 2)))
            assert window.take() == []
            window.purge(first + 2)
        assert got == [(first, first + 1) for first in range(offset + 1, offset + 60, 2)]
        assert window.overflows == window.duplicates == 0

    def test_an_empty_run_is_nothing(self) -> None:
        window = ReceiveWindow(10, keep=True)
        assert window.put(Batch(A, [], 0, first=1)) == []
        assert spans(window.put(run(1, 2))) == [(1, 2)]
        assert (window.high, window.duplicates, window.overflows) == (2, 0, 0)


class TestBounds:
    def test_exactly_capacity_messages_fit_and_the_rest_is_dropped_and_counted(self) -> None:
        window = ReceiveWindow(10)
        assert spans(window.put(run(1, 12))) == [(1, 10)]
        assert (window.overflows, window.high) == (2, 10)
        assert window.put(run(11)) == window.put(run(500, 3)) == []
        assert (window.overflows, window.high, window.nbytes) == (6, 10, 0)
        window.deliver(1)
        assert spans(window.put(run(11, 2))) == [(11, 11)]
        assert (window.overflows, window.duplicates) == (7, 0)

    def test_a_run_may_be_known_new_and_too_much_at_once(self) -> None:
        window = ReceiveWindow(5)
        window.put(run(1, 2))
        assert spans(window.put(run(1, 9))) == [(3, 5)]
        assert (window.duplicates, window.overflows) == (2, 4)
        assert window.put(run(4, 4)) == []
        assert (window.duplicates, window.overflows) == (4, 6)

    def test_what_the_application_has_not_taken_counts(self) -> None:
        window = ReceiveWindow(4)
        assert spans(window.put(run(1, 4))) == [(1, 4)]
        assert window.put(run(5)) == []
        assert (window.low, window.delivered, window.overflows) == (0, 0, 1)
        window.deliver(2)
        assert (window.low, window.delivered) == (2, 2)
        assert spans(window.put(run(5, 3))) == [(5, 6)]
        assert window.overflows == 2

    def test_deliver_stops_at_handed_and_a_lower_one_does_nothing(self) -> None:
        window = ReceiveWindow(10)
        window.put(run(1, 3))
        window.put(run(5))
        window.deliver(99)
        window.deliver(1)
        assert (window.delivered, window.handed, window.high) == (3, 3, 5)

    def test_take_hands_up_and_delivers(self) -> None:
        window = ReceiveWindow(10)
        window.hold(1)
        window.put(run(1, 3))
        window.hold(None)
        assert spans(window.take()) == [(2, 3)]
        assert window.low == window.delivered == window.handed == 3
        assert window.take() == []

    def test_a_window_of_one_message(self) -> None:
        window = ReceiveWindow(1)
        assert window.put(run(2)) == []
        for seqno in range(1, 4):
            assert spans(window.put(run(seqno, 2))) == [(seqno, seqno)]
            window.deliver(seqno)
        assert (window.overflows, window.high) == (4, 3)

    def test_what_came_in_order_is_not_kept_alive(self) -> None:
        window = ReceiveWindow(10)
        watched = [Watched(A, [b"x"], 1, first=seqno) for seqno in (1, 3, 2)]
        references = [weakref.ref(batch) for batch in watched]
        for batch in watched:
            window.put(batch)
        assert window.handed == 3
        del batch
        watched.clear()
        gc.collect()
        assert [reference() for reference in references] == [None] * 3

    @pytest.mark.parametrize("capacity", [0, -1])
    def test_a_window_without_room_is_refused(self, capacity: int) -> None:
        with pytest.raises(ConfigError, match="at least 1"):
            ReceiveWindow(capacity)


class TestMissing:
    def test_gaps_are_known_without_a_scan(self) -> None:
        window = ReceiveWindow(100)
        window.put(run(3, 2))
        window.put(run(10))
        assert list(window.gaps) == [(1, 2), (5, 9)]
        assert window.gaps.count == 7
        window.put(run(6, 2))
        assert list(window.gaps) == [(1, 2), (5, 5), (8, 9)]

    def test_an_announcement_makes_the_last_messages_missing(self) -> None:
        window = ReceiveWindow(10)
        window.put(run(1, 2))
        window.expect(5)
        window.expect(4)
        assert list(window.gaps) == [(3, 5)]
        assert spans(window.put(run(3, 2))) == [(3, 4)]
        assert list(window.gaps) == [(5, 5)]
        assert spans(window.put(run(5, 2))) == [(5, 6)]
        assert not window.gaps
        assert window.high == 6

    def test_only_what_would_fit_is_missing(self) -> None:
        window = ReceiveWindow(10)
        window.expect(2**63)
        assert list(window.gaps) == [(1, 10)]
        window.put(run(1, 2))
        window.take()
        window.expect(2**63)
        assert list(window.gaps) == [(3, 12)]

    def test_a_request_for_a_million_missing_messages_fits_one_datagram(self) -> None:
        window = ReceiveWindow(2_000_000, offset=2**63)
        repair = Repair(window, RequestTiming(0.001, 0.1))
        for seqno in range(2**63 + 2, 2**63 + 2_001, 2):
            window.put(run(seqno))
        window.expect(2**63 + 1_001_000)
        assert window.gaps.count == 1_000_000
        repair.note_gaps(now=0.0)
        max_ranges = (MTU - HEADER_SIZE - 64) // 16
        wanted = repair.due(now=1.0, max_ranges=max_ranges, max_messages=4_096)
        assert wanted.count_ranges == max_ranges
        assert list(wanted)[:2] == [(2**63 + 1,) * 2, (2**63 + 3,) * 2]
        assert len(b"".join(encode(7, A, [Nak(A, wanted)]))) <= MTU
        assert window.gaps.count == 1_000_000


class TestKeeping:
    def test_taking_only_moves_the_marker_until_purged(self) -> None:
        window = ReceiveWindow(10, keep=True)
        window.put(run(2, 2))
        assert spans(window.put(run(1))) == [(1, 1), (2, 3)]
        window.deliver(3)
        assert (window.low, window.delivered, window.nbytes) == (0, 3, 3)
        assert spans(window.get(whole(0, 9))) == [(1, 1), (2, 3)]
        window.purge(2)
        assert spans(window.get(whole(0, 9))) == [(3, 3)]
        window.purge(3)
        assert (window.low, window.nbytes) == (3, 0)

    def test_purge_stops_at_delivered_and_a_lower_one_does_nothing(self) -> None:
        window = ReceiveWindow(10, keep=True)
        window.put(run(1, 4))
        window.deliver(3)
        window.purge(99)
        window.purge(1)
        assert (window.low, window.delivered, window.handed) == (3, 3, 4)
        assert spans(window.get(whole(1, 9))) == [(4, 4)]

    def test_the_bound_moves_with_purges_and_not_with_deliveries(self) -> None:
        window = ReceiveWindow(4, keep=True)
        window.put(run(1, 4))
        window.deliver(4)
        assert window.put(run(5)) == []
        window.purge(1)
        assert spans(window.put(run(5, 2))) == [(5, 5)]
        assert window.overflows == 2

    def test_what_waits_behind_a_gap_is_given_to_who_asks(self) -> None:
        for keep in (False, True):
            window = ReceiveWindow(10, keep=keep)
            window.put(run(1))
            window.put(run(3, 2))
            assert spans(window.get(whole(1, 9))) == ([(1, 1), (3, 4)] if keep else [(3, 4)])

    def test_what_was_handed_up_of_a_cut_run_is_given_only_if_kept(self) -> None:
        for keep in (False, True):
            window = ReceiveWindow(10, keep=keep)
            window.hold(2)
            assert spans(window.put(run(1, 4))) == [(1, 2)]
            assert spans(window.get(whole(1, 9))) == [(1, 4) if keep else (3, 4)]


class Watched(Batch):
    """A batch that a weak reference can watch."""

    __slots__ = ("__weakref__",)
