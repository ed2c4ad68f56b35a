"""Picks the rows that show a violation: a few of its member, around the messages in question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ringcast.trace.schema import ACKED, AGREED, DELIVERED, PURGED, SENT, SKIPPED, VIEW, WINDOW, Row
from ringcast.trace.violations import Violation

ROWS_MAX = 4
"""How many rows of a kind are shown."""

KINDS = {
    **dict.fromkeys(("marks", "capacity"), (WINDOW, PURGED)),
    **dict.fromkeys(("purged-before", "purged-undelivered"), (PURGED, DELIVERED)),
    "acked-undelivered": (ACKED, DELIVERED),
    **dict.fromkeys(("outsider", "membership", "reinstalled"), (VIEW,)),
    **dict.fromkeys(("unknown-kind", "malformed", "others-row", "unrecorded-view"), ()),
    "two-majorities": (VIEW, AGREED),
    "unagreed": (SENT,),
    "numbered-twice": (SENT,),
    "numbered-again": (SENT,),
    "unrecorded-sending": (SENT,),
    "uninstalled-sending": (SENT,),
}
"""The kinds of rows that show a cause, where they are not deliveries; none for rows that are
unreadable or missing."""


def kinds_of(cause: str) -> tuple[str, ...]:
    """The kinds of rows that show a cause."""
    return KINDS.get(cause, (DELIVERED, SKIPPED))


def about_marks(cause: str) -> bool:
    """Tell whether a cause is about the marks of a window, and its range is made of them."""
    return cause in ("marks", "capacity")


def witness(violation: Violation, kind: str) -> int:
    """The member whose rows of a kind show a violation: of a purge, that which was harmed."""
    harmed = violation.peer if kind == DELIVERED else None
    return violation.member if harmed is None else harmed


def evidence(violation: Violation, rows: Iterable[Row]) -> list[Row]:
    """The rows that show a violation, at most ROWS_MAX of a kind, in the order of messages."""
    where = violation.view, violation.view_by, violation.sender
    kinds = kinds_of(violation.cause)
    found = defaultdict[str, list[Row]](list)
    for row in rows:
        if row.kind not in kinds or (row.view, row.view_by, row.sender) != where:
            continue
        if row.member == witness(violation, row.kind) and _touches(row, violation):
            found[row.kind].append(row)
    return [row for kind in kinds for row in sorted(found[kind], key=_order)[:ROWS_MAX]]


def _touches(row: Row, violation: Violation) -> bool:
    if violation.first is None or violation.last is None:
        return True
    if row.kind in (WINDOW, PURGED):
        low, high = row.low or 0, row.high or 0
        if about_marks(violation.cause):
            return (low + 1, high) == (violation.first, violation.last)
        return low >= violation.first
    first = row.seqno or 0
    return first <= violation.last + 1 and first + row.count >= violation.first


def _order(row: Row) -> tuple[int, int]:
    """By message; purges by time, as the earliest is the one to blame."""
    return (0 if row.kind in (PURGED, WINDOW, VIEW) else row.seqno or 0), row.at
