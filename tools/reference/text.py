"""Markdown for the generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

NOTE = "This page is written by `python -m tools.reference` from the code.\n"


def cell(text: str) -> str:
    """A text that may stand in a table: one line, with what would end the cell escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a table; none without rows."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *lines, ""] if lines else []


def first_paragraph(thing: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def signature(thing: object) -> str:
    """The arguments of a function without the quotes that postponed annotations have."""
    assert callable(thing)
    text = str(inspect.signature(thing))
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)
    text = re.sub(r"\((self|cls)(, |(?=\)))", "(", text)
    return re.sub(r"\b(?:ringcast|collections|typing)\.(?:\w+\.)*(?=\w)", "", text)
