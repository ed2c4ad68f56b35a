"""Texts from elsewhere, as they may be shown: they steer no terminal and forge no log line."""

from __future__ import annotations


def printable(text: str) -> str:
    """A text whose control characters, but tabs, are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


def shortened(text: str, longest: int) -> str:
    """A printable text of this many characters at the most, and an ellipsis where more follow."""
    return printable(text) if len(text) <= longest else f"{printable(text[:longest])}…"
