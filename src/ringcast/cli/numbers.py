"""Numbers on the command line: what float() takes, and what can be counted with."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


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
    return value
