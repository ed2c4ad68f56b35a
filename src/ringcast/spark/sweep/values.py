"""Single values of a grid, checked: whatever is wrong is one sentence that names the key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ringcast.errors import ConfigError
from ringcast.spark.sweep.figures import shown
from ringcast.spark.sweep.grid import Axis

Tables = Mapping[str, object]
"""What TOML gives."""


class Kind(NamedTuple):
    """What values a key takes."""

    types: tuple[type, ...]
    words: str


WHOLE, NUMBER = Kind((int,), "a whole number"), Kind((int, float), "a number")
TEXT = Kind((str,), "a text")
DELAY = Kind((int, float, str), 'seconds, or "from-to" as in "0.001-0.005"')


def check_keys(tables: Tables, known: tuple[str, ...], place: str) -> None:
    """Are there no other keys than the known ones? `place` is the table they are in."""
    for key in tables:
        if key not in known:
            where = f"[{place}]" if place else "a grid"
            raise ConfigError(f"{_path(place, key)} is not a key: {where} has {', '.join(known)}")


def check_value(path: str, value: object, kind: Kind) -> object:
    """The value, if it is of this kind; a whole number is a number, and a switch is neither."""
    wrong = not isinstance(value, kind.types) or isinstance(value, bool)
    if wrong or (isinstance(value, float) and not math.isfinite(value)):
        raise ConfigError(f"{path} is {value!r}: give {kind.words}")
    return value


def check_distinct(path: str, values: list[object]) -> tuple[object, ...]:
    """The values, if there are some, and each of them once."""
    if not values:
        raise ConfigError(f"{path} is an empty list: give at least one value, or leave it out")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ConfigError(f"{path} has {shown(value)} twice: give each value once")
    return tuple(values)


def read_table(tables: Tables, key: str) -> Tables:
    """The table below a key; an empty one when there is none."""
    found = tables.get(key, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{key} is {found!r}: write a table, [{key}]")
    return found


def read_positive(tables: Tables, key: str, default: float) -> float:
    """A number above zero."""
    value = check_value(key, tables.get(key, default), NUMBER)
    if not isinstance(value, int | float) or value <= 0:
        raise ConfigError(f"{key} is {value}: give a number above 0")
    return value


def read_axis(place: str, key: str, given: object, kind: Kind) -> Axis:
    """A value or a list of values as an axis."""
    path = _path(place, key)
    if not isinstance(given, list):
        return Axis(key, (check_value(path, given, kind),))
    each = Kind(kind.types, f"{kind.words} each time")
    return Axis(key, check_distinct(path, [check_value(path, one, each) for one in given]))


def _path(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
