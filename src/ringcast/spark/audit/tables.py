"""Small tables between Spark and Python: the lines of groups here, the suspects there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ringcast.spark.audit.groups import GROUP, VIEW
from ringcast.trace.judging.summary import Group, PayloadSum, Range, Source, ViewKey

ROWS_AT_ONCE = 64


class GroupLine(NamedTuple):
    """A row of the table of groups."""

    group: Group
    sending: bool
    reach: Range
    tile: bool
    payloads: PayloadSum | None
    skipped: Range | None
    early: Range | None
    """Deliveries that were stamped before their sending."""
    latency_min: int | None
    places: int | None
    """The sum that tells where the messages stand among those of all senders."""


class SuspectGroup(NamedTuple):
    """A group of deliveries that needs a second look, with what that needs to know."""

    group: Group
    own: Range | None
    """What the sender sent in this view."""
    ranges: list[tuple[ViewKey, Range]]
    """What it sent in all views."""
    complete: bool
    """Whether the sender's rows of the view are all there."""


def rows(table: DataFrame) -> list[dict[str, Any]]:
    """A small table as plain data."""
    return table.toArrow().to_pylist()


def few_rows(table: DataFrame) -> Iterator[dict[str, Any]]:
    """The same, a few rows at a time: for rows with long lists."""
    for batch in table.toArrow().to_batches(max_chunksize=ROWS_AT_ONCE):
        yield from batch.to_pylist()


def group_of(row: dict[str, Any]) -> Group:
    """The group that a row is about."""
    return row["member"], (row["view"], row["view_by"]), row["sender"]


def group_line(row: dict[str, Any]) -> GroupLine:
    """A row of `groups`, unpacked."""
    digest = row["digest"]
    return GroupLine(
        group_of(row),
        row["sending"],
        Range(row["first"], row["last"]),
        row["tile"],
        None if digest is None else PayloadSum(digest, row["nbytes"]),
        _range(row["skipped_first"], row["skipped_last"]),
        _range(row["early_first"], row["early_last"]),
        row["latency_min"],
        row["places"],
    )


def _range(first: int | None, last: int | None) -> Range | None:
    return None if first is None or last is None else Range(first, last)


def local(
    spark: SparkSession, columns: dict[str, pa.DataType], data: Iterable[tuple[object, ...]]
) -> DataFrame:
    """A small table of plain data. It goes as Arrow: lists of tuples would start Python workers."""
    schema = pa.schema(list(columns.items()))
    lists = list(zip(*data, strict=True)) or [()] * len(columns)
    arrays = [pa.array(v, kind) for v, kind in zip(lists, columns.values(), strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def group_table(spark: SparkSession, groups: Iterable[Group]) -> DataFrame:
    """A table of groups, to pick their rows."""
    return local(spark, longs(*GROUP), ((m, *view, sender) for m, view, sender in groups))


def suspect_table(spark: SparkSession, suspects: Iterable[SuspectGroup]) -> DataFrame:
    """A table of suspects, as the walk wants it."""
    reach = longs("first", "last")
    sent = pa.struct([("in", pa.struct(longs(*VIEW).items())), *reach.items()])
    columns = {
        **longs(*GROUP),
        "own": pa.struct(reach.items()),
        "ranges": pa.list_(sent),
        "complete": pa.bool_(),
    }
    return local(spark, columns, (_flat(suspect) for suspect in suspects))


def extent_table(spark: SparkSession, extents: Iterable[tuple[Source, Range]]) -> DataFrame:
    """A table of the first and the last messages of senders in views."""
    flat = ((*view, sender, *extent) for (view, sender), extent in extents)
    return local(spark, longs(*VIEW, "sender", "begin", "finish"), flat)


def longs(*names: str) -> dict[str, pa.DataType]:
    """Columns of whole numbers."""
    return dict.fromkeys(names, pa.int64())


def _flat(suspect: SuspectGroup) -> tuple[object, ...]:
    member, view, sender = suspect.group
    own = suspect.own._asdict() if suspect.own else None
    ranges = [{"in": dict(zip(VIEW, v, strict=True)), **r._asdict()} for v, r in suspect.ranges]
    return member, *view, sender, own, ranges, suspect.complete
