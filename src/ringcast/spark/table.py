"""A journal as a DataFrame over its Parquet files: Spark itself leaves out columns and row groups.

`format("ringcast")` goes through Python workers, and Spark tells a source in Python neither which
columns a query needs nor what it counts. Here the plan is the same, made from manifests; where
recorders overlap, a small table says which seqnos count in which file.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.errors import ConfigError
from ringcast.journal.format.layout import Layout
from ringcast.journal.read.conditions_text import TIMES, conditions_text
from ringcast.journal.read.plan import Slice, assign
from ringcast.journal.read.prune import ANY, NUMBERS, Conditions, prune
from ringcast.journal.read.reader import Journal
from ringcast.journal.read.start import EPOCH
from ringcast.spark.audit import tables
from ringcast.spark.options import SourceOptions
from ringcast.spark.source import SCHEMA
from ringcast.spark.traces import CHECKED, without_wildcards

log = logging.getLogger("ringcast.spark")

Value = int | str | datetime
Asked = Value | Collection[Value] | tuple[Value | None, Value | None]
"""A value, several, or the first and the last."""
ASKED = ("group", *NUMBERS)

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTING_TASKS = 16
"""Tasks that look at the files of a journal: each of them can do so for a thousand in no time."""

TAKEN = {"file": pa.string(), **tables.longs("of", "first", "last")}
"""Which seqnos of which sender count in a file."""


def journal(spark: SparkSession, path: str | Path, **asked: Asked) -> DataFrame:
    """All that is sealed in a journal now, each message once, read by Spark's own Parquet reader.

    It has the columns of `format("ringcast")`. `asked` leaves out rows, and by their manifests the
    segments that have none: by column a value, several in a list or set, or in a tuple the first
    and the last, where None is no bound: `sender=7, sent_at=(monday, None)`. Make a new one to see
    what was sealed since, or when a file is gone because of retention or compaction. An address of
    an object store is read by `format("ringcast")`, which needs `rs.register(spark)`. Raises
    ConfigError.
    """
    conditions, filters = _conditions(asked)
    place = SourceOptions.of({"path": str(path)}).path
    if isinstance(place, str):
        options = conditions_text(conditions)
        return _where(spark.read.format("ringcast").options(**options).load(place), filters)
    found = Journal(place)
    slices, _ = assign(found.segments, found.cover)
    kept = {part.segment.name for part in prune(slices, conditions)}
    log.info("reading %d of %d segments in %s", len(kept), len(slices), place)
    whole = [part for part in slices if part.segment.name in kept and part.whole]
    cut = [part for part in slices if part.segment.name in kept and not part.whole]
    frames = [_parquet(spark, place, whole)] if whole else []
    if cut:
        frames.append(_taken(_parquet(spark, place, cut), cut))
    if not frames:
        return spark.createDataFrame([], SCHEMA)
    first, *others = (frame.select(*SCHEMA.names) for frame in frames)
    for other in others:
        first = first.unionAll(other)
    return _where(first, filters)


def _conditions(asked: Mapping[str, Asked]) -> tuple[Conditions, list[Column]]:
    """What is asked for, to leave out segments and to leave out rows. Raises ConfigError."""
    conditions, filters = Conditions(), list[Column]()
    for name, values in asked.items():
        if name not in ASKED:
            raise ConfigError(f"a journal cannot be asked for {name}: give {', '.join(ASKED)}")
        column = F.col(name)
        if isinstance(values, tuple):
            first, last = values
            least = ANY[0] if first is None else _number(name, first)
            most = ANY[1] if last is None else _number(name, last)
            conditions = conditions.within(name, (least, most))
            filters += [] if first is None else [column >= F.lit(first)]
            filters += [] if last is None else [column <= F.lit(last)]
            continue
        some = list(values) if isinstance(values, (list, set, frozenset)) else [values]
        numbers = some if name == "group" else [_number(name, value) for value in some]
        conditions = conditions.among(name, numbers)
        filters.append(column.isin(some))
    return conditions, filters


def _number(name: str, value: object) -> int:
    """A whole number, or the microseconds of a time; a time without a zone is a local one."""
    if isinstance(value, datetime) and name in TIMES:
        return (value.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, int) and name not in TIMES:
        return value
    kind = "times" if name in TIMES else "whole numbers"
    raise ConfigError(f"a journal is asked for {name} {value!r}: give {kind}")


def _where(rows: DataFrame, filters: Sequence[Column]) -> DataFrame:
    for wanted in filters:
        rows = rows.where(wanted)
    return rows


def _parquet(spark: SparkSession, root: Path, slices: Sequence[Slice]) -> DataFrame:
    names = [str(Layout(root).segment(part.segment.name)) for part in slices]
    reader = spark.read.schema(SCHEMA).options(**CHECKED)
    with _few_listing_tasks(spark):
        return reader.parquet(*map(without_wildcards, names))


@contextmanager
def _few_listing_tasks(spark: SparkSession) -> Iterator[None]:
    """Spark looks at the files that it is given, and has a task for each one by default."""
    before = spark.conf.get(LISTING)
    spark.conf.set(LISTING, str(LISTING_TASKS))
    try:
        yield
    finally:
        spark.conf.set(LISTING, str(before))


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
