"""What a set of ranges promises, each rule by an example."""

import random

import pytest

from ringcast.core.model.ranges import CHUNK_RANGES, RangeSet
from ringcast.errors import LocalError


def test_an_empty_set_is_false_and_has_nothing() -> None:
    ranges = RangeSet()
    assert not ranges
    assert ranges.count == ranges.count_ranges == 0
    assert list(ranges) == []
    assert repr(ranges) == "{}"
    assert 0 not in ranges


def test_ranges_that_touch_or_overlap_become_one() -> None:
    ranges = RangeSet([(1, 3), (7, 9)])
    assert ranges.add(4, 4) == 1
    assert list(ranges) == [(1, 4), (7, 9)]
    assert ranges.add(3, 8) == 2
    assert list(ranges.ranges()) == [(1, 9)]
    assert ranges.add(2, 5) == 0


def test_a_range_may_swallow_several() -> None:
    ranges = RangeSet([(1, 1), (3, 3), (5, 5), (20, 30)])
    assert ranges.add(0, 10) == 8
    assert list(ranges) == [(0, 10), (20, 30)]


def test_ranges_come_out_sorted_in_whatever_order_they_went_in() -> None:
    assert list(RangeSet([(20, 30), (1, 2), (10, 12)])) == [(1, 2), (10, 12), (20, 30)]


@pytest.mark.parametrize(
    ("first", "last", "left", "removed"),
    [
        (5, 5, [(1, 4), (6, 10), (15, 20)], 1),
        (1, 10, [(15, 20)], 10),
        (0, 3, [(4, 10), (15, 20)], 3),
        (8, 16, [(1, 7), (17, 20)], 5),
        (11, 14, [(1, 10), (15, 20)], 0),
        (0, 99, [], 16),
    ],
)
def test_discard_splits_trims_and_removes(
    first: int, last: int, left: list[tuple[int, int]], removed: int
) -> None:
    ranges = RangeSet([(1, 10), (15, 20)])
    assert ranges.discard(first, last) == removed
    assert list(ranges) == left
    assert ranges.count == 16 - removed


def test_a_range_set_knows_its_members_and_what_it_covers() -> None:
    ranges = RangeSet([(3, 7), (9, 9)])
    assert [n for n in range(12) if n in ranges] == [3, 4, 5, 6, 7, 9]
    assert ranges.covers(3, 7)
    assert ranges.covers(9, 9)
    assert not ranges.covers(7, 9)
    assert not ranges.covers(2, 4)
    assert not ranges.covers(10, 11)


def test_first_last_and_count() -> None:
    ranges = RangeSet([(3, 7), (9, 9)])
    assert (ranges.first, ranges.last, ranges.count, ranges.count_ranges) == (3, 9, 6, 2)
    assert ranges.first_or(1) == 3
    assert RangeSet().first_or(1) == 1


def test_an_empty_set_has_neither_first_nor_last() -> None:
    with pytest.raises(LocalError, match="no first"):
        _ = RangeSet().first
    with pytest.raises(LocalError, match="no last"):
        _ = RangeSet().last


def test_a_range_that_runs_downwards_is_refused_and_changes_nothing() -> None:
    ranges = RangeSet([(3, 7)])
    with pytest.raises(LocalError, match="upwards"):
        ranges.add(5, 4)
    with pytest.raises(LocalError, match="upwards"):
        ranges.discard(5, 4)
    with pytest.raises(LocalError, match="upwards"):
        RangeSet([(2, 1)])
    assert list(ranges) == [(3, 7)]


def test_range_sets_have_union_intersection_difference() -> None:
    one, other = RangeSet([(1, 5), (10, 15)]), RangeSet([(4, 11), (20, 21)])
    assert list(one.union(other)) == [(1, 15), (20, 21)]
    assert list(one.intersection(other)) == [(4, 5), (10, 11)]
    assert list(one.difference(other)) == [(1, 3), (12, 15)]
    assert list(other.difference(one)) == [(6, 9), (20, 21)]
    assert one.difference(RangeSet()) == one
    assert not one.difference(one)
    assert list(one) == [(1, 5), (10, 15)]


def test_clip_keeps_what_is_inside() -> None:
    ranges = RangeSet([(1, 5), (10, 15), (20, 25)])
    assert list(ranges.clip(4, 21)) == [(4, 5), (10, 15), (20, 21)]
    assert list(ranges.clip(11, 12)) == [(11, 12)]
    assert ranges.clip(4, 21).count == 10
    assert not ranges.clip(6, 9)
    assert not ranges.clip(12, 11)


def test_overlaps_says_whether_clip_would_keep_anything() -> None:
    few = RangeSet([(3, 5), (10, 15), (20, 25)])
    many = RangeSet([(4 * n, 4 * n + 1) for n in range(1, 2_000)])
    for ranges in (RangeSet(), few, many):
        for low in range(30):
            for high in range(low - 2, 30):
                assert ranges.overlaps(low, high) == bool(ranges.clip(low, high))
        for low in range(7_980, 8_010):
            assert ranges.overlaps(low, low + 1) == bool(ranges.clip(low, low + 1))


def test_limited_cuts_by_ranges_and_by_numbers() -> None:
    ranges = RangeSet([(1, 5), (10, 15), (20, 25)])
    assert list(ranges.limited(2)) == [(1, 5), (10, 15)]
    assert list(ranges.limited(3, 7)) == [(1, 5), (10, 11)]
    assert list(ranges.limited(1, 100)) == [(1, 5)]
    assert list(ranges.limited(max_numbers=5)) == [(1, 5)]
    assert ranges.limited() == ranges
    assert not ranges.limited(0)
    assert not ranges.limited(-1)
    assert not ranges.limited(3, 0)


def test_a_copy_shares_nothing() -> None:
    ranges = RangeSet([(1, 5)])
    copy = ranges.copy()
    copy.add(7, 8)
    whole = ranges.limited()
    whole.discard(1, 1)
    assert list(ranges) == [(1, 5)]
    assert ranges != copy
    copy.clear()
    assert copy == RangeSet()
    assert copy.count == 0


def test_equality_is_by_numbers_and_with_sets_of_ranges_only() -> None:
    assert RangeSet([(1, 2), (3, 4)]) == RangeSet([(1, 4)])
    assert RangeSet([(1, 4)]) != [(1, 4)]
    with pytest.raises(TypeError):
        hash(RangeSet())


def test_repr_shows_ranges_and_single_numbers() -> None:
    assert repr(RangeSet([(3, 7), (9, 9)])) == "{3-7, 9}"


def test_numbers_may_be_as_large_as_a_seqno_gets() -> None:
    ranges = RangeSet([(1, 2**64 - 1)])
    assert ranges.count == 2**64 - 1
    assert ranges
    assert ranges.discard(2**63, 2**63) == 1
    assert list(ranges.ranges()) == [(1, 2**63 - 1), (2**63 + 1, 2**64 - 1)]
    assert list(ranges.union(RangeSet([(2**63, 2**63)])).ranges()) == [(1, 2**64 - 1)]
    assert ranges.intersection(ranges.copy()).count == 2**64 - 2
    assert repr(ranges.clip(2**63 - 1, 2**63 + 1)) == f"{{{2**63 - 1}, {2**63 + 1}}}"


def test_a_list_of_ranges_takes_memory_by_ranges_and_not_by_numbers() -> None:
    assert list(RangeSet([(1, 2**50), (2**60, 2**64)])) == [(1, 2**50), (2**60, 2**64)]


def test_a_range_in_the_middle_of_very_many_moves_a_bounded_number_of_entries() -> None:
    """Every second of 131,072 numbers, in an order without any order, then all of them."""
    numbers = list(range(0, 131_072, 2))
    random.Random(7).shuffle(numbers)
    ranges = RangeSet()
    for number in numbers:
        ranges.add(number, number)
    chunks = ranges._chunks
    assert chunks is not None
    assert ranges.count_ranges == 65_536
    assert max(len(firsts) for firsts, _ in chunks) <= 2 * CHUNK_RANGES
    assert len(chunks) <= 2 * 65_536 // CHUNK_RANGES
    assert ranges.add(0, 131_071) == 65_536
    assert list(ranges) == [(0, 131_071)]
