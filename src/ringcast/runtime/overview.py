"""The state of members as text for people: view, windows, who blocks whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ringcast.runtime.plain import (
    Plain,
    blocked_in,
    map_in,
    names_in,
    number_in,
    text_in,
    texts_in,
)
from ringcast.runtime.words import printable

COLUMNS = ("from", "known", "handed", "delivered", "by all", "missing", "bytes")


def overview(statuses: Sequence[Plain]) -> str:
    """What each member says, one paragraph a member."""
    return "\n\n".join("\n".join(map(printable, _member(status))) for status in statuses)


def _member(status: Plain) -> Iterator[str]:
    pid = number_in(status, "pid")
    if "error" in status:
        yield f"process {pid}: {text_in(status, 'error')}"
        return
    number = text_in(status, "view").partition("@")[0]
    names, members = names_in(status), ", ".join(texts_in(status, "members"))
    name, group, endpoint = (text_in(status, key) for key in ("name", "group", "endpoint"))
    yield f"{name} in {group}, process {pid} at {endpoint}"
    yield f"  view {number}: {members}"
    for part in status.values():
        if isinstance(part, Mapping):
            yield from _windows(part, names)
    yield from _troubles(status, names)


def _windows(part: Plain, names: dict[str, str]) -> Iterator[str]:
    """The windows of a multicast, which is the part that has some."""
    if "sent" not in part:
        return
    sent = map_in(part, "sent")
    high, low, nbytes = (number_in(sent, mark) for mark in ("high", "low", "nbytes"))
    yield f"  sent {high:,} messages, {low:,} of them delivered by all; {nbytes:,} bytes are held"
    acks = map_in(part, "acks")
    late = [f"{names.get(a, a)} {number_in(acks, a):,}" for a in acks if number_in(acks, a) < high]
    if late:
        yield f"  not yet acked by: {', '.join(late)} (of {high:,})"
    windows = map_in(part, "windows")
    rows = [_row(names.get(a, a), map_in(windows, a)) for a in windows]
    if rows:
        yield from _table([COLUMNS, *rows])


def _row(sender: str, window: Plain) -> tuple[str, ...]:
    marks = ("high", "handed", "delivered", "low", "missing", "nbytes")
    return (sender, *(f"{number_in(window, mark):,}" for mark in marks))


def _troubles(status: Plain, names: dict[str, str]) -> Iterator[str]:
    blocked = blocked_in(status)
    if blocked:
        who = ", ".join(texts_in(status, "waits_for")) or "a view that is being made"
        yield f"  BLOCKED: {len(blocked)} sends, the first for {blocked[0]:.1f} s; waits for {who}"
    suspected = texts_in(map_in(status, "failurepart"), "suspected")
    if suspected:
        yield f"  SUSPECTED: {', '.join(names.get(a, a) for a in suspected)}"
    drops = {k: v for k, v in _counters(status) if k.startswith("dropped") and v}
    if drops:
        yield "  dropped: " + ", ".join(
            f"{k.removeprefix('dropped_')} {v:,}" for k, v in drops.items()
        )


def _counters(status: Plain) -> Iterator[tuple[str, int]]:
    for key in ("counters", "transport"):
        counters = map_in(status, key)
        yield from ((name, number_in(counters, name)) for name in counters)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows whose first column is a text and whose others are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "    " + "  ".join(cells)
