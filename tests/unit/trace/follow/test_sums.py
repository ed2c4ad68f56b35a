"""Sums over the rows of a group: as small while a file is read as when it has been read."""

import random

import pytest

from ringcast.trace.follow.sums import RUNS_JOINED, RUNS_MAX, GroupSums, Purges
from ringcast.trace.schema import DELIVERED, Row


def delivered(seqno: int) -> Row:
    return Row(1, 1, 1, 2, DELIVERED, seqno, 1, seqno - 1, 10, 5, seqno, seqno + 1)


def sums_of(numbers: list[int]) -> tuple[GroupSums, int]:
    """The sums, and how many runs there were at most."""
    sums, most = GroupSums(), 0
    for number in numbers:
        sums.add(delivered(number), 0)
        most = max(most, len(sums.runs))
    sums.tidy()
    return sums, most


def test_a_file_with_many_rows_takes_little_room() -> None:
    sums, most = sums_of([*range(1, 50_001)])
    assert most <= RUNS_JOINED
    assert sums.runs == [(1, 50_000, 0)]


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_order_make_the_same_sums(seed: int) -> None:
    """Also where, on the way, there are more runs than are kept at the end."""
    numbers = [*range(1, 20_001)]
    random.Random(seed).shuffle(numbers)
    sums, most = sums_of(numbers)
    assert sums.runs == [(1, 20_000, 0)]
    assert most > RUNS_MAX


def test_of_a_broken_group_the_runs_in_the_middle_are_left_out() -> None:
    sums, _ = sums_of([*range(1, 20_001, 2)])
    assert len(sums.runs) == RUNS_MAX
    assert (sums.runs[0][0], sums.runs[-1][0]) == (1, 19_999)


def test_purges_take_little_room_while_they_are_read() -> None:
    purges = Purges()
    for number in range(1, 30_001):
        purges.add(number, number)
        assert len(purges.marks) < RUNS_JOINED
