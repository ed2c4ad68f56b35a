"""The windows of one view: joins, departures, frames and marks."""

import pytest

from ringcast.core.stack.snapshot import SentMarks
from ringcast.layers.multicast.group_windows import GroupWindows
from tests.unit.layers.multicast.parts import SPEC, A, B, C, D, Parts, installation, run


def test_a_view_has_a_window_for_every_other_member() -> None:
    parts = Parts()
    assert list(parts.group.windows) == [B, C]
    assert not parts.group.is_alone


def test_a_newcomers_window_begins_where_its_view_does() -> None:
    parts = Parts()
    parts.group.install(installation(A, B, C, D, old=(A, B, C), number=2, starts={D: 7}))
    assert parts.group.windows[D].handed == 7


@pytest.mark.parametrize("keep", [True, False])
def test_a_departed_window_is_kept_for_others_where_receivers_keep_messages(keep: bool) -> None:
    parts = Parts(keep)
    parts.group.windows[B].put(run(1))
    parts.group.install(installation(A, C, old=(A, B, C), number=2))
    assert list(parts.group.windows) == [C]
    assert list(parts.group.departed) == ([B] if keep else [])
    parts.group.install(installation(A, C, old=(A, C), number=3))
    assert not parts.group.departed


def test_a_member_that_returns_with_the_view_that_it_left_gets_a_new_window() -> None:
    parts = Parts()
    parts.group.windows[B].put(run(1))
    change = installation(A, B, C, old=(A, C), number=2, starts={B: 5})
    object.__setattr__(change, "left", (B,))
    parts.group.install(change)
    assert parts.group.windows[B].handed == 5


def test_own_frames_carry_the_view_and_the_low_mark() -> None:
    parts = Parts()
    parts.send(3)
    parts.group.purge_sent(2)
    frame = parts.group.frame(run(3, 1, A))
    assert (frame.view, frame.start, frame.low, frame.first) == (parts.group.view, 0, 2, 3)


def test_a_departed_senders_frames_belong_to_a_former_view() -> None:
    frame = Parts().group.frame(run(3, 2, D))
    assert (frame.origin, frame.start, frame.low) == (D, 4, 0)


def test_purging_says_whether_it_freed_anything() -> None:
    parts = Parts()
    parts.send(3)
    assert parts.group.purge_sent(2)
    assert not parts.group.purge_sent(2)


def test_the_marks_of_all_senders_are_in_digest_handed_and_snapshot() -> None:
    parts = Parts()
    parts.send(2)
    parts.group.windows[B].put(run(1, 3))
    parts.group.windows[B].deliver(1)
    assert parts.group.handed() == {A: 2, B: 3, C: 0}
    assert tuple(parts.group.digest()[B]) == (0, 1, 3)
    assert parts.group.snapshot().sent == SentMarks(low=0, delivered=0, high=2, nbytes=20)


def test_a_view_that_does_not_match_the_members_is_refused() -> None:
    group = GroupWindows(Parts().env, SPEC, True)
    with pytest.raises(AssertionError):
        group.install(installation(A, B, old=(A, B)))


def test_a_view_cannot_begin_after_the_last_message_that_was_sent() -> None:
    parts = Parts()
    parts.send(3)
    parts.group.install(installation(A, B, C, old=(A, B, C), number=2, starts={A: 2**60}))
    assert parts.group.start == 3
