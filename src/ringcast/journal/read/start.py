"""Where a new query begins in a journal: at its beginning, its end, a time, or a digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ringcast.errors import ConfigError
from ringcast.journal.format.spans import Spans, from_text, intersect
from ringcast.journal.read.plan import Cover, Key, Slice, joined

EARLIEST, LATEST = "earliest", "latest"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FindDelivered = Callable[[Slice, int], dict[int, int]]
"""By sender, the last seqno of a slice that was delivered before a time in microseconds."""


class StartingPoint(NamedTuple):
    """What a new query counts as read."""

    text: str = EARLIEST
    at: int | None = None
    """Microseconds since 1970: everything that was delivered before."""
    digest: str | None = None
    """An offset as JSON: everything in it."""


def parse_start(text: str) -> StartingPoint:
    """The option startingOffsets; raises ConfigError."""
    told = text.strip()
    if told.lower() in (EARLIEST, LATEST):
        return StartingPoint(told.lower())
    if told.startswith("{"):
        if not _is_digest(told):
            raise _wrong(text)
        return StartingPoint(told, digest=told)
    try:
        time = datetime.fromisoformat(told)
    except ValueError as error:
        raise _wrong(text) from error
    utc = time if time.tzinfo else time.replace(tzinfo=UTC)
    return StartingPoint(told, at=(utc - EPOCH) // timedelta(microseconds=1))


def _is_digest(text: str) -> bool:
    """Whether a text says, by group and sender, what was read: a number, or ranges such as
    "1-50,81-90"."""
    try:
        groups = json.loads(text)
        read = [(int(s), upto) for senders in groups.values() for s, upto in senders.items()]
        return all(
            from_text(upto) if isinstance(upto, str) else type(upto) is int and upto >= 0
            for _, upto in read
        )
    except (ValueError, AttributeError, RecursionError):
        return False


def delivered_before(slices: list[Slice], at: int, find: FindDelivered) -> Cover:
    """What of these slices was delivered before a time, by the clocks of the recorders."""
    found: dict[Key, Spans] = {}
    for part in slices:
        first, last = part.segment.delivered_at
        if first >= at:
            continue
        whole = {s: spans[-1][1] for s, spans in part.senders.items()} if last < at else None
        ends = find(part, at) if whole is None else whole
        group = part.segment.group
        cut = {
            (group, sender): intersect(spans, ((spans[0][0], ends[sender]),))
            for sender, spans in part.senders.items()
            if ends.get(sender, -1) >= spans[0][0]
        }
        found = joined(found, cut)
    return found


def _wrong(text: str) -> ConfigError:
    return ConfigError(
        f"the option startingOffsets is {text!r}: give earliest, latest, a time such as "
        '2026-01-31T12:00:00+00:00 (UTC without a zone), or a digest such as {"prices": {"7": 90}}'
    )
