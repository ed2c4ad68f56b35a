"""Spark's filters as conditions of a journal: what can be left out before it is read.

Spark applies all filters again to what is read, so a filter that is not understood costs time and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ringcast.journal.read.prune import ANY, NUMBERS, Bounds, Conditions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def conditions_of(filters: Iterable[Filter]) -> Conditions:
    """What some filters ask for together."""
    found = Conditions()
    for wanted in filters:
        if isinstance(wanted, EqualTo) and len(wanted.attribute) == 1:
            found = _among(found, wanted.attribute[0], (wanted.value,))
        elif isinstance(wanted, In) and len(wanted.attribute) == 1:
            found = _among(found, wanted.attribute[0], wanted.value)
        elif bounds := _bounds(wanted):
            column, limits = bounds
            found = found.within(column, limits)
    return found


def _among(found: Conditions, column: str, values: Iterable[object]) -> Conditions:
    if column == "group":
        return found.among(column, (value for value in values if isinstance(value, str)))
    numbers = [_number(value) for value in values]
    if column not in NUMBERS or None in numbers:
        return found
    return found.among(column, numbers)


def _bounds(wanted: Filter) -> tuple[str, Bounds] | None:
    if not isinstance(wanted, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return None
    number = _number(wanted.value)
    if len(wanted.attribute) != 1 or wanted.attribute[0] not in NUMBERS or number is None:
        return None
    if isinstance(wanted, GreaterThan | GreaterThanOrEqual):
        return wanted.attribute[0], (number + isinstance(wanted, GreaterThan), ANY[1])
    return wanted.attribute[0], (ANY[0], number - isinstance(wanted, LessThan))


def _number(value: object) -> int | None:
    """A whole number, or the microseconds of a time; a time without a zone is a local one."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    return value if isinstance(value, int) else None
