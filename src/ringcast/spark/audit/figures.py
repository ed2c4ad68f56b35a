"""Measures a run: latency, throughput, repairs, stalls, windows and views, in a few scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.audit import tables
from ringcast.spark.audit.figure_tables import Clock, figure_table
from ringcast.spark.report.member_names import member_names
from ringcast.trace.schema import CLOSED, MESSAGE_KINDS, VIEW, Row

INTERVALS = 120
"""How many pieces a run is divided into, for what is shown over time."""

SHOWN_MAX = 24
"""How many members are shown one by one: the first by name."""


class Figure(NamedTuple):
    """One number: what it is, whose, with regard to whom, when, and how much."""

    figure: str
    member: int | None
    """Null: of the whole run."""
    peer: int | None
    """The sender of what was delivered, the cause of a stall; null: of all."""
    at: int | None
    """The beginning of the interval, in microseconds; null: of the whole run."""
    value: float


FIGURES: dict[str, pa.DataType] = {
    "figure": pa.string(),
    **tables.longs("member", "peer", "at"),
    "value": pa.float64(),
}


@dataclass(frozen=True)
class Measures:
    """The figures of a run, on the driver; of a large group those that a page shows."""

    clock: Clock
    figures: list[Figure]

    def of(self, name: str) -> list[Figure]:
        """The figures of one name."""
        return [figure for figure in self.figures if figure.figure == name]


def measure(trace: DataFrame, installs: Sequence[Row] = ()) -> Measures:
    """Measure a run; `installs` are its views, as members installed them."""
    clock = _clock(trace)
    names = member_names(installs)
    by_name = sorted(names, key=lambda member: (names[member], member))
    shown = by_name[:SHOWN_MAX] if len(by_name) > SHOWN_MAX else None
    lists = figure_table(trace, clock, shown).toArrow().to_pydict()
    found = map(Figure._make, zip(*(lists[name] for name in FIGURES), strict=True))
    return Measures(clock, [*dict.fromkeys(found), *_view_changes(installs)])


def all_figures(trace: DataFrame, measures: Measures, installs: Sequence[Row]) -> DataFrame:
    """All figures as a table; of a large group they stay with Spark until they are asked for."""
    spark = trace.sparkSession
    if len(member_names(installs)) <= SHOWN_MAX:
        return tables.local(spark, FIGURES, measures.figures)
    changes = tables.local(spark, FIGURES, _view_changes(installs))
    return figure_table(trace, measures.clock).union(changes)


def _clock(trace: DataFrame) -> Clock:
    # Messages and views only: one odd time among all the other rows would spoil every plot.
    told = trace.where(F.col("kind").isin(*MESSAGE_KINDS, VIEW, CLOSED))
    ends = told.agg(F.min("at").alias("start"), F.max("at").alias("end")).first()
    start, end = (ends["start"], ends["end"]) if ends and ends["start"] is not None else (0, 1)
    return Clock(start, end, max(1, -(-(end - start + 1) // INTERVALS)))


def _view_changes(installs: Sequence[Row]) -> Iterator[Figure]:
    """How often each member went from one view to another."""
    counts = Counter(row.member for row in installs)
    for member, count in counts.items():
        yield Figure("view_changes", member, None, None, count - 1)
    views = {(row.view, row.view_by) for row in installs}
    yield Figure("views", None, None, None, len(views))
