"""`format("ringcast")` when it writes: each row is a message to a live group, sent by executors.

A task hands its rows to the gateway of its machine, which is the member, and ends when every member
of the group has taken them. So an epoch that Spark counts as done has been delivered, and an
attempt that failed has sent a prefix of its partition. Rows carry their places, and
`ringcast.job_rows` drops repeats at the receivers; nothing is to be done when a job commits or is
given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StringType, StructType

from ringcast.errors import ConfigError, LocalError
from ringcast.spark.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_ROWS = 512
FRAME_BYTES = 1_000_000
"""How much a task hands to the gateway at once, about: the group gets it as one run."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task has done."""

    partition: int
    rows: int


class GroupWriter(DataSourceArrowWriter):
    """Writes a batch. Raises ConfigError for columns and modes that can't be written.

    That `write` takes Arrow batches instead of rows is Spark's own break with its base class.
    """

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        _check(schema, overwrite)
        self._options = options
        # Made once, on the driver: all attempts at all tasks of this job have the same.
        self._query = uuid4() if options.query is None else _named(options.query)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        """The rows of one partition, on an executor."""
        return _write(iterator, self._options, self._query, self._options.epoch)


class GroupStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; the query and its epoch are those of the checkpoint."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        _check(schema, overwrite)
        if options.query is not None:
            raise ConfigError("a stream has the name of its checkpoint: leave out query and epoch")
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        """The rows of one partition of an epoch, on an executor."""
        query, epoch = _property("sql.streaming.queryId"), _property("streaming.sql.batchId")
        return _write(iterator, self._options, UUID(query), int(epoch))


def _write(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, query: UUID, epoch: int
) -> Written:
    from ringcast.gateway import Settings, connect
    from ringcast.job_rows import Stamp
    from ringcast.spark.failed_attempts import failing_once

    settings = Settings(
        group=options.group,
        spec=options.stack.to_toml(),
        timeout=options.timeout,
        idle=options.idle,
        min_receivers=options.min_receivers,
        key_file=options.key_file,
    )
    partition = _context().partitionId()
    stamp = Stamp(query, epoch, partition)
    frames = _frames(_sorted(batches) if options.sort else batches)
    first = next(frames, None)
    if first is not None:  # Many partitions of a shuffle are empty, and need nobody.
        job, attempt = f"{query}/{epoch}", _context().attemptNumber()
        with failing_once(settings, job, attempt), connect(settings) as gateway:
            for values in chain((first,), frames):
                gateway.send(stamp.messages(values))
            gateway.flush()
    return Written(partition, stamp.count)


def _values(batch: pa.RecordBatch) -> list[bytes]:
    """The rows of an Arrow batch as bytes. Raises LocalError for a null."""
    import pyarrow as pa

    column = batch.column(0)
    if column.null_count:
        raise LocalError("a value is null, and a message can't be: filter such rows out")
    # A string is its UTF-8, which Arrow has already: nothing is decoded and encoded again.
    return [value for value in column.cast(pa.binary()).to_pylist() if value is not None]


def _frames(batches: Iterator[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """Rows in chunks: up to a number of rows, and not much more than a number of bytes."""
    frame: list[bytes] = []
    size = 0
    for value in chain.from_iterable(map(_values, batches)):
        frame.append(value)
        size += len(value)
        if len(frame) >= FRAME_ROWS or size >= FRAME_BYTES:
            yield frame
            frame, size = [], 0
    if frame:
        yield frame


def _sorted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of a partition in the order of their bytes."""
    import pyarrow as pa

    kept = list(batches)
    if kept:
        table = pa.Table.from_batches(kept)
        yield from table.sort_by(table.column_names[0]).to_batches()


def _check(schema: StructType, overwrite: bool) -> None:
    if overwrite:
        raise ConfigError('messages can\'t be overwritten: write with mode("append")')
    fields = schema.fields
    is_value = len(fields) == 1 and fields[0].name.lower() == "value"
    if not is_value or not isinstance(fields[0].dataType, BinaryType | StringType):
        raise ConfigError(
            "the sink writes one column, value, of type binary or string, and this has "
            f'{schema.simpleString()}: select one, say "to_json(struct(*)) AS value"'
        )


def _named(name: str) -> UUID:
    """The same for the same name, and for no other."""
    return uuid5(NAMESPACE_URL, f"ringcast:{name}")


def _property(name: str) -> str:
    """What Spark says of the query to which a task belongs."""
    found = _context().getLocalProperty(name)
    if found is None:
        raise LocalError(f"Spark does not say which micro-batch this is ({name}): write a batch")
    return str(found)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a writer runs in a task"
    return context
