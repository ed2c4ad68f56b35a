"""Reads the reports of members for the live view.

A report comes from another process, which may be broken or hostile. It is taken as a whole or not
at all: each value has the type that `MemberReport` names, numbers are finite and small enough to
count with and to show, and what the view does not show is not kept.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from typing import cast

from ringcast.core.wire.layout import INT_MAX
from ringcast.runtime.member.stats import MemberReport

UNPACKED_MAX = 4_000_000
"""Bytes of a report at the most, before it was compressed."""
SECONDS_MAX = 2**37
"""The largest time, in seconds: in the year 6325, which a clock still shows."""
TEXT_MAX = 2_000
"""Characters of a text that are kept: a name, or the reason for a view."""
ITEMS_MAX = 20_000
"""Items of a list or mapping: several per member of a large group."""

Check = Callable[[object], object]
"""Returns what is kept of a value. Raises ValueError."""


def read_report(content: bytes) -> MemberReport:
    """A report that has arrived, with what the live view shows of it. Raises ValueError."""
    try:
        told = json.loads(zlib.decompressobj().decompress(content, UNPACKED_MAX))
    except (zlib.error, RecursionError) as error:
        raise ValueError("the report cannot be read") from error
    return cast(MemberReport, _report(told))


def _number(value: object) -> object:
    if not isinstance(value, int) or not -INT_MAX <= value <= INT_MAX:
        raise ValueError("not a number, or too large a one")
    return value


def _seconds(value: object) -> object:
    if not isinstance(value, int | float) or not 0 <= value <= SECONDS_MAX:  # Nor is it NaN.
        raise ValueError("not a time")
    assert math.isfinite(value)
    return value


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value[:TEXT_MAX]


def _view_id(value: object) -> object:
    """The number is read by those who show it."""
    if value is None:
        return None
    number, _, coordinator = str(_text(value)).partition("@")
    return f"{_number(int(number))}@{coordinator}"


def _list_of(check: Check) -> Check:
    def read(value: object) -> object:
        if not isinstance(value, list) or len(value) > ITEMS_MAX:
            raise ValueError("not a list, or too long a one")
        return [check(item) for item in value]

    return read


def _map_of(check: Check) -> Check:
    def read(value: object) -> object:
        if not isinstance(value, dict) or len(value) > ITEMS_MAX:
            raise ValueError("not a mapping, or too large a one")
        return {key[:TEXT_MAX]: check(item) for key, item in value.items()}

    return read


def _record(needed: dict[str, Check], **others: Check) -> Check:
    """A record with all keys of `needed`, and perhaps with those of `others`."""

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError("not a record")
        if lacking := needed.keys() - value.keys():
            raise ValueError(f"without {min(lacking)}")
        checks = {**needed, **others}
        return {key: check(value[key]) for key, check in checks.items() if key in value}

    return read


_texts = _list_of(_text)
_counters = _map_of(_number)

_report = _record(
    {
        **dict.fromkeys(("group", "name"), _text),
        "is_closed_group": bool,
        "pid": _number,
        "uptime": _seconds,
        "unread_bytes": _number,
        "view": _view_id,
        "window": _record(dict.fromkeys(("messages", "capacity", "bytes", "max_bytes"), _number)),
        "counters": _counters,
        "transport": _counters,
        "application": _counters,
        "blocked_senders": _list_of(_seconds),
        "waits_for": _texts,
        "blocked_by": _text,
        "peers": _list_of(_record({"address": _text, "name": _text})),
        "history": _list_of(
            _record(
                {
                    "at": _seconds,
                    "number": _number,
                    "why": _text,
                    **dict.fromkeys(("members", "joined", "left"), _texts),
                }
            )
        ),
    },
    multicast=_record(
        {},
        sent=_record({}, high=_number),
        windows=_map_of(_record({}, delivered=_number)),
        congestion_window=_number,
    ),
    membership=_record({}, role=_text),
    failure=_record({}, suspected=_texts),
)
