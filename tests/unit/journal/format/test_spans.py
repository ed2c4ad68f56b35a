"""Ranges of seqnos behave as the sets that they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from ringcast.journal.format import spans
from ringcast.journal.format.spans import Spans

SETS = st.sets(st.integers(1, 40))


def as_spans(numbers: set[int]) -> Spans:
    return spans.normal((number, number) for number in numbers)


def as_set(some: Spans) -> set[int]:
    return {number for first, last in some for number in range(first, last + 1)}


@given(SETS, SETS)
def test_spans_are_sets_of_numbers(a: set[int], b: set[int]) -> None:
    one, other = as_spans(a), as_spans(b)
    assert spans.union(one, other) == as_spans(a | b)
    assert spans.subtract(one, other) == as_spans(a - b)
    assert spans.intersect(one, other) == as_spans(a & b)
    assert spans.count(one) == len(a)
    assert spans.from_text(spans.to_text(one)) == one
    if a:
        assert as_set(spans.gaps(one)) == set(range(min(a), max(a) + 1)) - a


def test_neighbours_are_one_range() -> None:
    assert spans.normal([(4, 6), (1, 3), (9, 9), (8, 7)]) == ((1, 6), (9, 9))


def test_the_text_of_spans_is_short() -> None:
    assert spans.to_text(((1, 50), (81, 90))) == "1-50,81-90"
    assert spans.from_text("") == ()
