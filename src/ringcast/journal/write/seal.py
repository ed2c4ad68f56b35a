"""Sealing: a log becomes a Parquet file and a manifest, in an order that a crash cannot spoil.

1. the Parquet file is written under a hidden name, synced, renamed, its directory synced;
2. the manifest likewise; from here on readers know the segment;
3. the log is removed.

A process that finds the log later does the same again: before 2 it makes the same file once more,
after 2 it only removes the log. The recorder itself and `recover` share this code, so that what
a crash leaves is sealed just as it would have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from ringcast.journal.format.coverage import Coverage
from ringcast.journal.format.files import Files, publish
from ringcast.journal.format.layout import Layout, temporary
from ringcast.journal.format.log_records import (
    Header,
    LogRecord,
    RunRecord,
    SeenViewRecord,
    SkipRecord,
    read_log,
)
from ringcast.journal.format.manifest import Segment, read_segment, write_segment
from ringcast.journal.format.members import SeenMember, saw

Clock = Callable[[], int]
"""Microseconds since 1970."""


def seal_log(files: Files, layout: Layout, name: str, *, ended: str, now: Clock) -> Segment | None:
    """Seal the log of this name; None when it had nothing in it. The caller holds its lock.

    Raises OSError when the disk does; the log is there until everything else is.
    """
    manifest = layout.manifest(name)
    if manifest.exists():
        segment: Segment | None = read_segment(manifest)
    else:
        segment = _write(files, layout, name, ended, now)
    files.unlink(layout.log(name))
    files.sync_dir(layout.logs)
    return segment


def _write(files: Files, layout: Layout, name: str, ended: str, now: Clock) -> Segment | None:
    """Steps 1 and 2; None, and nothing written, when there is nothing whole in the log."""
    path = layout.log(name)
    size = path.stat().st_size
    with path.open("rb") as file:
        log = read_log(file, size)
        first = None if log is None else next(log.records, None)
        if log is None or first is None:
            return None
        tally = _Tally(log.header, chain((first,), log.records))
        written = _write_parquet(files, layout, name, tally)
        torn = size - file.tell()
    segment = tally.segment(name, written, ended, now(), torn)
    write_segment(files, layout, segment)
    return segment


def _write_parquet(files: Files, layout: Layout, name: str, tally: _Tally) -> int:
    # pyarrow is needed here and in the reader only: a recorder starts without waiting for it.
    from ringcast.journal.format.table import parquet_pieces  # noqa: PLC0415

    path = layout.segment(name)
    pieces = parquet_pieces(tally.runs(), tally.header.group, tally.header.recorder)
    return publish(files, temporary(path), path, pieces)


class _Tally:
    """Counts what passes from a log to its segment, for the manifest."""

    def __init__(self, header: Header, records: Iterator[LogRecord]) -> None:
        self.header = header
        self._records = records
        self._coverage = Coverage(header.reached)
        self._rows = 0
        self._delivered: list[int] = []
        self._sent: list[int] = []
        self._names = header.names
        self._members: dict[int, SeenMember] = {}

    def runs(self) -> Iterator[tuple[RunRecord, str | None]]:
        """The runs with the names of their senders, each counted as it is taken."""
        for record in self._records:
            if isinstance(record, SkipRecord):
                self._coverage.skip(*record)
                continue
            if isinstance(record, SeenViewRecord):
                saw(self._members, *record)
                self._names = {address: name for address, name, _ in record.members}
                continue
            view, view_by, sender, first = record[:4]
            self._coverage.add(view, view_by, sender, first, len(record.lengths))
            self._rows += len(record.lengths)
            _widen(self._delivered, record.delivered_at)
            _widen(self._sent, record.sent_at)
            yield record, self._names.get(sender)

    def segment(self, name: str, written: int, ended: str, now: int, torn: int) -> Segment:
        """The manifest; to be asked for when all runs were taken."""
        header = self.header
        delivered = self._delivered or [header.opened_at]
        return Segment(
            name=name,
            group=header.group,
            recorder=header.recorder,
            number=header.number,
            rows=self._rows,
            bytes=written,
            opened_at=header.opened_at,
            sealed_at=now,
            delivered_at=(delivered[0], delivered[-1]),
            durable=header.durable,
            ended=ended,
            torn_bytes=torn,
            views=self._coverage.views(),
            holes=self._coverage.holes(),
            sent_at=(self._sent[0], self._sent[1]) if self._sent else (0, 0),
            members=self._members,
        )


def _widen(bounds: list[int], value: int) -> None:
    """Make a pair of bounds hold a value as well."""
    bounds[:] = (min(bounds[0], value), max(bounds[1], value)) if bounds else (value, value)
