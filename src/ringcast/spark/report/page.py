"""A page: a heading, a verdict, facts, sections and tables, in one file with its style inside."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

STYLE = Path(__file__).with_name("style.css")


class Fact(NamedTuple):
    """One number that a reader wants to know first."""

    value: str
    what: str


class PageSection(NamedTuple):
    """A plot or table with its heading, and a sentence on how to read it."""

    heading: str
    reading: str
    body: str
    """HTML: what comes from a trace must be escaped in it."""


class HtmlCell(str):
    """A cell of a table that is HTML already."""


def page(
    heading: str,
    verdict: tuple[str, str] | None,
    facts: Sequence[Fact],
    sections: Sequence[PageSection],
    below: str = "",
    refresh: int | None = None,
) -> str:
    """The whole page. `verdict` is its word (which also names its colour) and a sentence.

    With `refresh`, a browser loads the page again after this many seconds.
    """
    parts = [f"<h1>{escape(heading)}</h1>"]
    if below:
        parts.append(f'<p class="quiet">{escape(below)}</p>')
    if verdict:
        word, sentence = verdict
        told = f"<strong>{escape(word)}</strong> <span>{escape(sentence)}</span>"
        parts.append(f'<div class="verdict {escape(word)}">{told}</div>')
    told_facts = (
        f"<div><b>{escape(f.value)}</b><span>{escape(f.what)}</span></div>" for f in facts
    )
    parts.append(f'<div class="facts">{"".join(told_facts)}</div>')
    parts += [_section(section) for section in sections]
    parts.append(f"<footer>{escape(_origin())}</footer>")
    return _document(heading, "\n".join(parts), refresh)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; the columns in `numbers` are set to the right."""
    kinds = [' class="number"' if i in numbers else "" for i in range(len(heads))]
    head = "".join(f"<th{k}>{escape(h)}</th>" for k, h in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{k}>{_cell(c)}</td>" for k, c in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{inside}</table></div>'


def listed(items: Sequence[tuple[str, str]]) -> str:
    """A list of words and what they mean."""
    told = (f"<li><b>{escape(word)}</b>: {escape(meaning)}</li>" for word, meaning in items)
    return f"<ul>{''.join(told)}</ul>"


def folded(summary: str, lines: Sequence[str]) -> HtmlCell:
    """Lines that show when the summary is clicked."""
    text = escape("\n".join(lines))
    return HtmlCell(f"<details><summary>{escape(summary)}</summary><pre>{text}</pre></details>")


def _origin() -> str:
    """Which version wrote the page, when, and by which command."""
    try:
        known = f"ringcast {version('ringcast')}"
    except PackageNotFoundError:
        known = "ringcast, run from its source"
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    program = Path(sys.argv[0]).name if sys.argv else ""
    by_command = program in ("ringcast", "__main__.py")
    how = f"by {shlex.join(['ringcast', *sys.argv[1:]])}" if by_command else "from Python"
    return f"Written by {known} at {now}, {how}"


def _section(section: PageSection) -> str:
    return (
        f"<section><h2>{escape(section.heading)}</h2>"
        f'<p class="quiet">{escape(section.reading)}</p>{section.body}</section>'
    )


def _cell(cell: str) -> str:
    return cell if isinstance(cell, HtmlCell) else escape(cell)


def _document(title: str, body: str, refresh: int | None) -> str:
    again = f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}<title>{escape(title)}</title>\n<style>\n{STYLE.read_text()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
