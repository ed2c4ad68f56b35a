"""Messages that arrive before their view."""

from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Data
from ringcast.layers.multicast.early_data import LATER_VIEWS_MAX, EarlyData
from tests.unit.layers.multicast.parts import A, B, C, D, Parts, installation, run


def frame(number: int, start: int = 0) -> Data:
    return Data(ViewId(number, A), start, B, start + 1, 0, 0, 0, [b"x"], 1, 1)


def early(parts: Parts, parked_max: int = 2) -> EarlyData:
    return EarlyData(parts.group, parts.flush, parked_max, 1_000)


def test_messages_of_an_earlier_view_are_refused() -> None:
    parts = Parts()
    parts.group.install(installation(A, B, C, old=(A, B, C), number=5))
    assert not early(parts).admit(B, parts.group.windows[B], frame(4))


def test_the_next_view_says_where_this_one_ends() -> None:
    parts = Parts()
    window = parts.group.windows[B]
    assert early(parts).admit(B, window, frame(2, start=3))
    assert window.held_at == 3


def test_a_view_further_ahead_holds_back_everything_new() -> None:
    parts = Parts()
    window = parts.group.windows[B]
    window.put(run(1, 2))
    assert early(parts).admit(B, window, frame(3, start=9))
    assert window.held_at == 2


def test_a_view_change_under_way_decides_alone_what_is_held_back() -> None:
    parts = Parts()
    parts.flush.aim(ViewId(2, A), {B: 4, C: 0}, ())
    window = parts.group.windows[B]
    assert early(parts).admit(B, window, frame(3, start=2))
    assert window.held_at == 4


def test_the_installed_view_lifts_the_bound_and_later_ones_keep_theirs() -> None:
    parts = Parts()
    window, data = parts.group.windows[B], early(parts)
    data.admit(B, window, frame(2, start=3))
    data.admit(B, window, frame(3, start=5))
    parts.group.install(installation(A, B, C, old=(A, B, C), number=2))
    data.release(B, window)
    assert window.held_at == 5
    parts.group.install(installation(A, B, C, old=(A, B, C), number=3))
    data.release(B, window)
    assert window.held_at is None


def test_a_member_that_left_is_forgotten() -> None:
    parts = Parts()
    window, data = parts.group.windows[B], early(parts)
    data.admit(B, window, frame(2, start=3))
    data.forget(B)
    data.release(B, window)
    assert window.held_at is None


def test_parked_frames_return_with_their_view() -> None:
    data = early(Parts())
    one, two = frame(2), frame(3)
    assert data.park(one, D)
    assert data.park(two, D)
    assert not data.park(frame(2), D), "there is no room for a third"
    assert data.unpark(ViewId(2, A)) == [(one, D)]
    assert data.unpark(ViewId(3, A)) == [(two, D)]


def test_parked_frames_of_a_view_that_was_never_installed_are_freed() -> None:
    data = early(Parts())
    data.park(frame(2), D)
    assert data.unpark(ViewId(3, A)) == []
    assert data.park(frame(4), D)
    assert data.park(frame(4), D)


def test_parked_frames_are_bounded_in_bytes_too() -> None:
    data = early(Parts(), parked_max=1_000)
    large = Data(ViewId(2, A), 0, D, 1, 0, 0, 0, [bytes(400)], 400, 400)
    empty = Data(ViewId(2, A), 0, D, 1, 0, 0, 0, [b""] * 100, 0, 0)
    assert not data.park(empty, D), "messages without content take memory as well"
    assert data.park(large, D)
    assert data.park(large, D)
    assert not data.park(large, D)
    assert data.parked_bytes <= 1_000
    data.unpark(ViewId(2, A))
    assert data.parked_bytes == 0


def test_only_frames_of_a_view_that_a_member_could_make_are_parked() -> None:
    data = early(Parts())
    assert not data.park(frame(2**40), D), "no view is that far ahead"
    stranger = Data(ViewId(2, D), 0, D, 1, 0, 0, 0, [b"x"], 1, 1)
    assert not data.park(stranger, D), "a stranger makes no view of this group"


def test_of_two_later_views_the_earlier_end_holds() -> None:
    parts = Parts()
    window, data = parts.group.windows[B], early(parts)
    window.put(run(1, 2))
    assert data.admit(B, window, frame(3, start=9))
    assert data.admit(B, window, frame(2, start=5))
    assert window.held_at == 2


def test_how_far_ahead_a_view_is_counts_from_the_one_that_is_installed() -> None:
    parts = Parts()
    parts.group.install(installation(A, B, C, old=(A, B, C), number=1_000_000))
    data = early(parts)
    assert data.park(frame(1_000_000 + LATER_VIEWS_MAX), D)
    assert not data.park(frame(1_000_001 + LATER_VIEWS_MAX), D)
