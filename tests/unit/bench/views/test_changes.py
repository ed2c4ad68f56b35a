"""Times of changes: until the last member saw the view, and how they are printed."""

import pytest

from ringcast_bench.job import BenchFailure, Report
from ringcast_bench.namespace import Namespace
from ringcast_bench.views.changes import HEADING, ChangeTimes, changes, stalls_of, until_view

REPORTS: list[Report] = [
    {"views": [(1.0, 3), (9.5, 2)], "stall": 0.004},
    {"views": [(1.0, 3), (9.75, 2), (11.0, 3)], "stall": 0.002},
]


def test_a_change_ends_with_the_last_member_that_sees_the_view() -> None:
    assert until_view(REPORTS, 9.0, 2) == 0.75
    assert stalls_of(REPORTS) == [0.004, 0.002]


def test_a_view_that_a_member_did_not_see_is_a_failure() -> None:
    with pytest.raises(BenchFailure, match="no view of 4"):
        until_view(REPORTS, 9.0, 4)


def test_a_row_has_the_columns_of_the_heading() -> None:
    change = ChangeTimes(
        what="one joins", stack="tcp", members=5, seconds=(0.1, 0.3, 0.2), stalls=(0.001,) * 3
    )
    assert change.line().split() == [
        *("one", "joins", "tcp", "5", "0.200", "0.300", "0.300", "1.0", "1.0", "1.0")
    ]
    assert len(change.line()) == len(HEADING)


def test_the_stalls_of_all_members_have_a_99th_percentile() -> None:
    stalls = tuple(number / 1_000 for number in range(200))
    change = ChangeTimes(what="one joins", stack="tcp", members=20, seconds=(0.1,), stalls=stalls)
    assert change.line().split()[-3:] == ["99.5", "198.0", "199.0"]
    assert HEADING.split()[-3:] == ["ms", "p99", "worst"]


def test_what_a_group_is_too_small_for_is_left_out() -> None:
    assert list(changes([2], Namespace(), 1, kinds=["kill-two", "kill-three"])) == []
