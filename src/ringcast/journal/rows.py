"""The rows of sealed segments as Arrow batches, cut to the seqnos that a plan takes from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.journal.errors import DataLost, JournalError
from ringcast.journal.layout import Layout
from ringcast.journal.plan import Slice
from ringcast.journal.spans import Spans
from ringcast.journal.table import SCHEMA


def read_slice(
    root: Path, part: Slice, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, a row group at a time. Raises DataLost when the segment is gone.

    Raises JournalError when the file is not what a recorder writes.
    """
    names = list(SCHEMA.names if columns is None else columns)
    senders = None if part.whole else part.senders
    return read_rows(root, part.segment.name, senders, names)


def read_rows(
    root: Path, name: str, senders: Mapping[int, Spans] | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a segment that these spans take, or all; see `read_slice`."""
    needed = [n for n in SCHEMA.names if n in columns or (senders is not None and n in KEYS)]
    with open_segment(root, name) as file:
        for group in range(file.num_row_groups):
            try:
                batches = file.read_row_group(group, needed).to_batches()
            except (pa.ArrowException, OSError) as error:
                raise _damaged(Layout(root).segment(name)) from error
            for batch in batches:
                taken = batch if senders is None else batch.filter(_mask(batch, senders))
                if taken.num_rows:
                    yield taken.select(list(columns))


def seqnos(root: Path, name: str, sender: int, spans: Spans) -> list[int]:
    """The seqnos of a sender that a segment has rows for, within these spans, rising."""
    batches = read_rows(root, name, {sender: spans}, ["seqno"])
    return [seqno for batch in batches for seqno in batch.column(0).to_pylist() if seqno]


def open_segment(root: Path, name: str) -> pq.ParquetFile:
    """The Parquet file of a segment, which has a recorder's columns."""
    path = Layout(root).segment(name)
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise DataLost(
            f"{path} was removed, by retention or by hand, before it was read: keep more, or set "
            "failOnDataLoss to false"
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path) from error
    if not file.schema_arrow.equals(SCHEMA):
        file.close()
        raise JournalError(f"{path} is no segment of a journal: move it away with its manifest")
    return file


def _damaged(path: Path) -> JournalError:
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


KEYS = ("sender", "seqno")
