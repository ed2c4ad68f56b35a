"""What members owe each other, judged: here one order, where the stack promises it."""

import random

import pytest

from ringcast import presets
from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.schema import Row
from ringcast.trace.violations import Violation
from tests.unit.trace.simulations import ordered_history, reordered

RULES = rules_of(presets.lan().with_total_order())._asdict()
V1, V2 = (1, 1), (2, 1)


def installed(view: tuple[int, int], *members: int) -> list[Row]:
    """A view of these members; in the first one each sends five messages."""
    rows = [Row(m, *view, None, "view", at=view[0], members=members) for m in members]
    sent = [Row(m, *view, m, "sent", 1, 5, at=3) for m in members]
    return rows + sent if view == V1 else rows


def took(member: int, *runs: tuple[int, int, int, int | None]) -> list[Row]:
    """Deliveries in the first view: sender, first seqno, count, place."""
    return [
        Row(member, *V1, sender, "delivered", first, count, pos=first - 1, at=5, place=place)
        for sender, first, count, place in runs
    ]


def orders(rows: list[Row]) -> list[Violation]:
    return [v for v in check(rows, ordered=True) if v.cause == "another-order"]


def test_cuts_do_not_matter() -> None:
    rows = installed(V1, 1, 2) + installed(V2, 1, 2)
    rows += took(1, (1, 1, 4, 0), (2, 1, 3, 4), (1, 5, 1, 7))
    rows += took(2, (1, 1, 1, 0), (1, 2, 3, 1), (2, 1, 2, 4), (2, 3, 1, 6), (1, 5, 1, 7))
    assert orders(rows) == []


def test_members_that_go_on_together_have_one_order() -> None:
    rows = installed(V1, 1, 2, 3) + installed(V2, 1, 2, 3)
    for member in (1, 3):
        rows += took(member, (1, 1, 2, 0), (2, 1, 2, 2))
    rows += took(2, (2, 1, 2, 0), (1, 1, 2, 2))
    assert orders(rows) == [Violation("another-order", 2, *V1, s, None, 1, 2) for s in (1, 2)]
    assert [str(v) for v in orders(rows)][:1] == [
        "total-order: messages 1 to 2 delivered in another order than elsewhere (member 2,"
        " view 1@1, sender 1)"
    ]


def test_members_that_go_on_apart_or_crash_may_differ() -> None:
    rows = installed(V1, 1, 2, 3)
    rows.append(Row(1, *V2, None, "view", at=2, members=(1,)))
    rows.append(Row(2, 2, 2, None, "view", at=2, members=(2,)))
    rows += took(1, (1, 1, 2, 0), (2, 1, 2, 2)) + took(2, (2, 1, 2, 0), (1, 1, 2, 2))
    rows += took(3, (2, 1, 1, 0), (1, 1, 2, 1), (2, 2, 1, 3))
    assert orders(rows) == []


def test_members_that_close_in_a_view_have_one_order() -> None:
    rows = installed(V1, 1, 2) + [Row(m, *V1, None, "closed", at=9) for m in (1, 2)]
    rows += took(1, (1, 1, 2, 0), (2, 1, 2, 2)) + took(2, (2, 1, 2, 0), (1, 1, 2, 2))
    assert {v.member for v in orders(rows)} == {2}


def test_what_no_application_takes_has_no_place() -> None:
    rows = installed(V1, 1, 2) + installed(V2, 1, 2)
    rows += took(1, (1, 1, 2, None), (1, 3, 1, 0), (2, 1, 2, 1))
    rows += took(2, (1, 1, 1, None), (1, 2, 1, None), (1, 3, 1, 0), (2, 1, 2, 1))
    assert orders(rows) == []


def test_traces_without_places_are_not_judged() -> None:
    rows = installed(V1, 1, 2) + installed(V2, 1, 2)
    rows += took(1, (1, 1, 2, None), (2, 1, 2, None)) + took(2, (1, 1, 2, 0), (2, 1, 2, 2))
    assert orders(rows) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_group_with_total_order_is_clean(seed: int) -> None:
    rows = ordered_history(seed)
    assert check(rows, **RULES) == []
    assert any(row.place for row in rows)
    assert any(row.place is None for row in rows if row.kind == "delivered")


def test_a_group_without_it_is_not() -> None:
    found = check(ordered_history(1, ordered=False), **RULES)
    assert {violation.guarantee for violation in found} == {"total-order"}
    assert check(ordered_history(1, ordered=False), **rules_of(presets.lan())._asdict()) == []


@pytest.mark.parametrize("seed", range(6))
def test_two_runs_in_another_order_are_found(seed: int) -> None:
    told, rows = reordered(ordered_history(seed % 2), random.Random(seed))
    found = check(rows, **RULES)
    assert told in found
    assert {(v.member, v.cause) for v in found} == {(told.member, "another-order")}
    assert len(found) == 2


# --- majorities ----------------------------------------------------------------------------------


def viewed(number: int, *members: int, before: int | None, left: tuple[int, ...] = ()) -> list[Row]:
    """Members that install a view of member 1 and know that a majority has agreed on it; one of a
    group that began apart is made by its first member."""
    view = number, min(members)
    rows = [Row(m, *view, None, "view", at=number, members=members) for m in members]
    return rows + [
        Row(m, *view, None, "agreed", before, peer=before and 1, at=number, members=left)
        for m in members
    ]


def majorities(rows: list[Row]) -> list[tuple[int, int]]:
    found = [v for v in check(rows, majority=True) if v.guarantee == "majority"]
    return [(v.view, v.view_by) for v in found]


def test_agreed_views_that_have_majorities_of_each_other_are_a_chain() -> None:
    rows = viewed(1, 1, 2, 3, 4, 5, before=None) + viewed(2, 1, 2, 3, before=1)
    assert majorities(rows + viewed(3, 1, 2, before=2)) == []
    assert majorities(rows + viewed(3, 1, before=2, left=(2,))) == []
    assert majorities(rows + viewed(3, 1, before=2)) == [(3, 1)]


def test_two_sides_that_both_agree_are_found() -> None:
    rows = viewed(1, 1, 2, 3, 4, 5, before=None) + viewed(2, 1, 2, 3, before=1)
    assert majorities(rows + viewed(2, 4, 5, before=1)) == [(2, 4)]


def test_a_side_that_passes_over_an_agreed_view_is_found() -> None:
    rows = viewed(1, 1, 2, 3, 4, 5, before=None) + viewed(2, 1, 2, 3, before=1)
    rows += viewed(3, 3, 4, 5, before=1)  # A majority of the first view, and not of the second.
    assert majorities(rows) == [(3, 3)]


def test_of_two_halves_the_one_with_the_most_senior_member_agrees() -> None:
    rows = viewed(1, 1, 2, 3, 4, before=None)
    assert majorities(rows + viewed(2, 1, 4, before=1)) == []
    assert majorities(rows + viewed(2, 2, 3, before=1)) == [(2, 2)]


def test_groups_that_began_apart_have_chains_of_their_own() -> None:
    assert majorities(viewed(1, 1, 2, before=None) + viewed(1, 3, 4, before=None)) == []


def test_messages_are_sent_in_agreed_views_only() -> None:
    rows = installed(V1, 1, 2) + took(1, (1, 1, 5, 0), (2, 1, 5, 5))
    rows += took(2, (1, 1, 5, 0), (2, 1, 5, 5)) + installed(V2, 1, 2)
    agreed = [Row(m, *V1, None, "agreed", at=2, members=()) for m in (1, 2)]
    assert check(rows, majority=True)[0].cause == "unagreed"
    assert check(rows + agreed, majority=True) == check(rows) == []


def test_a_member_that_crashed_may_have_lost_its_last_rows() -> None:
    rows = installed(V1, 1, 2)
    assert check(rows, majority=True) == []
