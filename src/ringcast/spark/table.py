"""A journal as a DataFrame over its Parquet files: Spark itself leaves out columns and row groups.

`format("ringcast")` goes through Python workers, and Spark tells a source in Python neither which
columns a query needs nor what it counts. Here the plan is the same, made from manifests; where
recorders overlap, a small table says which seqnos count in which file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.journal.format.layout import Layout
from ringcast.journal.read.plan import Slice, assign
from ringcast.journal.read.reader import Journal
from ringcast.spark.audit import tables
from ringcast.spark.options import SourceOptions
from ringcast.spark.source import SCHEMA
from ringcast.spark.traces import CHECKED, without_wildcards

TAKEN = {"file": pa.string(), **tables.longs("of", "first", "last")}
"""Which seqnos of which sender count in a file."""


def journal(spark: SparkSession, path: str | Path) -> DataFrame:
    """All that is sealed in a journal now, each message once, read by Spark's own Parquet reader.

    It has the columns of `format("ringcast")`. Make a new one to see what was sealed since, or when
    a file is gone because of retention or compaction. An address of an object store is read by
    `format("ringcast")`, which needs `rs.register(spark)`. Raises ConfigError.
    """
    place = SourceOptions.of({"path": str(path)}).path
    if isinstance(place, str):
        return spark.read.format("ringcast").load(place)
    found = Journal(place)
    slices, _ = assign(found.segments, found.cover)
    whole = [part for part in slices if part.whole]
    cut = [part for part in slices if not part.whole]
    frames = [_parquet(spark, place, whole)] if whole else []
    if cut:
        frames.append(_taken(_parquet(spark, place, cut), cut))
    if not frames:
        return spark.createDataFrame([], SCHEMA)
    first, *others = (frame.select(*SCHEMA.names) for frame in frames)
    for other in others:
        first = first.unionAll(other)
    return first


def _parquet(spark: SparkSession, root: Path, slices: Sequence[Slice]) -> DataFrame:
    names = [str(Layout(root).segment(part.segment.name)) for part in slices]
    return spark.read.schema(SCHEMA).options(**CHECKED).parquet(*map(without_wildcards, names))


def _taken(rows: DataFrame, slices: Sequence[Slice]) -> DataFrame:
    """The rows that the plan takes. No two spans of a sender in a file overlap."""
    spans = [
        (f"{part.segment.name}.parquet", sender, first, last)
        for part in slices
        for sender, taken in part.senders.items()
        for first, last in taken
    ]
    table = F.broadcast(tables.local(rows.sparkSession, TAKEN, spans))
    is_taken = (
        (F.col("_metadata.file_name") == F.col("file"))
        & (F.col("sender") == F.col("of"))
        & F.col("seqno").between(F.col("first"), F.col("last"))
    )
    return rows.join(table, is_taken, "left_semi")
