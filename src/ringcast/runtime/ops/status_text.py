"""The state of members as text for people: view, windows, who blocks whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringcast.core.model.text import printable
from ringcast.core.stack.counters import all_declared, declared
from ringcast.runtime.ops.drops import is_alarm
from ringcast.runtime.ops.json_fields import (
    Plain,
    blocked_in,
    map_in,
    names_in,
    number_in,
    text_in,
    texts_in,
)

SOURCES = {
    "user": "the number that was given",
    "interface": "what fits a packet of the interface",
    "view": "the least of what the members take",
    "probe": "the largest that arrives at all members",
}
KERNEL = {
    "segmentation": "segmentation offload",
    "coalescing": "receive offload",
    "dont_fragment": "not fragmented",
}
COLUMNS = ("from", "known", "handed", "delivered", "by all", "missing", "bytes")

MEANINGS = {
    "from": "the sender whose messages the row is about",
    "known": "the seqno of the last message that this member knows of",
    "handed": "up to here they are in order, and wait for the application",
    "delivered": "up to here the application has taken them",
    "by all": "up to here all members have delivered them, and no member keeps them",
    "missing": "messages that were lost on their way and are asked for",
    "bytes": "bytes of messages that this member keeps, to be read or to be sent again",
}
"""What the columns of a member's windows are."""
DROPPED = "dropped_"
"""What the names of counters of drops begin with."""


def explanation(statuses: Sequence[Plain]) -> str:
    """What the columns mean, and each reason for which one of these members has dropped.

    Without members: each reason that there is.
    """
    lines = ["What the columns mean:", *(f"  {k}: {text}" for k, text in MEANINGS.items())]
    found = {f"{DROPPED}{reason}" for status in statuses for reason in _drops(status)}
    known_names = found if statuses else [counter.name for counter in all_declared()]
    reasons = [
        known
        for name in sorted(known_names)
        if name.startswith(DROPPED) and (known := declared(name))
    ]
    if reasons:
        lines.append("Why something was dropped:")
        lines += [f"  {r.name.removeprefix(DROPPED)} ({r.unit}): {r.about}" for r in reasons]
    return "\n".join(lines)


def overview(statuses: Sequence[Plain]) -> str:
    """What each member says, one paragraph per member."""
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
    yield f"  {_keys(status, names)}"
    yield f"  view {number}: {members}"
    yield from _datagrams(status)
    yield from _windows(map_in(status, "multicast"), names)
    yield from _stability(map_in(status, "stability"), names)
    yield from _troubles(status, names)


def _keys(status: Plain, names: dict[str, str]) -> str:
    """Open or closed, by which keys, and the members that do not seal by the first of them yet."""
    first, *others = texts_in(status, "key_ids") or [""]
    if not first and status.get("is_closed_group"):
        return "closed group, by TLS certificates or a protocol of its stack"
    if not first:
        return "open group: any process may join"
    text = f"closed group, key id {first}"
    if others:
        text += f", also opens {', '.join(others)}"
    used = map_in(status, "peer_key_ids")
    late = [f"{names.get(a, a)} {text_in(used, a)}" for a in used if text_in(used, a) != first]
    return text + (f"; sealed by another key: {', '.join(late)}" if late else "")


def _datagrams(status: Plain) -> Iterator[str]:
    """How large datagrams are, why, and what the kernel does with them."""
    wire, kernel = map_in(status, "wire"), map_in(status, "kernel")
    size, source = number_in(wire, "datagram_bytes"), text_in(wire, "datagram_source")
    if size:
        about = "".join(f"; {text}" for name, text in KERNEL.items() if kernel.get(name))
        yield f"  datagrams of up to {size:,} bytes ({SOURCES.get(source, source)}){about}"


def _windows(part: Plain, names: dict[str, str]) -> Iterator[str]:
    """The windows of the messages to the group."""
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


def _stability(part: Plain, names: dict[str, str]) -> Iterator[str]:
    """What a stack with stability knows to be delivered by all."""
    stable = map_in(part, "stable")
    marks = [f"{names.get(a, a)} {number_in(stable, a):,}" for a in stable if number_in(stable, a)]
    if marks:
        unstable = number_in(part, "unstable")
        yield f"  stable: {', '.join(marks)}; {unstable:,} messages are not stable yet"
    waits = texts_in(part, "waits_for")
    if waits:
        yield f"  the round of stability waits for {', '.join(names.get(a, a) for a in waits)}"


def _row(sender: str, window: Plain) -> tuple[str, ...]:
    marks = ("high", "handed", "delivered", "low", "missing", "nbytes")
    return (sender, *(f"{number_in(window, mark):,}" for mark in marks))


def _troubles(status: Plain, names: dict[str, str]) -> Iterator[str]:
    blocked = blocked_in(status)
    if blocked:
        who = ", ".join(texts_in(status, "waits_for"))
        why = text_in(status, "blocked_by") or f"waits for {who}"
        sends = "1 send" if len(blocked) == 1 else f"{len(blocked)} sends, the first"
        yield f"  BLOCKED: {sends} for {blocked[0]:.1f} s; {why}"
    waited = {
        k.removeprefix("blocked_ms_"): v
        for k, v in _counters(status)
        if k.startswith("blocked_ms_") and v
    }
    if waited:
        reasons = (f"{reason} {ms / 1000:,.1f} s" for reason, ms in waited.items())
        yield f"  sends have waited for: {', '.join(reasons)}"
    suspected = texts_in(map_in(status, "failure"), "suspected")
    if suspected:
        yield f"  SUSPECTED: {', '.join(names.get(a, a) for a in suspected)}"
    drops = _drops(status)
    if drops:
        yield "  dropped: " + ", ".join(f"{reason} {count:,}" for reason, count in drops.items())


def _drops(status: Plain) -> dict[str, int]:
    """How often this member has dropped something, by reason; not what healthy groups drop, too."""
    counters = dict(_counters(status))
    misses = counters.get("requested", 0) > 0
    return {
        reason: count
        for name, count in counters.items()
        if name.startswith(DROPPED)
        and count
        and is_alarm(reason := name.removeprefix(DROPPED), misses)
    }


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
