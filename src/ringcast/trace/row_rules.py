"""Which rows of a trace can be used: one statement for the plain checks and the audit on Spark.

A row that breaks these rules is a violation of its own. All other checks leave it out, since
nothing that follows from it could be trusted.
"""

from __future__ import annotations

from typing import Any

from ringcast.trace.schema import (
    ACKED,
    AGREED,
    COUNT_MAX,
    DELIVERED,
    KINDS,
    PURGED,
    REQUIRED,
    SENT,
    SKIPPED,
    VIEW,
    WINDOW,
    Row,
)

UNKNOWN_KIND, MALFORMED, OTHERS_ROW = "unknown-kind", "malformed", "others-row"
"""The causes, in the order in which they are looked for."""

NEEDED: dict[str, tuple[str, ...]] = {
    SENT: ("sender", "seqno", "count"),
    DELIVERED: ("sender", "seqno", "count"),
    SKIPPED: ("sender", "seqno", "count"),
    ACKED: ("sender", "seqno", "peer"),
    PURGED: ("sender", "seqno", "count", "low", "delivered", "high"),
    WINDOW: ("sender", "low", "delivered", "high"),
    VIEW: ("members",),
    AGREED: ("members",),
}
"""Columns that a row of a kind must have, beside REQUIRED."""

OWN_KINDS = (SENT, ACKED, PURGED)
"""Kinds of rows that a member writes about its own messages only: `sender` is `member`."""

NUMBER_MAX = 3 << 61
"""The largest sequence number and time: sums and differences of two stay within 64 bits."""
MARK_MIN = -(1 << 40)
DIGEST_MAX = 1 << 52
"""The digest of the longest run."""

BOUNDS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("view", "seqno", "pos", "sent_at", "at", "place"), (0, NUMBER_MAX)),
    **dict.fromkeys(("low", "delivered", "high"), (MARK_MIN, NUMBER_MAX)),
    **dict.fromkeys(("digest", "nbytes"), (0, DIGEST_MAX)),
    "count": (1, COUNT_MAX),
}
"""The smallest and the largest value of a column, where it is not null."""


def row_problem(row: Row) -> str | None:
    """The cause why a row can't be used, or None."""
    fields: tuple[Any, ...] = row
    needed = _NEEDED_PLACES.get(row.kind)
    if needed is None:
        return UNKNOWN_KIND
    for place in needed:
        if fields[place] is None:
            return MALFORMED
    for place, least, most in _BOUND_PLACES:
        value = fields[place]
        if value is not None and not least <= value <= most:
            return MALFORMED
    if row.members is not None and None in row.members:
        return MALFORMED
    return OTHERS_ROW if row.kind in OWN_KINDS and row.sender != row.member else None


_PLACE = {name: place for place, name in enumerate(Row._fields)}
_NEEDED_PLACES: dict[str | None, list[int]] = {
    kind: [_PLACE[name] for name in (*REQUIRED, *NEEDED.get(kind or "", ()))]
    for kind in (*KINDS, None)
}
_BOUND_PLACES = [(_PLACE[name], *bounds) for name, bounds in BOUNDS.items()]
