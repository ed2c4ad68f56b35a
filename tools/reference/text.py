"""Markdown for the generated pages."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise

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


def sentences(owner: type) -> dict[str, str]:
    """The sentence under each field of a class."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(definition, ast.ClassDef)
    return dict(_under_fields(definition))


def _under_fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split())


def signature(thing: object) -> str:
    """The arguments of a function without the quotes that postponed annotations have."""
    assert callable(thing)
    text = str(inspect.signature(thing))
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    text = re.sub(r"\((self|cls)(, |(?=\)))", "(", text)
    return re.sub(r"\b(?:ringcast|collections|typing)\.(?:\w+\.)*(?=\w)", "", text)
