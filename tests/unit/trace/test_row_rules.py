"""Which rows can be used: a row without its fields is told, and harms no other check."""

import pytest

from ringcast.trace.check import check
from ringcast.trace.row_rules import row_problem
from ringcast.trace.schema import Row
from ringcast.trace.violations import Violation

GOOD = Row(1, 1, 1, 1, "delivered", 1, 2, pos=0, at=12, sent_at=10)

PROBLEMS: list[tuple[dict[str, object], str]] = [
    ({"kind": "teleported"}, "unknown-kind"),
    ({"kind": None}, "malformed"),
    ({"member": None}, "malformed"),
    ({"at": None}, "malformed"),
    ({"at": -5}, "malformed"),
    ({"sender": None}, "malformed"),
    ({"seqno": None}, "malformed"),
    ({"seqno": (1 << 63) - 1}, "malformed"),
    ({"count": 0}, "malformed"),
    ({"digest": 1 << 60}, "malformed"),
    ({"kind": "sent", "sender": 2}, "others-row"),
    ({"kind": "purged"}, "malformed"),
    ({"kind": "view"}, "malformed"),
    ({"kind": "view", "members": (1, None)}, "malformed"),
]


@pytest.mark.parametrize(("change", "problem"), PROBLEMS)
def test_a_row_that_cannot_be_used_is_told_once(change: dict[str, object], problem: str) -> None:
    wrong = GOOD._replace(**change)  # type: ignore[arg-type]  # wrong types are the point
    assert row_problem(wrong) == problem
    rows = [
        Row(1, 1, 1, None, "view", at=0, members=(1,)),
        Row(1, 1, 1, 1, "sent", 1, 2, at=10),
        GOOD,
        Row(1, 1, 1, None, "closed", at=20),
    ]
    assert [violation.cause for violation in check([*rows, wrong, wrong])] == [problem]


def test_a_good_row_has_no_problem() -> None:
    assert row_problem(GOOD) is None
    assert row_problem(GOOD._replace(pos=None)) is None, "the neighbours find that out"


def two_members() -> list[Row]:
    """Two members in a view, and five messages from the first to both."""
    return [
        *(Row(m, 1, 1, None, "view", at=0, members=(1, 2)) for m in (1, 2)),
        Row(1, 1, 1, 1, "sent", 1, 5, at=10, sent_at=10, digest=9, nbytes=50),
        *(
            Row(m, 1, 1, 1, "delivered", 1, 5, pos=0, at=15, sent_at=10, digest=9, nbytes=50)
            for m in (1, 2)
        ),
        *(Row(m, 1, 1, None, "closed", at=20) for m in (1, 2)),
    ]


def test_a_missing_view_row_is_told_once() -> None:
    rows = two_members()
    assert check(rows) == []
    del rows[1]
    assert check(rows) == [Violation("unrecorded-view", 2, 1, 1)]


def test_what_a_busy_member_sends_in_a_view_that_it_has_not_taken_yet_is_in_order() -> None:
    rows = two_members()
    sent = next(row for row in rows if row.kind == "sent")
    ahead = sent._replace(view=2, seqno=6, sent_at=12, at=12)
    other = Row(2, 2, 1, None, "view", at=12, members=(1, 2))
    assert check([*rows[:5], ahead, other]) == []
    later = Row(1, 3, 1, None, "view", at=30, members=(1, 2))
    assert check([*rows[:5], ahead, other, later]) == [Violation("unrecorded-view", 1, 2, 1)]


def test_other_sizes_are_noticed() -> None:
    rows = [row._replace(nbytes=51) if row.member == 2 and row.count == 5 else row
            for row in two_members()]  # fmt: skip
    assert check(rows) == [Violation("sizes", 2, 1, 1, 1, None, 1, 5)]


def test_a_delivery_before_its_sending_is_noticed() -> None:
    rows = [row._replace(at=4) if row.member == 2 and row.pos == 0 else row
            for row in two_members()]  # fmt: skip
    assert check(rows) == [Violation("before-sent", 2, 1, 1, 1, None, 1, 5)]
    assert check(rows, skew_us=6) == []
