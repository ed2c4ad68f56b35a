"""Admission: equal shares, never above the limit, and nobody waits for ever."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.journal.format.coverage import CoveredRange, ViewDigest
from ringcast.journal.format.manifest import ROLLED, Segment
from ringcast.journal.format.spans import Spans, count
from ringcast.journal.read.admission import admit, fair_shares
from ringcast.journal.read.plan import Key, Slice


def segment(name: str, senders: dict[int, tuple[CoveredRange, ...]]) -> Segment:
    return Segment(
        name=name,
        group="g",
        recorder=1,
        number=1,
        rows=sum(piece.rows for pieces in senders.values() for piece in pieces),
        bytes=1,
        opened_at=0,
        sealed_at=0,
        delivered_at=(0, 0),
        durable=True,
        ended=ROLLED,
        torn_bytes=0,
        views=(ViewDigest(1, 1, senders),),
        holes={},
    )


def whole(name: str, senders: dict[int, tuple[CoveredRange, ...]]) -> Slice:
    some = segment(name, senders)
    return Slice(some, some.cover)


def never(name: str, sender: int, spans: Spans) -> list[int]:
    raise AssertionError(f"{name} {sender} {spans} need not be looked up")


@given(st.dictionaries(st.integers(), st.integers(0, 50)), st.integers(1, 200), st.integers(0, 99))
def test_senders_get_fair_shares(needs: dict[int, int], rows: int, turn: int) -> None:
    demands = {("g", sender): need for sender, need in needs.items()}
    shares = fair_shares(demands, rows, turn)
    assert sum(shares.values()) == min(rows, sum(demands.values()))
    for key, share in shares.items():
        assert 0 <= share <= demands[key]
        # A sender that still wants has at most one less than any other.
        if share < demands[key]:
            assert all(other <= share + 1 for other in shares.values())


def test_a_huge_backlog_does_not_starve_the_others() -> None:
    big = whole("a", {1: (CoveredRange(1, 10**6, 10**6),)})
    small = whole("b", {2: (CoveredRange(1, 5, 5),), 3: (CoveredRange(1, 40, 40),)})
    taken = admit([big, small], 60, 0, never)
    assert taken == {("g", 1): ((1, 28),), ("g", 2): ((1, 5),), ("g", 3): ((1, 27),)}


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_with_more_senders_than_rows_turns_go_round(rows: int) -> None:
    demands: dict[Key, int] = {("g", sender): 10**6 for sender in range(7)}
    got: Counter[Key] = Counter()
    read = 0
    for _ in range(70):
        shares = fair_shares(demands, rows, read)
        read += sum(shares.values())
        got.update(shares)
    assert read == 70 * rows
    assert max(got.values()) - min(got.values()) <= 1


def test_a_sparse_range_is_cut_by_its_rows() -> None:
    sparse = whole("a", {1: (CoveredRange(1, 1000, 10),)})
    asked: list[tuple[str, int, Spans]] = []

    def find(name: str, sender: int, spans: Spans) -> list[int]:
        asked.append((name, sender, spans))
        return list(range(100, 1001, 100))

    assert admit([sparse], 3, 0, find) == {("g", 1): ((1, 399),)}
    assert asked == [("a", 1, ((1, 1000),))]
    assert admit([sparse], 10, 0, never) == {("g", 1): ((1, 1000),)}


def test_a_sparse_rest_with_few_rows_is_taken_whole() -> None:
    sparse = segment("a", {1: (CoveredRange(1, 1000, 10),)})
    rest = Slice(sparse, {1: ((801, 1000),)})
    assert admit([rest], 5, 0, lambda *_: [900, 1000]) == {("g", 1): ((801, 1000),)}


def test_ranges_are_taken_in_the_order_of_seqnos() -> None:
    later = whole("a", {1: (CoveredRange(51, 60, 10),)})
    sooner = whole("b", {1: (CoveredRange(1, 20, 20), CoveredRange(31, 40, 10))})
    taken = admit([later, sooner], 33, 0, never)
    assert taken == {("g", 1): ((1, 20), (31, 40), (51, 53))}
    assert count(taken["g", 1]) == 33
