"""Colours on a terminal: none in a pipe, none where NO_COLOR is set (no-color.org)."""

from __future__ import annotations

import os
import sys

RED, GREEN, YELLOW, BOLD = "31", "32", "33", "1"


def has_colours() -> bool:
    """Whether standard output shows colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def paint(text: str, colour: str) -> str:
    """The text in a colour, where there are any."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours() else text
