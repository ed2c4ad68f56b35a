"""`format("ringcast")`: a journal as a DataFrame, in a batch or as a stream; `sink` writes.

The work is planned from manifests on the driver: which segment gives which seqnos of which sender,
so that the union of all recorders has each message once and no shuffle is needed. A task reads its
slices and yields Arrow batches. Nothing is shared between the two but what a partition carries.

The reader takes no filters from Spark, which keeps one plan per DataFrame of a source in Python: a
second query over the same DataFrame would get the rows that the first one's filters had left.
Conditions are options instead, which belong to the DataFrame.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ringcast.errors import ConfigError
from ringcast.journal.format.errors import DataLost
from ringcast.journal.format.layout import journal_at
from ringcast.journal.format.spans import Spans
from ringcast.journal.read.plan import Slice, assign
from ringcast.journal.read.prune import prune
from ringcast.journal.read.remote import open_journal
from ringcast.journal.read.stream import JournalStream, Offset
from ringcast.spark.catalog import is_table, options_in, table_options, with_options
from ringcast.spark.members import MEMBERS, MembersReader
from ringcast.spark.options import SinkOptions, SourceOptions
from ringcast.spark.sink import GroupStreamWriter, GroupWriter

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("ringcast.spark")

SCHEMA = StructType(
    [
        StructField("group", StringType()),
        StructField("view", LongType()),
        StructField("sender", LongType()),
        StructField("seqno", LongType()),
        StructField("sent_at", TimestampType()),
        StructField("delivered_at", TimestampType()),
        StructField("payload", BinaryType()),
        StructField("recorder", LongType()),
        StructField("view_by", LongType()),
        StructField("sender_name", StringType()),
    ]
)
"""The columns of a journal, as Spark has them; its Parquet files have the same."""


class RingcastDataSource(DataSource):
    """What `spark.dataSource.register` takes. Raises ConfigError, with what to do instead."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "ringcast"

    def schema(self) -> StructType:
        """The columns; asked for by `load()`, so a wrong path or option is told there."""
        is_new_table = is_table(self.options)
        given = table_options(self.options) if is_new_table else self.options
        options = SourceOptions.of(given)
        if isinstance(options.path, str):
            open_journal(options.path)
        else:
            journal_at(options.path)
        columns = MEMBERS if options.table == "members" else SCHEMA
        return with_options(columns, given) if is_new_table else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch."""
        options = SourceOptions.of({**options_in(schema), **self.options})
        if options.table == "members":
            return MembersReader(options.path, _columns(schema, MEMBERS))
        return JournalReader(options, _columns(schema))

    def streamReader(self, schema: StructType) -> JournalStreamReader:
        """The reader of a stream."""
        options = SourceOptions.of({**options_in(schema), **self.options})
        if options.table == "members":
            raise ConfigError("the table of members is not a stream: read it with spark.read")
        return JournalStreamReader(options, _columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> GroupWriter:
        """The writer of a batch."""
        return GroupWriter(SinkOptions.of(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> GroupStreamWriter:
        """The writer of a stream."""
        return GroupStreamWriter(SinkOptions.of(self.options), schema, overwrite)


class SegmentPart(NamedTuple):
    """What a task takes of one segment: of these senders these seqnos, or all with None."""

    segment: str
    senders: Mapping[int, Spans] | None


class JournalPartition(InputPartition):
    """The work of one task."""

    def __init__(self, parts: Sequence[SegmentPart]) -> None:
        super().__init__(None)
        self.parts = tuple(parts)


class JournalReader(DataSourceReader):
    """All that is sealed when the query is planned, each message once, a segment per partition."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """The work, by segment."""
        journal = open_journal(self._options.path)
        slices, _ = assign(journal.segments, journal.cover)
        return _partitions(slices, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, on an executor."""
        return _read(partition, self._options, self._columns)


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Segments as they are sealed, from the offset on, each message once, fair to all senders."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def initialOffset(self) -> Offset:
        """What the option startingOffsets says; before everything by default."""
        from ringcast.journal.read.rows import delivered_before

        find = partial(delivered_before, self._options.path)
        return self._stream.initial(self._options.start, find)

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the option maxRowsPerBatch says."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the batch ends that begins here."""
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self._stream.latest(start, rows, self._options.max_bytes)
        if end != start and log.isEnabledFor(logging.INFO):
            lag = self._stream.lag(end)
            log.info("behind by %d rows and %.1f s after this batch", lag.rows, lag.seconds)
        return end

    def reportLatestOffset(self) -> Offset:
        """All there is, for the query's progress."""
        return self._stream.newest()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what there is now, and no more."""
        self._stream.freeze()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The work between two offsets."""
        return _partitions(self._stream.plan(start, end), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, on an executor."""
        return _read(partition, self._options, self._columns)

    @cached_property
    def _stream(self) -> JournalStream:
        """Made on the driver when it is first asked, and never sent to an executor."""
        from ringcast.journal.read.rows import seqnos

        path = self._options.path
        fail = self._options.fail_on_loss
        return JournalStream(open_journal(path), partial(seqnos, path), fail_on_loss=fail)


def _columns(schema: StructType, whole: StructType = SCHEMA) -> list[str]:
    """The columns that were asked for; a schema of the user's own may leave some out."""
    known = {field.name: field.dataType for field in whole.fields}
    for field in schema.fields:
        if known.get(field.name) != field.dataType:
            raise ConfigError(
                f"a journal has no column {field.name} of type {field.dataType.simpleString()}: "
                f"it has {whole.simpleString()}"
            )
    return schema.fieldNames()


def _partitions(slices: Sequence[Slice], options: SourceOptions) -> list[InputPartition]:
    """One per slice that can match the conditions, or as many as the options allow, with their
    neighbours together."""
    kept = prune(slices, options.conditions)
    log.info("reading %d of %d segments", len(kept), len(slices))
    parts = [SegmentPart(s.segment.name, None if s.whole else s.senders) for s in kept]
    number = min(len(parts), options.max_partitions)
    bounds = [len(parts) * i // number for i in range(number + 1)] if number else []
    return [JournalPartition(parts[a:b]) for a, b in pairwise(bounds)]


def _read(
    partition: InputPartition, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    from ringcast.journal.read.rows import read_rows

    conditions = options.conditions
    # With nothing to read Spark makes up a partition of its own.
    parts = partition.parts if isinstance(partition, JournalPartition) else ()
    for part in parts:
        try:
            yield from read_rows(options.path, part.segment, part.senders, columns, conditions)
        except DataLost:
            if options.fail_on_loss:
                raise
