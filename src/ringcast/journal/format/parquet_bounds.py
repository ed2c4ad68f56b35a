"""Parquet files that others may have made: refused before they unpack to more than fits in memory.

A Parquet file is compressed twice: its pages by a codec, its values by dictionaries and counts. So
a file of 400 bytes may hold rows of 50 GB. The footer says how many rows a row group has, and how
many bytes its pages take without compression. Texts are read with their dictionaries, and what they
take without these is counted before any is copied. Of the footer only these two numbers are looked
at: Arrow ends the process for some wrong descriptions of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.errors import RingcastError

if TYPE_CHECKING:
    Column = pa.ChunkedArray[Any]

GROUP_BYTES_MAX = 2**30
"""Bytes of a row group in memory, for readers that know nothing better."""
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises for a file that is not Parquet, or is damaged; its names may be no text."""
_TEXT = "BYTE_ARRAY"
"""The physical type of texts and bytes."""
_VALUE_BYTES = 8
"""Bytes of a number in memory."""


class UnpacksTooLarge(RingcastError):
    """The rows of a file would take more memory than its reader allows."""


def open_bounded(source: Path | pa.NativeFile, most: int = GROUP_BYTES_MAX) -> pq.ParquetFile:
    """A file whose row groups take up to `most` bytes each, by its footer; see `bounded`.

    Raises UnpacksTooLarge, and what ParquetFile raises.
    """
    with pq.ParquetFile(source) as file:
        metadata = file.metadata
    for number in range(metadata.num_row_groups):
        check_row_group(metadata.row_group(number), most)
    schema = metadata.schema
    texts: Any = [at for at in range(len(schema)) if schema.column(at).physical_type == _TEXT]
    return pq.ParquetFile(
        source, metadata=metadata, read_dictionary=texts, page_checksum_verification=True
    )


def check_row_group(group: pq.RowGroupMetaData, most: int) -> None:
    """Raise UnpacksTooLarge for a row group that takes more bytes than this, by its footer."""
    needed = max(group.total_byte_size, group.num_rows * group.num_columns * _VALUE_BYTES)
    if needed > most:
        raise UnpacksTooLarge(_text(needed, most))


def pages_of(metadata: pq.FileMetaData) -> int:
    """Bytes of the pages of the largest row group without compression, by the file's footer."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((group.total_byte_size for group in groups), default=0)


def bounded(columns: Sequence[Column], most: int = GROUP_BYTES_MAX) -> list[Column]:
    """Columns that a file of `open_bounded` gave, with plain values in place of dictionaries.

    Raises UnpacksTooLarge when these would take more bytes than `most`.
    """
    needed = sum(_decoded_bytes(chunk) for column in columns for chunk in column.chunks)
    if needed > most:
        raise UnpacksTooLarge(_text(needed, most))
    return [
        column.cast(column.type.value_type)
        if isinstance(column.type, pa.DictionaryType)
        else column
        for column in columns
    ]


def _decoded_bytes(chunk: pa.Array[Any]) -> int:
    """Bytes that the values of an array with a dictionary take without it; 0 for other arrays."""
    if isinstance(chunk, pa.ListArray):
        chunk = chunk.values
    if not isinstance(chunk, pa.DictionaryArray):
        return 0
    values: Any = chunk.dictionary
    lengths = pc.binary_length(values).cast(pa.int64())
    return int(pc.sum(lengths.take(chunk.indices)).as_py() or 0)


def _text(needed: int, most: int) -> str:
    return f"a row group of it unpacks to {needed:,} bytes, and {most:,} are allowed"
