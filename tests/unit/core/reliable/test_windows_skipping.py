"""What a receive window holds back, and what it gives up: bounds of `hold`, holes of `skip`."""

import pytest

from ringcast.core.reliable.windows import Hole, ReceiveWindow
from tests.unit.core.batches import run, spans, whole


class TestHolding:
    def test_nothing_above_the_hold_is_handed_up(self) -> None:
        window = ReceiveWindow(10)
        window.hold(3)
        assert window.held_at == 3
        assert spans(window.put(run(1, 2))) == [(1, 2)]
        assert spans(window.put(run(3, 3))) == [(3, 3)]
        assert window.put(run(6)) == []
        window.hold(5)
        assert spans(window.hand()) == [(4, 5)]
        window.hold(None)
        assert spans(window.put(run(7))) == [(6, 6), (7, 7)]
        assert window.nbytes == 0

    def test_a_hold_below_what_was_handed_up_takes_nothing_back(self) -> None:
        window = ReceiveWindow(10)
        window.put(run(1, 3))
        window.hold(1)
        assert window.put(run(4)) == window.hand() == []
        assert (window.handed, window.high) == (3, 4)

    def test_what_is_held_is_bounded_like_everything(self) -> None:
        window = ReceiveWindow(4)
        window.hold(0)
        assert window.put(run(1, 6)) == []
        assert (window.high, window.nbytes, window.overflows) == (4, 4, 2)


class TestSkipping:
    def test_runs_and_holes_come_in_order(self) -> None:
        window = ReceiveWindow(20)
        window.put(run(3, 2))
        window.put(run(7))
        window.skip(8)
        assert not window.gaps
        handed = spans(window.hand())
        assert handed == [Hole(1, 2), (3, 4), Hole(5, 6), (7, 7), Hole(8, 8)]
        assert window.handed == window.high == 8
        assert spans(window.put(run(9))) == [(9, 9)]

    def test_a_skip_stops_where_it_is_told_and_a_lower_one_does_nothing(self) -> None:
        window = ReceiveWindow(20)
        window.put(run(1))
        window.put(run(6))
        window.skip(3)
        window.skip(1)
        assert list(window.gaps) == [(4, 5)]
        assert spans(window.hand()) == [Hole(2, 3)]
        assert spans(window.put(run(4, 2))) == [(4, 5), (6, 6)]

    def test_what_comes_too_late_is_a_duplicate(self) -> None:
        window = ReceiveWindow(20)
        window.put(run(4))
        window.hold(0)
        window.skip(2)
        assert window.put(run(1, 2)) == []
        assert (window.duplicates, window.nbytes) == (2, 1)
        window.hold(None)
        assert spans(window.put(run(3))) == [Hole(1, 2), (3, 3), (4, 4)]

    def test_a_hole_is_cut_by_a_hold(self) -> None:
        window = ReceiveWindow(20)
        window.hold(2)
        window.skip(5)
        assert spans(window.hand()) == [Hole(1, 2)]
        window.hold(None)
        assert spans(window.hand()) == [Hole(3, 5)]

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("far", [1_000, 2**63])
    def test_to_the_low_of_a_sender_far_ahead(self, keep: bool, far: int) -> None:
        window = ReceiveWindow(4, keep=keep)
        window.put(run(1, 2))
        window.skip(far)
        window.skip(far - 100)
        assert spans(window.hand()) == [Hole(3, far)]
        assert (window.low, window.handed, window.high) == (0, far, far)
        window.deliver(far)
        window.purge(far)
        assert (window.low, window.nbytes) == (far, 0)
        assert spans(window.put(run(far + 1, 5))) == [(far + 1, far + 4)]

    def test_past_the_window_a_message_is_either_known_or_too_much(self) -> None:
        window = ReceiveWindow(4)
        window.skip(1_000)
        window.hand()
        assert window.put(run(500)) == window.put(run(999, 5)) == []
        assert (window.duplicates, window.overflows) == (3, 3)

    def test_what_was_skipped_is_never_given(self) -> None:
        window = ReceiveWindow(10, keep=True)
        window.put(run(1))
        window.skip(3)
        window.put(run(4))
        window.take()
        assert spans(window.get(whole(1, 9))) == [(1, 1), (4, 4)]
        window.purge(2)
        assert spans(window.get(whole(1, 9))) == [(4, 4)]


def test_a_window_knows_how_many_messages_it_gave_up_and_which_was_the_last() -> None:
    window = ReceiveWindow(10)
    assert (window.skipped_count, window.skipped_to, window.holed) == (0, 0, 0)
    window.put(run(3))
    assert window.skip_within(1, 2) == 2
    assert spans(window.hand()) == [Hole(1, 2), (3, 3)]
    assert (window.skipped_count, window.skipped_to, window.holed) == (2, 0, 2)
    window.skip(14)
    assert (window.skipped_count, window.skipped_to) == (13, 14)


def test_the_last_messages_of_a_view_are_stored_past_the_window() -> None:
    window = ReceiveWindow(2, keep=True)
    window.put(run(1, 2))
    window.deliver(2)
    assert window.put(run(3)) == []
    assert window.overflows == 1
    window.reach(100)
    assert window.end == 4  # no more than the sender had room for
    assert spans(window.put(run(3, 2))) == [(3, 4)]
