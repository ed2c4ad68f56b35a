"""What a trace row is: the one definition that the writer, the checks and the audit share.

A row is a RUN: `count` messages of one sender with consecutive numbers, to which the same thing
happened at the same moment. How a member cuts its runs is its own affair, so everything that is
compared between members is additive over cuts. What a column means depends on the kind:

    sent        member is the sender; it numbered seqno … seqno+count-1 in this view. sent_at = at
    delivered   the application of `member` took the run. pos: how many messages of that sender
                this member had gone through in this view before the run's first. place: how many
                messages of all senders its application had taken in this view before that one;
                null where the application is given nothing: for fragments and internal messages
    skipped     the run was given up under the rules for large messages; it takes positions as if
                it had been delivered
    requested   member asked `peer` for messages of `sender` that it lacks
    resent      member sent messages again, for `peer` (null: for all members)
    acked       member heard from `peer` that it has delivered member's messages up to seqno
    blocked     member could not send from `sent_at` to `at`, since `peer` had not acked (null:
                since a view was changing)
    purged      member forgot its own messages seqno … low; the marks are those after it
    window      a sample of the window for `sender` at member: low, delivered, high
    view        member installed the view: `members` by seniority, `names` likewise
    agreed      member knows that a majority has agreed on this view, and may send. The view agreed
                on before it is `seqno` by `peer` (both null: none); `members` have left in order
                since then and count no more
    closed      member left in good order, in this view. It promises that it delivered what was
                sent there; a member without it is taken to have crashed after its last row

A view is identified by `view` and `view_by`. Message numbers are those of the multicast layer; a
message that travels as k fragments takes k of them. `digest` is the sum of the crc32 of the run's
payloads, or null where nobody computes it.
"""

from __future__ import annotations

from typing import NamedTuple

LONG, INT, STRING, LONGS, STRINGS = "long", "int", "string", "list<long>", "list<string>"

COLUMNS: tuple[tuple[str, str], ...] = (
    ("member", LONG),
    ("view", LONG),
    ("view_by", LONG),
    ("sender", LONG),
    ("kind", STRING),
    ("seqno", LONG),
    ("count", INT),
    ("pos", LONG),
    ("nbytes", LONG),
    ("digest", LONG),
    ("sent_at", LONG),
    ("at", LONG),
    ("peer", LONG),
    ("low", LONG),
    ("delivered", LONG),
    ("high", LONG),
    ("members", LONGS),
    ("names", STRINGS),
    ("place", LONG),
)
"""Name and type of each column, in the order of the file. Times are microseconds since 1970."""

REQUIRED = ("member", "view", "view_by", "kind", "at")
"""Columns that are never null."""

LATER = ("place",)
"""Columns that traces of earlier versions do not have: they read as null."""

SENT, DELIVERED, SKIPPED = "sent", "delivered", "skipped"
REQUESTED, RESENT, ACKED, BLOCKED = "requested", "resent", "acked", "blocked"
PURGED, WINDOW, VIEW, CLOSED = "purged", "window", "view", "closed"
AGREED = "agreed"

MESSAGE_KINDS = (SENT, DELIVERED, SKIPPED)
"""What every message leaves behind: nearly all rows of a trace."""

CONTROL_KINDS = (REQUESTED, RESENT, ACKED, BLOCKED, PURGED, WINDOW, VIEW, CLOSED, AGREED)
"""What happens now and then; written to row groups of their own, so that readers can step over."""

KINDS = MESSAGE_KINDS + CONTROL_KINDS

COUNT_MAX = 1 << 20
"""The longest run: the sums of the audit stay within 64 bits up to here."""


class Row(NamedTuple):
    """One row of a trace. Addresses are plain numbers, and signed only in the file."""

    member: int
    view: int
    view_by: int
    sender: int | None
    kind: str
    seqno: int | None = None
    count: int = 1  # type: ignore[assignment]  # the column's name, over tuple.count
    pos: int | None = None
    nbytes: int | None = None
    digest: int | None = None
    sent_at: int | None = None
    at: int = 0
    peer: int | None = None
    low: int | None = None
    delivered: int | None = None
    high: int | None = None
    members: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    place: int | None = None


def signed(address: int) -> int:
    """The 64 bits of an address as the signed number that Parquet and Spark have room for."""
    return address - (1 << 64) if address >= 1 << 63 else address


def unsigned(number: int) -> int:
    """The address again, from the signed number of a file."""
    return number + (1 << 64) if number < 0 else number
