"""The walk over one group against a list of what happened to each single message."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ringcast.trace.judging.summary import Range
from ringcast.trace.judging.walk import WalkFinding, walk_deliveries, walk_sendings
from ringcast.trace.schema import Row


def rows(*runs: tuple[int, int, int]) -> list[Row]:
    """Deliveries: first message, count, position."""
    return [Row(1, 1, 1, 2, "delivered", f, count, pos=pos) for f, count, pos in runs]


def walk(*runs: tuple[int, int, int]) -> list[WalkFinding]:
    return walk_deliveries(rows(*runs), None, [], False)[0]


def test_what_tiles_a_range_is_good() -> None:
    assert walk((5, 3, 0), (8, 1, 3), (9, 7, 4)) == []


def test_a_hole_in_the_numbers_is_a_gap() -> None:
    assert walk((1, 2, 0), (5, 2, 2)) == [("gap", 3, 4)]


def test_a_hole_in_both_is_a_lost_row() -> None:
    assert walk((1, 2, 0), (5, 2, 4)) == [("unrecorded", 3, 4)]
    assert walk((5, 2, 4)) == [("unrecorded", 1, 4)]


def test_a_second_delivery_is_a_duplicate() -> None:
    assert walk((1, 3, 0), (2, 1, 3), (4, 1, 4)) == [("repeated", 2, 2)]


def test_a_late_delivery_is_out_of_order() -> None:
    assert walk((1, 1, 0), (3, 1, 1), (2, 1, 2), (4, 1, 3)) == [("late", 2, 2)]


def test_two_deliveries_cannot_share_a_position() -> None:
    assert walk((1, 1, 0), (2, 1, 0)) == [("misplaced", 2, 2)]


def test_messages_of_another_view_do_not_make_gaps() -> None:
    own, other = Range(1, 4), Range(5, 9)
    found, extent = walk_deliveries(rows((1, 4, 0), (8, 1, 3)), own, [other], True)
    assert found == [("other-view", 8, 8)]
    assert extent == Range(1, 4)


def test_what_nobody_sent_is_told() -> None:
    found, extent = walk_deliveries(rows((1, 6, 0)), Range(2, 4), [], True)
    assert found == [("unsent", 1, 6)]
    assert extent == Range(1, 6)
    assert walk_deliveries(rows((1, 6, 0)), Range(1, 4), [], False)[0] == []


def test_senders_number_without_holes() -> None:
    sent = [Row(1, 1, 1, 1, "sent", f, n) for f, n in ((1, 3), (6, 2), (7, 3))]
    assert walk_sendings(sent) == [("unrecorded-sending", 4, 5), ("numbered-twice", 7, 7)]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=14))
def test_gaps_and_repetitions_are_exactly_what_is_missing_and_doubled(numbers: list[int]) -> None:
    """The application was given these messages, in this order."""
    found = walk(*((number, 1, pos) for pos, number in enumerate(numbers)))
    times = Counter(numbers)
    missing = {n for n in range(min(numbers), max(numbers)) if not times[n]}
    assert spread(found, "gap") == Counter(missing)
    assert spread(found, "repeated") == Counter({n: c - 1 for n, c in times.items() if c > 1})
    assert bool(found) == (numbers != list(range(numbers[0], numbers[0] + len(numbers))))


@given(st.integers(2, 12), st.data())
def test_rows_lost_from_a_trace_are_exactly_the_unrecorded_ones(
    count: int, data: st.DataObject
) -> None:
    kept = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    found = walk(*((100 + pos, 1, pos) for pos in kept))
    lost = {100 + pos for pos in range(kept[-1]) if pos not in kept}
    assert spread(found, "unrecorded") == Counter(lost)
    assert {finding.cause for finding in found} <= {"unrecorded"}


def spread(found: list[WalkFinding], cause: str) -> Counter[int]:
    """Each message that findings of a cause are about."""
    return Counter(
        n
        for finding in found
        if finding.cause == cause
        for n in range(finding.first, finding.last + 1)
    )
