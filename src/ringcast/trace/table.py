"""Trace rows to Parquet: the only file here that needs pyarrow, loaded when a trace is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.errors import ConfigError
from ringcast.journal.format.parquet_bounds import (
    UNREADABLE,
    UnpacksTooLarge,
    bounded,
    open_bounded,
)
from ringcast.trace.checksum import SummedFile, damage, is_damaged
from ringcast.trace.compaction.names import covered
from ringcast.trace.row_encoding import NOTE, NOTE_FIELDS
from ringcast.trace.schema import (
    COLUMNS,
    INT,
    LATER,
    LONG,
    LONGS,
    MESSAGE_KINDS,
    REQUIRED,
    STRING,
    STRINGS,
    Row,
    signed,
    unsigned,
)

TYPES: dict[str, pa.DataType] = {
    LONG: pa.int64(),
    INT: pa.int32(),
    STRING: pa.string(),
    LONGS: pa.list_(pa.int64()),
    STRINGS: pa.list_(pa.string()),
}
SCHEMA = pa.schema([pa.field(n, TYPES[t], nullable=n not in REQUIRED) for n, t in COLUMNS])
NULLABLE = pa.schema([field.with_nullable(True) for field in SCHEMA])

BATCH_ROWS_MAX = 65_536
"""Rows of a trace that are read at once."""

DELTA = ("seqno", "pos", "sent_at", "at", "place")
"""Columns that rise slowly: stored as differences they take a seventh of the space."""

DICTIONARY = ("member", "view", "view_by", "sender", "kind", "count", "nbytes", "peer")
"""Columns with few different values. To try it on the others doubles the cost of writing."""

ADDRESSES = ("member", "view_by", "sender", "peer")


class Sheet:
    """A Parquet file that grows by row groups, and can be read once it is closed."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self._file = SummedFile(path)
        self._writer = pq.ParquetWriter(
            self._file,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=list(DICTIONARY),  # type: ignore[arg-type]  # the stubs know bool only
            column_encoding=dict.fromkeys(DELTA, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        )

    def write_messages(self, member: int, notes: bytearray) -> None:
        """Add a row group of messages, from notes as `notes.pack` made them."""
        count, words = len(notes) // NOTE.size, memoryview(notes).cast("q")
        columns: dict[str, pa.Array[Any]] = {"member": pa.repeat(pa.scalar(signed(member)), count)}
        for place, name in enumerate(NOTE_FIELDS):
            buffer = pa.py_buffer(words[place :: len(NOTE_FIELDS)].tobytes())
            columns[name] = pa.Array.from_buffers(pa.int64(), count, [None, buffer])
        columns["kind"] = pa.array(MESSAGE_KINDS).take(columns["kind"])
        columns["count"] = columns["count"].cast(pa.int32())
        for name in ("pos", "digest", "place"):
            absent = pc.less(columns[name], pa.scalar(0))
            columns[name] = pc.if_else(absent, pa.scalar(None, pa.int64()), columns[name])
        self._write(count, columns)

    def write_rows(self, rows: Sequence[Row]) -> None:
        """Add a row group of rows as they come."""
        columns: dict[str, Sequence[object]] = dict(
            zip(Row._fields, zip(*rows, strict=True), strict=True)
        )
        for name in ADDRESSES:
            columns[name] = [_signed(value) for value in columns[name]]
        columns["members"] = [_all_signed(value) for value in columns["members"]]
        arrays = {f.name: pa.array(columns[f.name], f.type) for f in SCHEMA}
        self._write(len(rows), arrays)

    def close(self) -> None:
        """Write the footer, without which the file can't be read."""
        self._writer.close()
        self._file.close()

    @property
    def checksum(self) -> int:
        """The checksum of all that was written; of the whole file, once it is closed."""
        return self._file.checksum

    def _write(self, count: int, columns: dict[str, pa.Array[Any]]) -> None:
        arrays = [columns.get(f.name, pa.nulls(count, f.type)) for f in SCHEMA]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), row_group_size=count)
        self.rows += count


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to one Parquet file, as they come: for histories that were not recorded live."""
    sheet = Sheet(path)
    sheet.write_rows(rows)
    sheet.close()


def read_rows(directory: Path) -> list[Row]:
    """The rows of all traces in a directory, addresses as members have them; for small ones."""
    files = sorted(directory.glob("*.parquet"))
    double = covered(files)
    return [row for file in files if file not in double for row in read_file(file)]


def read_file(file: Path) -> Iterator[Row]:
    """The rows of one file of a trace, addresses as members have them.

    Raises ConfigError, with its name, when the file is damaged, or unpacks to more than fits.
    """
    if is_damaged(file):
        raise damage(file)
    for values in _values(file):
        for name in ADDRESSES:
            if values[name] is not None:
                values[name] = unsigned(values[name])
        if values["members"] is not None:
            known = values["members"]
            values["members"] = tuple(m if m is None else unsigned(m) for m in known)
            values["names"] = tuple(values["names"] or ())
        yield Row(**values)


def _values(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_bounded(file) as opened:
            for batch in opened.iter_batches(BATCH_ROWS_MAX):
                table = pa.Table.from_batches([batch])
                columns = dict(zip(table.column_names, bounded(table.columns), strict=True))
                for name in (name for name in LATER if name not in columns):
                    columns[name] = pa.chunked_array(
                        [pa.nulls(len(batch), SCHEMA.field(name).type)]
                    )
                known = [columns[name] for name in SCHEMA.names]
                # A null where none may be is for the checks to tell.
                yield from pa.table(known, names=SCHEMA.names).cast(NULLABLE).to_pylist()
    except UnpacksTooLarge as error:
        raise ConfigError(f"{file} is not a trace of a member: {error}. Move it away.") from None
    except KeyError as error:
        raise ConfigError(f"{file} is not a trace of a member: it has no column {error}.") from None
    except UNREADABLE as error:
        raise damage(file) from error


def _signed(value: object) -> int | None:
    return signed(value) if isinstance(value, int) else None


def _all_signed(value: object) -> list[int] | None:
    return [signed(address) for address in value] if isinstance(value, tuple) else None
