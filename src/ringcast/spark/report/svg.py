"""Elements of SVG as text, with everything escaped that comes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

COLOURS = 8
"""How many colours a plot tells apart; the style sheet has them as c0 to c7."""


class Box(NamedTuple):
    """The area of a plot that the data gets; axes and labels are around it."""

    left: float
    top: float
    right: float
    bottom: float


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element. `class_` stands for class, `_` for the hyphen in names."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>" if inside else f"<{name}{given}/>"


def label(x: float, y: float, text: str, anchor: str = "start", class_: str | None = None) -> str:
    """Words at a place."""
    return tag("text", escape(text), x=x, y=y, text_anchor=anchor, class_=class_)


def title(text: str) -> str:
    """What is shown when the pointer rests on the element around."""
    return tag("title", escape(text))


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rect(box: Box, class_: str, hint: str = "", radius: float = 0) -> str:
    """A rectangle, with a hint for the pointer."""
    size = {"width": max(box.right - box.left, 0), "height": max(box.bottom - box.top, 0)}
    inside = [title(hint)] if hint else []
    rx = radius or None
    return tag("rect", *inside, x=box.left, y=box.top, **size, rx=rx, class_=class_)


def path(points: list[tuple[float, float]], class_: str) -> str:
    """A line through points."""
    if not points:
        return ""
    return tag("path", d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)


def drawing(width: float, height: float, what: str, *inside: str, lines: Sequence[str] = ()) -> str:
    """A whole picture; `what` says in words what is to be seen.

    `lines` names the lines in it by their colours, c0 and so on: each can be switched off.
    """
    box = f"0 0 {_text(width)} {_text(height)}"
    picture = tag("svg", *inside, viewBox=box, role="img", aria_label=what)
    keys = [_switch(number, name) for number, name in enumerate(lines if len(lines) > 1 else ())]
    above = tag("div", *keys, class_="keys") if keys else ""
    return tag("div", above, tag("div", picture, class_="wide"), class_="plot")


def _switch(number: int, name: str) -> str:
    """The key of a line, with a box to tick; the style sheet does the rest."""
    colour = number % COLOURS
    box = tag("input", type="checkbox", class_=f"k{colour}", checked="checked")
    return tag("label", box, tag("i", " ", class_=f"c{colour}"), escape(name))


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
