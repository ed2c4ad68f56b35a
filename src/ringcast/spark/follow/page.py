"""The page of a continuous audit; the browser loads it again by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ringcast.spark.report.page import Fact, PageSection, page, table
from ringcast.spark.report.scale import microseconds, number, seconds
from ringcast.trace.follow.audit_row import LATE, VIEW, VIOLATION

REFRESH_SECONDS = 5
SHOWN = 200
"""Rows of a table, the newest first."""

Rows = Sequence[Mapping[str, Any]]


def follow_page(directory: str, verdict: str, rows: Mapping[str, Rows], refresh: bool) -> str:
    """The page as HTML. With `refresh`, a browser loads it again every few seconds."""
    word, _, sentence = verdict.partition(": ")
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    below = f"{directory}, as of {now}" if refresh else f"{directory}, ended at {now}"
    views = rows.get(VIEW, [])
    sections = [*_violations(rows), *_late(rows), _views(views)]
    return page(
        *("Audit of a running group", (word.lower(), sentence), list(_facts(views)), sections),
        below,
        refresh=REFRESH_SECONDS if refresh else None,
    )


def _facts(views: Rows) -> Iterator[Fact]:
    yield Fact(number(len(views)), "views judged")
    yield Fact(number(sum(row["sent_messages"] for row in views)), "messages sent")
    yield Fact(number(sum(row["delivered_messages"] for row in views)), "deliveries")
    known = [row["latency_p99"] for row in views if row["latency_p99"] is not None]
    if known:
        yield Fact(microseconds(max(known)), "latency to others, 99 % of the slowest view")


def _violations(rows: Mapping[str, Rows]) -> Iterator[PageSection]:
    found = rows.get(VIOLATION, [])
    if found:
        lines = [
            [row["guarantee"], _name(row), str(row["view"]), row["what"]]
            for row in reversed(found[-SHOWN:])
        ]
        body = table(["guarantee", "member", "view", "what"], lines)
        yield PageSection("Violations", "The newest first.", body)


def _late(rows: Mapping[str, Rows]) -> Iterator[PageSection]:
    found = rows.get(LATE, [])
    if found:
        lines = [
            [_name(row), str(row["view"]), str(row["rows"])] for row in reversed(found[-SHOWN:])
        ]
        body = table(["member", "view", "rows"], lines, numbers=[1, 2])
        reading = "These came after their view was judged, and were not: give more grace."
        yield PageSection("Late rows", reading, body)


def _views(views: Rows) -> PageSection:
    lines = [
        [
            str(row["view"]),
            row["what"],
            f"{row['members']}, {row['unfinished']} of them unfinished"
            if row["unfinished"]
            else str(row["members"]),
            seconds(((row["ended"] or 0) - (row["began"] or 0)) / 1e6),
            number(row["sent_messages"]),
            number(row["delivered_messages"]),
            "" if row["latency_p50"] is None else microseconds(row["latency_p50"]),
            "" if row["latency_p99"] is None else microseconds(row["latency_p99"]),
            number(row["resent_messages"]),
        ]
        for row in reversed(views[-SHOWN:])
    ]
    heads = ["view", "verdict", "members", "time", "sent", "delivered", "median", "99 %", "again"]
    body = table(heads, lines, numbers=range(3, len(heads)))
    reading = "The newest first. A view is judged when all its members have gone on or closed."
    return PageSection("Views", reading, body)


def _name(row: Mapping[str, Any]) -> str:
    return row["member_name"] or f"{(row['member'] or 0) % (1 << 64):x}"
