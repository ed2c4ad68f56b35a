"""Plots that compare many runs: one figure against another, and a figure step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringcast.spark.report.charts import HEIGHT, WIDTH, Look
from ringcast.spark.report.scale import Format, Scale, from_zero, logarithmic, number
from ringcast.spark.report.svg import COLOURS, Box, drawing, label, line, path, tag, title

BOX = Box(76, 30, WIDTH - 24, HEIGHT - 10)
TALL = HEIGHT + 40
"""Room for the name of the x axis below the plot."""
WIDE_RATIO = 20
"""Values that are farther apart than that are drawn on a logarithmic scale."""


class Point(NamedTuple):
    """A place in a plot of one figure against another."""

    x: float
    y: float
    hint: str
    is_good: bool = True
    """Others are drawn faintly."""


class Cloud(NamedTuple):
    """Points of one colour."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class ScatterAxis:
    """What an axis is about, and how its values are written."""

    name: str
    unit: Format = number


def scatter(what: str, across: ScatterAxis, up: ScatterAxis, clouds: Sequence[Cloud]) -> str:
    """One figure against another, a spot for each point."""
    x = _scale([p.x for cloud in clouds for p in cloud.points], BOX.left, BOX.right)
    y = _scale([p.y for cloud in clouds for p in cloud.points], BOX.bottom, BOX.top)
    shapes = [*_rows(y, up), label(BOX.right, BOX.bottom + 36, across.name, "end", "quiet")]
    for tick in x.ticks(8):
        shapes.append(label(x(tick), BOX.bottom + 18, across.unit(tick), "middle", "quiet"))
    for number_, cloud in enumerate(clouds):
        for point in cloud.points:
            faint = None if point.is_good else 0.3
            shapes.append(_spot(x(point.x), y(point.y), number_, point.hint, faint))
    return drawing(WIDTH, TALL, what, *shapes, lines=[cloud.name for cloud in clouds])


class Steps(NamedTuple):
    """A line over the values of a setting: one number for each, None where there is none."""

    name: str
    values: Sequence[float | None]


def step_chart(
    look: Look, name: str, labels: Sequence[str], lines: Sequence[Steps], bound: float | None = None
) -> str:
    """A figure for each value of a setting, side by side; `bound` is drawn across."""
    known = [value for one in lines for value in one.values if value is not None]
    y = _scale([*known, *([] if bound is None else [bound])], BOX.bottom, BOX.top)
    width = (BOX.right - BOX.left) / max(len(labels), 1)
    places = [BOX.left + (place + 0.5) * width for place in range(len(labels))]
    shapes = [
        *_rows(y, ScatterAxis("", look.unit)),
        label(BOX.right, TALL - 14, name, "end", "quiet"),
    ]
    shapes += [
        label(x, BOX.bottom + 18, text, "middle", "quiet")
        for x, text in zip(places, labels, strict=True)
    ]
    if bound is not None:
        hint = title(f"the bound: {look.unit(bound)}")
        shapes.append(tag("g", hint, line(BOX.left, y(bound), BOX.right, y(bound), "mark")))
    for number_, one in enumerate(lines):
        spots = [(x, y(v), v) for x, v in zip(places, one.values, strict=True) if v is not None]
        shapes.append(path([(x, at) for x, at, _ in spots], f"curve c{number_ % COLOURS}"))
        shapes += [_spot(x, at, number_, f"{one.name} {look.unit(v)}") for x, at, v in spots]
    return drawing(WIDTH, TALL, look.what, *shapes, lines=[one.name for one in lines])


def _scale(values: list[float], start: float, end: float) -> Scale:
    positive = [value for value in values if value > 0]
    wide = len(positive) == len(values) and positive and max(positive) > WIDE_RATIO * min(positive)
    return (logarithmic if wide else from_zero)(values, start, end)


def _rows(y: Scale, side: ScatterAxis) -> list[str]:
    """The lines across, with their values, and what they are."""
    shapes = [line(BOX.left, BOX.bottom, BOX.right, BOX.bottom, "axis")]
    for tick in y.ticks(4):
        shapes.append(line(BOX.left, y(tick), BOX.right, y(tick), "grid"))
        shapes.append(label(BOX.left - 8, y(tick) + 4, side.unit(tick), "end", "quiet"))
    if side.name:
        shapes.append(label(BOX.left, BOX.bottom + 36, f"↑ {side.name}", class_="quiet"))
    return shapes


def _spot(x: float, y: float, colour: int, hint: str, opacity: float | None = None) -> str:
    name = f"spot alone c{colour % COLOURS}"
    faint = None if opacity is None else f"{opacity:.2f}"
    return tag("circle", title(hint), cx=x, cy=y, r=5, class_=name, fill_opacity=faint)
