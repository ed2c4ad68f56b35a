"""Conditions as options of a reader, which are texts: values with commas between them, or a range.

`sender` = "7,8" · `seqno` = "10..90" · `sent_at` = "2026-01-31T12:00.." · `group` = "prices"
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from ringcast.errors import ConfigError
from ringcast.journal.read.prune import ANY, Bounds, Conditions
from ringcast.journal.read.start import EPOCH

LISTS = ("group", "sender")
RANGES = ("seqno", "sent_at", "delivered_at")
TIMES = ("sent_at", "delivered_at")
CONDITIONS = (*LISTS, *RANGES)
"""The options that are conditions; they are called like their columns."""
BETWEEN = ".."
MICROSECOND = timedelta(microseconds=1)


def parse_conditions(options: Mapping[str, str]) -> Conditions:
    """What the options ask for; those that are left out ask for nothing. Raises ConfigError."""
    found = Conditions()
    for name in CONDITIONS:
        text = options.get(name)
        if text is None:
            continue
        if name in LISTS:
            values = [value.strip() for value in text.split(",")]
            if not all(values):
                raise _wrong(name, text)
            numbers = values if name == "group" else [_number(name, text, v) for v in values]
            found = found.among(name, numbers)
        else:
            found = found.within(name, _bounds(name, text))
    return found


def conditions_text(conditions: Conditions) -> dict[str, str]:
    """The options that ask for this much, or for more where options cannot say it."""
    found: dict[str, str] = {}
    if conditions.groups and not any("," in group for group in conditions.groups):
        found["group"] = ",".join(sorted(conditions.groups))
    if conditions.senders:
        found["sender"] = ",".join(map(str, sorted(conditions.senders)))
    for name in RANGES:
        if (bounds := conditions.bounds.get(name)) is not None:
            first, last = (_text(name, value) for value in bounds)
            found[name] = f"{first}{BETWEEN}{last}"
    return found


def _bounds(name: str, text: str) -> Bounds:
    first, between, last = (part.strip() for part in text.partition(BETWEEN))
    if not between:
        last = first
    if not (first or last):
        raise _wrong(name, text)
    least = _number(name, text, first) if first else ANY[0]
    most = _number(name, text, last) if last else ANY[1]
    if least > most:
        raise _wrong(name, text)
    return least, most


def _number(name: str, text: str, value: str) -> int:
    """A whole number of 64 bits, or the microseconds of a time."""
    try:
        if name in TIMES:
            time = datetime.fromisoformat(value)
            utc = time if time.tzinfo else time.replace(tzinfo=UTC)
            return (utc - EPOCH) // MICROSECOND
        number = int(value)
    except (ValueError, OverflowError) as error:
        raise _wrong(name, text) from error
    if not ANY[0] <= number <= ANY[1]:
        raise _wrong(name, text)
    return number


def _text(name: str, value: int) -> str:
    if value in ANY:
        return ""
    return (EPOCH + value * MICROSECOND).isoformat() if name in TIMES else str(value)


def _wrong(name: str, text: str) -> ConfigError:
    examples = {
        "group": "prices or prices,orders",
        "sender": "an address as a number, or several: 7,8",
        "seqno": "10..90, 10.. or ..90",
    }
    example = examples.get(
        name, "2026-01-31T12:00.. or 2026-01-31..2026-02-01 (UTC without a zone)"
    )
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return ConfigError(f"the option {name} is {shown!r}: give {example}")
