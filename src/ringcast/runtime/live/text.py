"""The live view as lines for a terminal."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence

from ringcast.core.model.text import printable
from ringcast.runtime.live.rows import MemberRow
from ringcast.runtime.live.troubles import Trouble, duration_text
from ringcast.runtime.live.watch import Snapshot

SORTS: dict[str, Callable[[MemberRow], object]] = {
    "seniority": lambda row: 0,
    "name": lambda row: row["name"],
    "out": lambda row: -row["bytes_out"],
    "in": lambda row: -row["bytes_in"],
    "window": lambda row: -row["window_percent"],
    "backlog": lambda row: -row["unread_bytes"],
    "lag": lambda row: -row["lag"],
    "resent": lambda row: -row["resent"],
}
"""What the members can be sorted by."""

HEADINGS = (
    *("member", "role", "up", "rtt ms", "msg/s out", "msg/s in", "out", "in"),
    *("window", "flight", "lag", "backlog", "resent/s", "lost/s"),
)
TEXT_COLUMNS = ("member", "role")
DROPPED_FIRST = ("flight", "up", "in", "msg/s in", "resent/s", "lost/s", "out", "role", "backlog")
"""Columns that a narrow terminal has no room for, the least important first."""
LEGEND = (
    "up: since it joined · rtt: until its report arrived · window: share of the send window in use"
    " · flight: bytes that congestion control allows to be in flight · lag: messages that its"
    " application has not taken, or a recorder not on disk · backlog: bytes that its application"
    " has not taken · resent/s: messages it sent again · lost/s: messages it had to ask for"
)
HISTORY_LINES = 8
WELL = "no member waits, is silent or drops anything"
KIND_WIDTH = 9
"""Characters of the word before a trouble, with the space behind it."""


def ordered(members: Sequence[MemberRow], sort: str) -> list[MemberRow]:
    """The members in the order that the user wants."""
    return sorted(members, key=SORTS[sort])  # type: ignore[arg-type]


def lines_of(
    snapshot: Snapshot,
    sort: str = "seniority",
    frozen: bool = False,
    width: int | None = None,
    members_max: int | None = None,
) -> Iterator[str]:
    """The whole group as lines: members that need attention, all members, views.

    In a narrow terminal (`width`) the table has the most important columns, and in a low one the
    first `members_max` members.
    """
    members = ordered(snapshot["members"], sort)
    kind = "closed group" if snapshot["is_closed_group"] else "open group"
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot["at"]))
    state = "FROZEN at" if frozen else "at"
    yield printable(
        f"{snapshot['group']}: view {snapshot['view']}, {len(members)} member"
        f"{'' if len(members) == 1 else 's'}, {kind};"
        f" watched by {snapshot['watched_by']} {state} {clock}"
    )
    yield ""
    if not snapshot["troubles"]:
        yield WELL
    for trouble in snapshot["troubles"]:
        yield from _trouble_lines(trouble, width)
    yield ""
    yield from _table([HEADINGS, *map(_cells, members[:members_max])], width)
    if members_max is not None and len(members) > members_max:
        yield f"… and {len(members) - members_max} more"
    yield ""
    yield "views, the latest first:"
    for record in reversed(snapshot["history"][-HISTORY_LINES:]):
        at = time.strftime("%H:%M:%S", time.localtime(record["at"]))
        yield printable(f"  {at}  view {record['number']}: {record['why']}")


def details_of(row: MemberRow) -> Iterator[str]:
    """All that is known of one member."""
    yield printable(f"{row['name']} ({row['address']}) at {row['endpoint']}, process {row['pid']}")
    yield f"  {role_text(row)} in view {row['view']}, up {duration_text(row['uptime'])}"
    yield f"  {row['window_messages']:,} messages are {row['window_percent']:.0f} % of its window"
    yield f"  {row['unread_bytes']:,} bytes wait for its application"
    yield f"  {row['lag']:,} messages of the others are not taken"
    if row["recorded"] >= 0:
        yield f"  {row['recorded']:,} messages on disk, {row['recorder_lag_ms']:,} ms after they"
        yield "  were sent"
    if row["congestion_window"]:
        yield f"  {row['congestion_window']:,} bytes may be in flight"
    for reason, count in row["drops"].items():
        yield printable(f"  dropped {reason}: {count:,}")


def _cells(row: MemberRow) -> tuple[str, ...]:
    if row["age"] < 0:
        return (printable(row["name"]), "no answer yet", *[""] * (len(HEADINGS) - 2))
    return (
        printable(row["name"]),
        printable(role_text(row)),
        duration_text(row["uptime"]),
        f"{row['round_trip_ms']:.1f}",
        f"{row['messages_out']:,.0f}",
        f"{row['messages_in']:,.0f}",
        f"{size_text(row['bytes_out'])}/s",
        f"{size_text(row['bytes_in'])}/s",
        f"{row['window_percent']:.0f} %",
        size_text(row["congestion_window"]) if row["congestion_window"] else "",
        f"{row['lag']:,}",
        size_text(row["unread_bytes"]),
        f"{row['resent']:,.0f}",
        f"{row['requested']:,.0f}",
    )


def _trouble_lines(trouble: Trouble, width: int | None) -> Iterator[str]:
    """A trouble behind its word in capitals; a narrow terminal gets it on several lines."""
    text = printable(trouble["text"])
    room = len(text) if width is None else max(20, width - KIND_WIDTH)
    first, *rest = textwrap.wrap(text, room) or [""]
    yield f"{trouble['kind'].upper():<{KIND_WIDTH}}{first}"
    yield from (" " * KIND_WIDTH + line for line in rest)


def role_text(row: MemberRow) -> str:
    """What a member is in its group."""
    return f"{row['role']}, recorder" if row["recorded"] >= 0 else row["role"]


def size_text(nbytes: float) -> str:
    """Bytes in the largest unit that fits."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes:.0f} B"


def _table(rows: Sequence[Sequence[str]], room: int | None) -> Iterator[str]:
    """The table, without the columns that do not fit; the first row has the headings."""
    widths = {title: max(len(row[n]) for row in rows) for n, title in enumerate(rows[0])}
    for title in DROPPED_FIRST:
        if room is None or sum(widths.values()) + 2 * (len(widths) - 1) <= room:
            break
        del widths[title]
    for row in rows:
        cells = dict(zip(rows[0], row, strict=True))
        texts = [
            cells[title].ljust(width) if title in TEXT_COLUMNS else cells[title].rjust(width)
            for title, width in widths.items()
        ]
        yield "  ".join(texts).rstrip()
