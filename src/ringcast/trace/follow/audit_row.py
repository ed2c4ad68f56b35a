"""A row of a continuous audit: a view that began, its figures when it is over, a violation, or rows
that came too late."""

from __future__ import annotations

from typing import NamedTuple

VIOLATION, VIEW, LATE, OPEN = "violation", "view", "late", "open"


class AuditRow(NamedTuple):
    """One row. Addresses are signed, as they stand in a trace; times are microseconds."""

    type: str
    """`open`, `violation`, `view` or `late`."""
    view: int
    view_by: int
    what: str
    """The row as a sentence."""
    member: int | None = None
    member_name: str | None = None
    sender: int | None = None
    peer: int | None = None
    guarantee: str | None = None
    cause: str | None = None
    first: int | None = None
    last: int | None = None
    rows: int | None = None
    """Of a view, how many rows of the trace were judged; of late ones, how many there are."""
    violations: int | None = None
    members: int | None = None
    unfinished: int | None = None
    """Members whose trace of the view just ends: they are taken to have crashed."""
    began: int | None = None
    ended: int | None = None
    latency_p50: float | None = None
    latency_p99: float | None = None
    latency_max: float | None = None
    sent_messages: int | None = None
    delivered_messages: int | None = None
    delivered_bytes: int | None = None
    skipped_messages: int | None = None
    requested_messages: int | None = None
    resent_messages: int | None = None
    stalled_us: int | None = None
