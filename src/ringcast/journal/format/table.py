"""Log records to Parquet; it needs pyarrow, and is imported when something is sealed or read.

Columns are built a run at a time; the messages of a run are copied and counted in C.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from io import RawIOBase
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ringcast.journal.format.log_records import RunRecord

MICROSECONDS = pa.timestamp("us", tz="UTC")
FIELDS: list[tuple[str, pa.DataType]] = [
    ("group", pa.string()),
    ("view", pa.int64()),
    ("sender", pa.int64()),
    ("seqno", pa.int64()),
    ("sent_at", MICROSECONDS),
    ("delivered_at", MICROSECONDS),
    ("payload", pa.binary()),
    ("recorder", pa.int64()),
    ("view_by", pa.int64()),
    ("sender_name", pa.string()),
]
SCHEMA = pa.schema(FIELDS)
FIRST_SCHEMA = pa.schema(FIELDS[:-1])
"""The columns of segments before senders had names there."""

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Column = pa.Array[pa.Scalar[pa.DataType]]


NamedRun = tuple[RunRecord, str | None]
"""A run, and what its sender is called."""


def parquet_pieces(runs: Iterable[NamedRun], group: str, recorder: int) -> Iterator[bytes]:
    """A Parquet file of these runs, in pieces: memory holds a row group, not the file."""
    return _pieces(rows.table(group, recorder) for rows in _row_groups(runs))


def joined_pieces(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """A Parquet file of these tables, one behind the other, in row groups of a good size."""
    return _pieces(_grouped(tables))


def _grouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Neighbours together, as many as a row group takes."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        rows, size = rows + table.num_rows, size + table.nbytes
        if waiting and (rows > ROW_GROUP_ROWS_MAX or size > ROW_GROUP_BYTES_MAX):
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], table.num_rows, table.nbytes
        waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting)


def _pieces(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """A Parquet file with a row group per table, in pieces.

    pyarrow writes to memory and the caller to the disk: a full disk then fails in the caller, and
    not in the middle of a callback.
    """
    sink = _Pieces()
    file = pa.PythonFile(sink, "w")
    # With checksums a damaged page is an error, and never a message that nobody sent.
    with pq.ParquetWriter(file, SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        for table in tables:
            writer.write_table(table)
            yield from sink.take()
    yield from sink.take()


class _RowGroup:
    """Columns that grow by runs."""

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self._numbers = {name: array("q") for name in NUMBERS}
        self._lengths: list[int] = []
        self._payloads: list[memoryview] = []
        self._names: dict[str | None, int] = {}
        self._name_of_row = array("i")

    def add(self, run: RunRecord, name: str | None) -> None:
        rows = len(run.lengths)
        for column in CONSTANTS:
            self._numbers[column].extend(array("q", (getattr(run, column),)) * rows)
        self._numbers["seqno"].extend(range(run.first, run.first + rows))
        self._lengths.extend(run.lengths)
        self._payloads.append(run.payloads)
        place = self._names.setdefault(name, len(self._names))
        self._name_of_row.extend(array("i", (place,)) * rows)
        self.rows += rows
        self.bytes += len(run.payloads)

    def full_with(self, run: RunRecord) -> bool:
        """Whether this run would make the group too large; a run alone never does."""
        return self.rows > 0 and (
            self.rows + len(run.lengths) > ROW_GROUP_ROWS_MAX
            or self.bytes + len(run.payloads) > ROW_GROUP_BYTES_MAX
        )

    def table(self, group: str, recorder: int) -> pa.Table:
        columns: dict[str, Column] = {
            "group": pa.repeat(pa.scalar(group, pa.string()), self.rows),
            "recorder": pa.repeat(pa.scalar(recorder, pa.int64()), self.rows),
            "payload": self._payload_column(),
            "sender_name": self._name_column(),
        }
        for name, numbers in self._numbers.items():
            kind = SCHEMA.field(name).type
            columns[name] = pa.Array.from_buffers(kind, self.rows, [None, pa.py_buffer(numbers)])
        return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _name_column(self) -> Column:
        places = pa.py_buffer(self._name_of_row)
        indices = pa.Array.from_buffers(pa.int32(), self.rows, [None, places])
        return pa.array(list(self._names), pa.string()).take(indices)

    def _payload_column(self) -> Column:
        offsets = array("i", accumulate(self._lengths, initial=0))
        payloads = pa.py_buffer(b"".join(self._payloads))
        return pa.Array.from_buffers(
            pa.binary(), self.rows, [None, pa.py_buffer(offsets), payloads]
        )


def _row_groups(runs: Iterable[NamedRun]) -> Iterator[_RowGroup]:
    rows = _RowGroup()
    for run, name in runs:
        if rows.full_with(run):
            yield rows
            rows = _RowGroup()
        rows.add(run, name)
    if rows.rows:
        yield rows


class _Pieces(RawIOBase):
    """A file in memory whose contents are taken away as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def take(self) -> list[bytes]:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces


CONSTANTS = ("view", "view_by", "sender", "sent_at", "delivered_at")
NUMBERS = (*CONSTANTS, "seqno")
ROW_GROUP_ROWS_MAX = 65_536
ROW_GROUP_BYTES_MAX = 32 * 2**20
GROUP_BYTES_MAX = 256 * 2**20
"""Bytes of a row group with several messages in memory: recorders write far smaller ones."""
