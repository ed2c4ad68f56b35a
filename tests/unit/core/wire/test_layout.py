"""What a run may say of itself: the highest numbers are right, and the next ones are not."""

import pytest

from ringcast.core.wire.layout import (
    FLAGS_MAX,
    INT_MAX,
    SEQNO_MAX,
    VIEW_NUMBER_MAX,
    is_run_in_bounds,
    is_stream_in_bounds,
)


@pytest.mark.parametrize(
    ("first", "low", "count", "sent_at", "flags"),
    [
        (1, 0, 1, 0, 0),
        (SEQNO_MAX - 2, 0, 2, 0, 0),
        (1, SEQNO_MAX, 1, 0, 0),
        (1, 0, 1, INT_MAX, 0),
        (1, 0, 1, 0, FLAGS_MAX),
    ],
)
def test_a_run_may_reach_each_bound(
    first: int, low: int, count: int, sent_at: int, flags: int
) -> None:
    assert is_run_in_bounds(first, low, count, sent_at, flags)


@pytest.mark.parametrize(
    ("first", "low", "count", "sent_at", "flags"),
    [
        (0, 0, 1, 0, 0),
        (SEQNO_MAX - 1, 0, 2, 0, 0),
        (1, SEQNO_MAX + 1, 1, 0, 0),
        (1, 0, 1, INT_MAX + 1, 0),
        (1, 0, 1, 0, FLAGS_MAX + 1),
    ],
)
def test_a_run_may_not_pass_a_bound(
    first: int, low: int, count: int, sent_at: int, flags: int
) -> None:
    assert not is_run_in_bounds(first, low, count, sent_at, flags)


def test_the_view_and_the_start_of_a_run_are_bounded() -> None:
    assert is_stream_in_bounds(VIEW_NUMBER_MAX, SEQNO_MAX)
    assert not is_stream_in_bounds(VIEW_NUMBER_MAX + 1, 0)
    assert not is_stream_in_bounds(0, SEQNO_MAX + 1)
