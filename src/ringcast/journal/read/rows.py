"""The rows of sealed segments as Arrow batches, cut to the seqnos that a plan takes from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.journal.format.checkpoint import lines_of
from ringcast.journal.format.errors import DataLost, JournalError
from ringcast.journal.format.layout import Layout, covers, numbers_of
from ringcast.journal.format.manifest import segment_of_line
from ringcast.journal.format.object_store import store_at
from ringcast.journal.format.parquet_bounds import (
    UNREADABLE,
    UnpacksTooLarge,
    bounded,
    check_row_group,
    open_bounded,
)
from ringcast.journal.format.spans import Spans
from ringcast.journal.format.table import FIRST_SCHEMA, GROUP_BYTES_MAX, MICROSECONDS, SCHEMA
from ringcast.journal.read.conditions_text import TIMES
from ringcast.journal.read.plan import Slice
from ringcast.journal.read.prune import Bounds, Conditions
from ringcast.journal.read.reader import Root

Place = Path | str
"""Of a segment: its path, or its address in an object store."""

MESSAGE_BYTES_MAX = 2**30 + 2**20
"""Bytes of a row group with one message, the largest that is recorded, in memory."""


def read_slice(
    root: Root, part: Slice, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, a row group at a time. Raises DataLost when the segment is gone.

    Raises JournalError when the file is not what a recorder writes.
    """
    names = list(SCHEMA.names if columns is None else columns)
    senders = None if part.whole else part.senders
    return read_rows(root, part.segment.name, senders, names)


def read_rows(
    root: Root,
    name: str,
    senders: Mapping[int, Spans] | None,
    columns: Sequence[str],
    conditions: Conditions | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a segment that these spans take, or all; see `read_slice`.

    `conditions` leave out rows by their times; what they say of the rest is in `senders`.
    """
    there = located(root, name)
    bounds = {} if conditions is None else conditions.bounds
    times = [name for name in TIMES if name in bounds]
    with open_segment(root, there.name) as file:
        known = file.schema_arrow.names
        others = times if senders is None else (*times, *KEYS)
        needed = [n for n in known if n in columns or n in others]
        for group, first, last in _row_groups(file, there):
            path = place_of(root, there.name)
            for batch in _batches(file, group, needed or KEYS, path, slice(first, last)):
                taken = batch if senders is None else batch.filter(_mask(batch, senders))
                for time in times:
                    taken = taken.filter(_within(taken.column(time), bounds[time]))
                if taken.num_rows:
                    yield _completed(taken, columns)


class RowRange(NamedTuple):
    """Where the rows of a segment are: all of a file, or some of a compacted one."""

    name: str
    first: int = 0
    rows: int | None = None


def located(root: Root, name: str) -> RowRange:
    """Where the rows of a segment are now; a reader may have planned before it was compacted."""
    if isinstance(root, str):  # Nothing moves there.
        return RowRange(name)
    layout = Layout(root)
    if layout.segment(name).exists():
        return RowRange(name)
    for other, line in lines_of(layout.checkpoint).items():
        if covers(other, name):
            parts = segment_of_line(line, layout.checkpoint).parts
            first, last = numbers_of(name)
            before = sum(rows for number, rows in parts if number < first)
            mine = [rows for number, rows in parts if first <= number <= last]
            return RowRange(other, before, sum(mine)) if mine else RowRange(name)
    return RowRange(name)


def _row_groups(file: pq.ParquetFile, there: RowRange) -> Iterator[tuple[int, int, int]]:
    """The row groups to read, each with the first row that is taken and the one behind the last."""
    start, end = 0, math.inf if there.rows is None else there.first + there.rows
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        first, last = max(0, there.first - start), int(min(rows, end - start))
        start += rows
        if first < last:
            yield group, first, last


def _completed(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """These columns of a batch; those that older segments have not are null."""
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    known = batch.schema.names
    arrays = [
        batch.column(field.name) if field.name in known else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def seqnos(root: Root, name: str, sender: int, spans: Spans) -> list[int]:
    """The seqnos of a sender that a segment has rows for, within these spans, rising."""
    batches = read_rows(root, name, {sender: spans}, ["seqno"])
    return [seqno for batch in batches for seqno in batch.column(0).to_pylist() if seqno]


def delivered_before(root: Root, part: Slice, at: int) -> dict[int, int]:
    """By sender, the last seqno of a slice that was delivered before a time in microseconds."""
    lasts: dict[int, int] = {}
    moment = pa.scalar(at, MICROSECONDS)
    for batch in read_slice(root, part, [*KEYS, "delivered_at"]):
        early = batch.filter(pc.less(batch.column("delivered_at"), moment))
        table = pa.Table.from_batches([early]).group_by("sender").aggregate([("seqno", "max")])
        for row in table.to_pylist():
            lasts[row["sender"]] = max(lasts.get(row["sender"], 0), row["seqno_max"])
    return lasts


def place_of(root: Root, name: str) -> Place:
    """Where the Parquet file of a segment is."""
    if isinstance(root, str):
        return store_at(root).address(f"{name}.parquet")
    return Layout(root).segment(name)


def open_segment(root: Root, name: str) -> pq.ParquetFile:
    """The Parquet file of a segment, which has a recorder's columns."""
    path = place_of(root, name)
    if isinstance(path, Path) and path.exists() and not path.is_file():
        raise _damaged(path)  # Opening a pipe would wait for its other end.
    try:
        source = path if isinstance(path, Path) else store_at(str(root)).open(f"{name}.parquet")
        file = open_bounded(source, MESSAGE_BYTES_MAX)
    except FileNotFoundError as error:
        raise DataLost(
            f"{path} was removed, by retention or by hand, before it was read: keep more, or set "
            "failOnDataLoss to false"
        ) from error
    except UnpacksTooLarge as error:
        raise _unpacks(path, error) from None
    except UNREADABLE as error:
        raise _damaged(path) from error
    if _plain(file.schema_arrow) not in (SCHEMA, FIRST_SCHEMA):
        file.close()
        raise JournalError(f"{path} is not a segment of a journal: move it away with its manifest")
    return file


def _batches(
    file: pq.ParquetFile, group: int, columns: Sequence[str], path: Place, rows: slice
) -> list[pa.RecordBatch]:
    """These rows of one row group."""
    metadata = file.metadata.row_group(group)
    most = MESSAGE_BYTES_MAX if metadata.num_rows == 1 else GROUP_BYTES_MAX
    try:
        check_row_group(metadata, most)
        table = file.read_row_group(group, list(columns))
        made = pa.Table.from_arrays(bounded(table.columns, most), names=table.column_names)
        return made[rows].to_batches()
    except UnpacksTooLarge as error:
        raise _unpacks(path, error) from None
    except UNREADABLE as error:
        raise _damaged(path) from error


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that columns with a dictionary have without it."""
    kinds = (
        pa.field(field.name, field.type.value_type, field.nullable)
        if isinstance(field.type, pa.DictionaryType)
        else field
        for field in schema
    )
    return pa.schema(list(kinds))


def _unpacks(path: Place, error: UnpacksTooLarge) -> JournalError:
    return JournalError(f"{path} is not a segment of a recorder: {error}. Remove its manifest.")


def _damaged(path: Place) -> JournalError:
    if isinstance(path, str):
        return JournalError(f"{path} cannot be read: the store is not reached, or it is damaged")
    return JournalError(f"{path} is damaged: restore it, or remove its manifest")


def _mask(batch: pa.RecordBatch, senders: Mapping[int, Spans]) -> pa.BooleanArray:
    """Which rows the spans take.

    All senders at once: the first spans of all of them, then the second ones, and so on. There is
    hardly ever a second, so this is one pass however many senders there are. Rows of other senders
    come out as null, which a filter drops.
    """
    sender, seqno = batch.column("sender"), batch.column("seqno")
    mask = pc.is_null(sender)
    for layer in range(max(map(len, senders.values()), default=0)):
        bounds = {s: spans[layer] for s, spans in senders.items() if layer < len(spans)}
        place = pc.index_in(sender, value_set=pa.array(bounds, pa.int64()))
        first = pa.array([first for first, _ in bounds.values()], pa.int64()).take(place)
        last = pa.array([last for _, last in bounds.values()], pa.int64()).take(place)
        inside = pc.and_(pc.greater_equal(seqno, first), pc.less_equal(seqno, last))
        mask = pc.or_kleene(mask, inside)
    return mask


def _within(times: pa.Array[Any], bounds: Bounds) -> pa.BooleanArray:
    """Which times lie within these bounds, as a null never does."""
    first, last = (pa.scalar(bound, times.type) for bound in bounds)
    return pc.and_(pc.greater_equal(times, first), pc.less_equal(times, last))


KEYS = ("sender", "seqno")
