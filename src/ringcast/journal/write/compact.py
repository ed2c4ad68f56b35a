"""Compaction: many small segments of a recorder become a large one, beside recorders and readers.

1. the rows of neighbours go to one Parquet file, written under a hidden name, synced, renamed;
2. the checkpoint is replaced: it has the large segment instead of the small ones, in one step;
3. the files of the small ones are removed.

Before 2 nobody knows the large file; a crash leaves it, and the next compaction removes it. After 2
nobody counts the small ones. A reader that planned with them before, and comes too late for the
file, finds the same rows in the large one (`read.rows.located`). Offsets are digests of what was
read, so a query goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ringcast.errors import ConfigError
from ringcast.journal.format.checkpoint import checkpoint_lock, lines_of, write_checkpoint
from ringcast.journal.format.coverage import joined_views
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files, publish, sentences
from ringcast.journal.format.layout import (
    Layout,
    compacted_name,
    is_segment_name,
    journal_at,
    numbers_of,
    stem_of,
    temporary,
)
from ringcast.journal.format.manifest import Segment, segment_line
from ringcast.journal.format.members import merged
from ringcast.journal.format.spans import Spans, normal
from ringcast.journal.read.reader import Journal
from ringcast.journal.write.fold import fold, remove_files


class Compacted(NamedTuple):
    """What a compaction has done."""

    before: int
    """Segments that there were."""
    after: int
    rows: int
    """In the segments that were made."""


def compact(
    directory: str | Path, *, target_bytes: int = 128 * 2**20, files: Files | None = None
) -> Compacted:
    """Join the small segments of each recorder to ones of about `target_bytes`.

    It may run at any time. Raises ConfigError when there is no journal; JournalError when another
    compaction runs, a segment is damaged, or the disk fails: it may then be called again.
    """
    if target_bytes < 1:
        raise ConfigError(f"target_bytes is {target_bytes}: give a positive number")
    files = files or Files()
    layout = journal_at(directory)
    before, rows = None, 0
    with sentences(layout.root):
        while True:
            with checkpoint_lock(files, layout) as mine:
                if not mine:
                    raise JournalError(f"another process compacts {layout.root}: try again later")
                fold(files, layout)
                _remove_orphans(files, layout)
                journal = Journal(layout.root)
                before = len(journal.segments) if before is None else before
                run = next(_runs(journal, layout, target_bytes), None)
                if run is None:
                    return Compacted(before, len(journal.segments), rows)
                rows += _merge(files, layout, run).rows


def _runs(journal: Journal, layout: Layout, target: int) -> Iterator[list[Segment]]:
    """Neighbours of one recorder that are better one segment; each at least two."""

    def whose(segment: Segment) -> tuple[str, int]:
        return segment.group, segment.recorder

    some = [s for s in journal.segments if not layout.log(s.name).exists()]
    for _, segments in groupby(sorted(some, key=lambda s: (*whose(s), s.number)), key=whose):
        run: list[Segment] = []
        size = parts = 0
        for segment in segments:
            pieces = len(segment.parts) or 1
            large = segment.bytes > target // 2 or pieces > PARTS_MAX // 2
            if large or size + segment.bytes > target or parts + pieces > PARTS_MAX:
                if len(run) > 1:
                    yield run
                run, size, parts = [], 0, 0
            if not large:
                run, size, parts = [*run, segment], size + segment.bytes, parts + pieces
        if len(run) > 1:
            yield run


def _merge(files: Files, layout: Layout, run: list[Segment]) -> Segment:
    parts = tuple(part for s in run for part in (s.parts or ((s.number, s.rows),)))
    stem = stem_of(run[0].group, run[0].recorder)
    name = compacted_name(stem, parts[0][0], parts[-1][0])
    path = layout.segment(name)
    size = publish(files, temporary(path), path, _rows(layout, run))
    made = _joint(name, size, parts, run)
    away = {segment.name for segment in run}
    lines = {n: line for n, line in lines_of(layout.checkpoint).items() if n not in away}
    write_checkpoint(files, layout, [*lines.values(), segment_line(made)])
    remove_files(files, layout, sorted(away))
    return made


def _rows(layout: Layout, run: list[Segment]) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415, a recorder starts without waiting for it

    from ringcast.journal.format.table import SCHEMA, joined_pieces  # noqa: PLC0415
    from ringcast.journal.read.rows import read_rows  # noqa: PLC0415

    def tables() -> Iterator[pa.Table]:
        for segment in run:
            rows = 0
            for batch in read_rows(layout.root, segment.name, None, SCHEMA.names):
                rows += batch.num_rows
                yield pa.Table.from_batches([batch], SCHEMA)
            if rows != segment.rows:
                raise JournalError(
                    f"{layout.segment(segment.name)} has {rows} rows, and its manifest "
                    f"says {segment.rows}: restore it, or remove its manifest"
                )

    return joined_pieces(tables())


def _joint(name: str, size: int, parts: tuple[tuple[int, int], ...], run: list[Segment]) -> Segment:
    """The manifest of segments that followed each other."""
    holes: dict[int, Spans] = {}
    for segment in run:
        for sender, spans in segment.holes.items():
            holes[sender] = normal((*holes.get(sender, ()), *spans))
    sent = [segment.sent_at for segment in run if segment.rows]
    known = [times for times in sent if times is not None]
    timed = [s.delivered_at for s in run if s.rows] or [run[0].delivered_at]
    return Segment(
        name=name,
        group=run[0].group,
        recorder=run[0].recorder,
        number=run[-1].number,
        rows=sum(segment.rows for segment in run),
        bytes=size,
        opened_at=run[0].opened_at,
        sealed_at=max(segment.sealed_at for segment in run),
        delivered_at=(min(map(min, timed)), max(map(max, timed))),
        durable=all(segment.durable for segment in run),
        ended=run[-1].ended,
        torn_bytes=sum(segment.torn_bytes for segment in run),
        views=joined_views(digest for segment in run for digest in segment.views),
        holes=holes,
        sent_at=(min(map(min, known)), max(map(max, known))) if known and known == sent else None,
        members=merged(segment.members for segment in run),
        parts=parts,
    )


def _remove_orphans(files: Files, layout: Layout) -> None:
    """Remove the large files of compactions that did not get to their end, or were joined again."""
    known = lines_of(layout.checkpoint)
    for path in layout.root.glob("*.parquet"):
        first, last = numbers_of(path.stem)
        if first < last and is_segment_name(path.stem) and path.stem not in known:
            files.unlink(path)


PARTS_MAX = 10_000
