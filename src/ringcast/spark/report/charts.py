"""The kinds of plots that reports are made of, each a function from plain data to SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringcast.spark.report.scale import Format, Scale, from_zero, logarithmic, number, seconds
from ringcast.spark.report.svg import COLOURS, Box, drawing, label, line, path, rect, tag, title

WIDTH, HEIGHT = 880, 260
BOX = Box(64, 30, WIDTH - 16, HEIGHT - 30)
LETTER = 6.6
"""The width of a letter, about."""
ROW = 24
"""The height of a line of bars, in a plot with one line for each member."""


class Series(NamedTuple):
    """A line of a plot: its name and its points, by rising x; a gap where y is None."""

    name: str
    points: Sequence[tuple[float, float | None]]


class TimeMark(NamedTuple):
    """A moment worth seeing in every plot over time."""

    x: float
    text: str


class Bar(NamedTuple):
    """A horizontal bar."""

    name: str
    value: float
    hint: str = ""


class Span(NamedTuple):
    """A part of a line of time."""

    row: int
    start: float
    end: float
    text: str
    colour: int
    hint: str


@dataclass(frozen=True)
class Look:
    """What a plot is about, and how its values are written."""

    what: str
    unit: Format = number
    log: bool = False


def line_chart(
    look: Look, series: Sequence[Series], end: float, marks: Sequence[TimeMark] = ()
) -> str:
    """Values over time, from 0 to `end` seconds."""
    x = Scale(0, end, BOX.left, BOX.right)
    values = [y for one in series for _, y in one.points if y is not None]
    y = (logarithmic if look.log else from_zero)(values, BOX.bottom, BOX.top)
    shapes = [_curve(one, number, x, y, look) for number, one in enumerate(series)]
    return drawing(
        WIDTH, HEIGHT, look.what,
        *_axes(x, y, look), *_marks(x, marks), *shapes, lines=[one.name for one in series],
    )  # fmt: skip


def column_chart(
    look: Look, series: Sequence[Series], end: float, marks: Sequence[TimeMark] = ()
) -> str:
    """Counts over time, as columns on top of each other; all series have the same x."""
    x = Scale(0, end, BOX.left, BOX.right)
    places = [place for place, _ in series[0].points] if series else []
    columns = [[one.points[i][1] or 0.0 for one in series] for i in range(len(places))]
    y = from_zero([sum(column) for column in columns], BOX.bottom, BOX.top)
    width = (BOX.right - BOX.left) / max(len(places), 1) - 1
    shapes = []
    for place, column in zip(places, columns, strict=True):
        below = 0.0
        for number_, (one, value) in enumerate(zip(series, column, strict=True)):
            if value:
                box = Box(x(place), y(below + value), x(place) + width, y(below))
                hint = f"{seconds(place)}: {one.name} {look.unit(value)}"
                shapes.append(rect(box, f"fill c{number_ % COLOURS}", hint))
                below += value
    return drawing(
        WIDTH, HEIGHT, look.what,
        *_axes(x, y, look), *_marks(x, marks), *shapes, lines=[one.name for one in series],
    )  # fmt: skip


def bar_chart(look: Look, bars: Sequence[Bar]) -> str:
    """One horizontal bar for each name, with its value written beside it."""
    left = _room(bar.name for bar in bars)
    x = from_zero([bar.value for bar in bars], left, WIDTH - 90)
    shapes = []
    for row, bar in enumerate(bars):
        top = 6.0 + row * ROW
        shapes.append(label(left - 8, top + 13, bar.name, "end"))
        box = Box(left, top, max(x(bar.value), left + 1), top + ROW - 8)
        shapes.append(rect(box, "fill c0", bar.hint or f"{bar.name}: {look.unit(bar.value)}", 2))
        shapes.append(label(box.right + 6, top + 13, look.unit(bar.value), class_="quiet"))
    return drawing(WIDTH, 10 + ROW * len(bars), look.what, *shapes)


def matrix(look: Look, names: Sequence[str], values: dict[tuple[int, int], float]) -> str:
    """A value for each pair, as a table whose cells are the darker the larger it is."""
    left = _room(names)
    cell = (WIDTH - left - 16) / max(len(names), 1)
    shade = logarithmic(list(values.values()), 0.08, 0.85)
    shapes = [label(left + (i + 0.5) * cell, 16, name, "middle") for i, name in enumerate(names)]
    shapes += [label(left - 8, 40 + i * ROW, name, "end") for i, name in enumerate(names)]
    for (row, column), value in values.items():
        x, y = left + column * cell, 24 + row * ROW
        hint = title(f"{names[row]} from {names[column]}: {look.unit(value)}")
        box = {"x": x, "y": y, "width": cell - 2, "height": ROW - 2}
        depth = shade(value)
        shapes.append(tag("rect", hint, **box, class_="fill c0", fill_opacity=f"{depth:.2f}"))
        dark = "on-dark" if depth > 0.6 else None
        text = look.unit(value) if cell > 44 else ""
        shapes.append(label(x + cell / 2 - 1, y + 15, text, "middle", dark))
    return drawing(WIDTH, 30 + ROW * len(names), look.what, *shapes)


def timeline(look: Look, names: Sequence[str], spans: Sequence[Span], end: float) -> str:
    """One line of time for each name, divided into spans."""
    left, bottom = _room(names), 10.0 + ROW * len(names)
    x = Scale(0, end, left, WIDTH - 16)
    shapes = [label(left - 8, 22 + i * ROW, name, "end") for i, name in enumerate(names)]
    for tick in x.ticks(8):
        shapes.append(line(x(tick), 6, x(tick), bottom, "grid"))
        shapes.append(label(x(tick), bottom + 16, seconds(tick), "middle", "quiet"))
    for span in spans:
        top = 6.0 + span.row * ROW
        box = Box(x(span.start), top, max(x(span.end) - 2, x(span.start) + 1), top + ROW - 5)
        shapes.append(rect(box, f"fill c{span.colour % COLOURS}", span.hint, 2))
        if box.right - box.left > 9 * len(span.text):
            middle = (box.left + box.right) / 2
            shapes.append(label(middle, top + 14, span.text, "middle", "on-dark"))
    return drawing(WIDTH, bottom + 24, look.what, *shapes)


def _curve(series: Series, number_: int, x: Scale, y: Scale, look: Look) -> str:
    """A line, broken where there are no values, and a spot with a hint at each point."""
    colour = f"c{number_ % COLOURS}"
    pieces: list[list[tuple[float, float]]] = [[]]
    spots = []
    for place, value in series.points:
        if value is None:
            pieces.append([])
            continue
        at = x(place), y(value)
        pieces[-1].append(at)
        hint = title(f"{seconds(place)}: {series.name} {look.unit(value)}")
        alone = " alone" if len(series.points) == 1 else ""
        spots.append(tag("circle", hint, cx=at[0], cy=at[1], r=4, class_=f"spot {colour}{alone}"))
    return "".join([*(path(piece, f"curve {colour}") for piece in pieces), *spots])


def _axes(x: Scale, y: Scale, look: Look) -> list[str]:
    shapes = []
    for tick in y.ticks(4):
        shapes.append(line(BOX.left, y(tick), BOX.right, y(tick), "grid"))
        shapes.append(label(BOX.left - 8, y(tick) + 4, look.unit(tick), "end", "quiet"))
    for tick in x.ticks(8):
        shapes.append(label(x(tick), BOX.bottom + 18, seconds(tick), "middle", "quiet"))
    return [*shapes, line(BOX.left, BOX.bottom, BOX.right, BOX.bottom, "axis")]


def _marks(x: Scale, marks: Sequence[TimeMark]) -> list[str]:
    """Dashed lines, with their words above the plot where there is room for them."""
    shapes, free = [], BOX.left
    for mark in sorted(marks):
        at, width = x(mark.x), LETTER * len(mark.text)
        inside = [title(mark.text), line(at, BOX.top, at, BOX.bottom, "mark")]
        left = min(at, BOX.right - width)
        if left >= free:
            inside.append(label(left, BOX.top - 6, mark.text, class_="quiet"))
            free = left + width + LETTER
        shapes.append(tag("g", *inside, class_="moment"))
    return shapes


def _room(names: Iterable[str]) -> float:
    """How much room the longest name takes, left of the bars."""
    return 24 + 7.2 * max((len(name) for name in names), default=0)
