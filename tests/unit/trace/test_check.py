"""The checks in plain Python: good histories are clean, and every way to spoil one is named."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.trace.check import check
from ringcast.trace.judging.evidence import evidence
from ringcast.trace.schema import Row, signed, unsigned
from ringcast.trace.violations import CAUSES, GUARANTEES, Violation
from tests.unit.trace.histories import digest_of, good_history
from tests.unit.trace.spoils import SPOILS, spoil

CONSEQUENCES = {
    "tail": {"early-purge"},  # what was forgotten is then forgotten too early, too
    "survivors": {"early-purge"},
    "other view": {"lost-trace-row"},  # the row is missing where it was
    "uncounted": {"order"},  # its place is taken
    "wild purge": {"window-bound"},  # its low lies beyond the window's high
}
"""What a spoilt history may break as well."""


@pytest.mark.parametrize("seed", range(60))
def test_a_good_history_is_clean(seed: int) -> None:
    assert check(good_history(seed)) == []


@pytest.mark.parametrize("name", SPOILS)
def test_a_spoilt_history_is_found_out(name: str) -> None:
    tried = 0
    for seed in range(25):
        spoilt = spoil(good_history(seed), random.Random(seed), name)
        if spoilt is not None:
            found = {violation.guarantee for violation in check(spoilt.rows)}
            assert spoilt.guarantee in found, f"seed {seed}"
            assert found <= {spoilt.guarantee} | CONSEQUENCES.get(name, set()), f"seed {seed}"
            tried += 1
    assert tried >= 5


@given(st.integers(0, 10_000), st.sampled_from(sorted(SPOILS)), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_cut_of_runs_matters(
    seed: int, name: str, chance: random.Random
) -> None:
    spoilt = spoil(good_history(seed % 40), chance, name)
    rows = spoilt.rows if spoilt else good_history(seed % 40)
    again = [piece for row in rows for piece in recut(row, chance)]
    chance.shuffle(again)
    whole = {(v.guarantee, v.member, v.view, v.view_by, v.sender) for v in check(rows)}
    assert {(v.guarantee, v.member, v.view, v.view_by, v.sender) for v in check(again)} == whole


def contradicted(seed: int) -> list[Row]:
    """A good history in which two rows of one moment say different things of a view."""
    rows = good_history(seed)
    chance = random.Random(seed)
    view = chance.choice([row for row in rows if row.kind == "view"])
    rows += [view._replace(members=(view.member,)), view._replace(members=())]
    agreed = view._replace(kind="agreed", seqno=1, peer=view.member, members=(5,))
    return [*rows, agreed, agreed._replace(seqno=None), agreed._replace(members=())]


@pytest.mark.parametrize("seed", range(12))
def test_of_rows_that_contradict_each_other_the_same_one_counts(seed: int) -> None:
    rows, chance = contradicted(seed), random.Random(seed)
    expected = check(rows, majority=True)
    for _ in range(4):
        chance.shuffle(rows)
        assert check(rows, majority=True) == expected


def recut(row: Row, chance: random.Random) -> list[Row]:
    """The same deliveries as other runs; a run with a wrong digest stays whole."""
    first, pos, sender = row.seqno or 0, row.pos or 0, row.sender or 0
    right = sum(digest_of(sender, first + i) for i in range(row.count))
    if row.kind != "delivered" or row.count < 2 or row.digest != right:
        return [row]
    cut = chance.randint(1, row.count - 1)
    head = sum(digest_of(sender, first + i) for i in range(cut))
    return [
        row._replace(count=cut, digest=head, nbytes=100 * cut),
        row._replace(
            seqno=first + cut,
            pos=pos + cut,
            count=row.count - cut,
            digest=right - head,
            nbytes=100 * (row.count - cut),
        ),
    ]


def test_a_crashed_member_may_lack_a_tail_and_a_closed_one_may_not() -> None:
    rows = [
        *(view(m, 1, at=0) for m in (1, 2)),
        Row(1, 1, 1, 1, "sent", 1, 5, at=10),
        Row(1, 1, 1, 1, "delivered", 1, 5, pos=0, at=11),
        Row(2, 1, 1, 1, "delivered", 1, 3, pos=0, at=12),
        Row(1, 1, 1, None, "closed", at=20),
    ]
    assert check(rows) == []
    closed = [*rows, Row(2, 1, 1, None, "closed", at=20)]
    assert check(closed) == [Violation("tail", 2, 1, 1, 1, None, 4, 5)]


def test_a_crashed_sender_owes_nothing_but_agreement() -> None:
    rows = [
        *(view(m, 1, at=0) for m in (1, 2, 3)),
        Row(1, 1, 1, 1, "sent", 1, 9, at=10),
        Row(2, 1, 1, 1, "delivered", 1, 4, pos=0, at=12),
        Row(3, 1, 1, 1, "delivered", 1, 4, pos=0, at=12),
        *(view(m, 2, at=30) for m in (2, 3)),
    ]
    assert check(rows) == []
    fewer = [row._replace(count=3) if row.member == 3 and row.pos == 0 else row for row in rows]
    assert check(fewer) == [Violation("survivors", 3, 1, 1, 1, None, 4, 4)]


def test_partitions_need_not_agree() -> None:
    rows = [
        *(view(m, 1, at=0) for m in (1, 2, 3)),
        Row(1, 1, 1, 1, "sent", 1, 9, at=10),
        Row(1, 1, 1, 1, "delivered", 1, 9, pos=0, at=12),
        Row(2, 1, 1, 1, "delivered", 1, 4, pos=0, at=12),
        view(1, 2, at=30),
        view(2, 2, by=2, at=30, members=(2, 3)),
    ]
    assert check(rows) == []


def test_skew_forgives_a_purge_that_seems_early() -> None:
    rows = [
        *(view(m, 1, at=0) for m in (1, 2)),
        Row(1, 1, 1, 1, "sent", 1, 2, at=10),
        Row(1, 1, 1, 1, "delivered", 1, 2, pos=0, at=10),
        Row(2, 1, 1, 1, "delivered", 1, 2, pos=0, at=60),
        Row(1, 1, 1, 1, "purged", 1, 2, at=50, low=2, delivered=2, high=2),
    ]
    assert check(rows) == [Violation("purged-before", 1, 1, 1, 1, 2, 1, 2)]
    assert check(rows, skew_us=10) == []


def test_windows_and_skips_are_judged_by_what_the_stack_allows() -> None:
    rows = [
        *(view(m, 1, at=0) for m in (1, 2)),
        Row(1, 1, 1, 1, "window", at=5, low=10, delivered=12, high=30),
        Row(2, 1, 1, 1, "skipped", 1, 2, pos=0, at=60),
    ]
    assert check(rows, capacity=20) == []
    assert check(rows, capacity=19) == [Violation("capacity", 1, 1, 1, 1, None, 11, 30)]
    assert check(rows, skips=False) == [Violation("skip-forbidden", 2, 1, 1, 1, None, 1, 2)]


def test_every_violation_is_shown_by_rows() -> None:
    for seed in range(20):
        for name in SPOILS:
            spoilt = spoil(good_history(seed), random.Random(seed), name)
            for violation in check(spoilt.rows) if spoilt else ():
                if violation.cause not in ("tail", "survivors"):  # there may be nothing to show
                    assert evidence(violation, spoilt.rows if spoilt else ()), str(violation)


def test_violations_read_as_sentences() -> None:
    violation = Violation("purged-before", signed(2**64 - 1), 3, 1, 1, signed(2**63), 7, 7)
    assert str(violation) == (
        "early-purge: message 7 purged before 8000000000000000 delivered them "
        "(member ffffffffffffffff, view 3@1, sender 1)"
    )
    assert {cause.guarantee for cause in CAUSES.values()} == set(GUARANTEES)


@given(st.integers(0, 2**64 - 1))
def test_addresses_survive_the_sign(address: int) -> None:
    assert -(2**63) <= signed(address) < 2**63
    assert unsigned(signed(address)) == address


def view(
    member: int, number: int, at: int, by: int = 1, members: tuple[int, ...] = (1, 2, 3)
) -> Row:
    """A member's row of a view."""
    return Row(member, number, by, None, "view", at=at, members=members)
