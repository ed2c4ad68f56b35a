"""Numbers on the command line: what float() takes, and what can be counted with."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError

SECONDS_MAX = 1_000_000_000
"""About 32 years: beyond it, clocks and sleeps overflow."""

PORT_MAX = 65_535

WHOLE_MAX = 2**63 - 1
"""The largest number that other parts can be given."""


def number(text: str) -> float:
    """A number; neither infinity nor nan, with which every comparison goes wrong."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text!r} is not a number")
    return value


def seconds(text: str) -> float:
    """A timeout in seconds."""
    value = number(text)
    if value <= 0:
        raise ArgumentTypeError(f"{text!r}: give seconds above 0")
    if value > SECONDS_MAX:
        raise ArgumentTypeError(f"{text!r}: give at most {SECONDS_MAX:,} seconds")
    return value


def port(text: str) -> int:
    """A port to listen at; 0 is a free one."""
    value = whole(text)
    if not 0 <= value <= PORT_MAX:
        raise ArgumentTypeError(f"{text!r}: give a port from 0 to {PORT_MAX}")
    return value


def count(text: str) -> int:
    """How often something is done: once at least."""
    value = whole(text)
    if value < 1:
        raise ArgumentTypeError(f"{text!r}: give 1 or more")
    return value


def whole(text: str) -> int:
    """A whole number that fits into 64 bits."""
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not -WHOLE_MAX <= value <= WHOLE_MAX:
        raise ArgumentTypeError(f"{text!r} is too large: give at most {WHOLE_MAX:,}")
    return value
