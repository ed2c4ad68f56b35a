"""Joins the small files of a member's trace to large ones, beside the members that write.

1. the rows of files that follow each other go to one file, under a hidden name, synced;
2. it gets its name, which says which files it stands for: from here on readers count only it;
3. the small files are removed.

A process that dies before 2 leaves a hidden file, after 2 files that do not count; the next
compaction removes either. A member goes on writing meanwhile: its files get higher numbers. Audits
hold a lock while they read, and a compaction does not begin then.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.errors import ConfigError, LocalError
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files
from ringcast.journal.format.parquet_bounds import UnpacksTooLarge, open_bounded
from ringcast.trace.checksum import damage, is_damaged
from ringcast.trace.compaction.lock import LOCK
from ringcast.trace.compaction.names import TraceFile, compacted_name, covered, trace_file
from ringcast.trace.schema import MESSAGE_KINDS
from ringcast.trace.table import BATCH_ROWS_MAX, DELTA, DICTIONARY, SCHEMA

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TARGET_BYTES = 128 * 2**20
GROUP_ROWS = 131_072
"""Rows of a row group: more than a member writes at once, and few enough to skip some."""
DRAFT = ".compact-"


class CompactedTrace(NamedTuple):
    """What a compaction has done."""

    before: int
    """Files that there were."""
    after: int
    rows: int
    """In the files that were made."""


def has_traces(root: Path) -> bool:
    """Whether there are files of members' traces in a directory or below."""
    return any(True for _ in _directories(root))


def compact_traces(
    root: Path, *, target_bytes: int = TARGET_BYTES, files: Files | None = None
) -> CompactedTrace:
    """Join the small files of each member, in this directory and those below.

    It may run beside members that write. Raises ConfigError when a file is damaged, and LocalError
    when a directory is being audited or compacted: it may then be called again.
    """
    if target_bytes < 1:
        raise ConfigError(f"target_bytes is {target_bytes}: give a positive number")
    done = [_compact(directory, target_bytes, files or Files()) for directory in _directories(root)]
    return CompactedTrace(*map(sum, zip(*done, strict=True))) if done else CompactedTrace(0, 0, 0)


def _directories(root: Path) -> Iterator[Path]:
    """The directories with files that can be compacted. Links are not followed: they may lead
    elsewhere, or back."""
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        if any(trace_file(path) for path in directory.glob("*.parquet")):
            yield directory
        below = [path for path in directory.iterdir() if path.is_dir() and not path.is_symlink()]
        waiting += sorted(path for path in below if not path.name.startswith((".", "_")))[::-1]


def _compact(directory: Path, target: int, files: Files) -> CompactedTrace:
    with _locked(directory, files):
        _remove_left_over(directory, files)
        before = _files(directory)
        made = rows = 0
        for run in _runs(before, target):
            rows += _merge(directory, run, files)
            made += 1 - len(run)
        return CompactedTrace(len(before), len(before) + made, rows)


@contextmanager
def _locked(directory: Path, files: Files) -> Iterator[None]:
    """Keep audits away from a directory, and from those above it: a continuous audit of one of
    these reads what is below as well. Raises LocalError when there is one."""
    with ExitStack() as stack:
        fds = {directory: files.create(directory / LOCK, new=False)}
        for parent in directory.resolve().parents:
            # Most have no lock, or one of another user, who audits nothing here.
            with suppress(OSError, JournalError):
                fds[parent] = files.open(parent / LOCK)
        for fd in fds.values():
            stack.callback(files.close, fd)
        for place, fd in fds.items():
            if not files.lock(fd):
                raise LocalError(f"{place} is being audited or compacted: try again later.")
        yield


def _remove_left_over(directory: Path, files: Files) -> None:
    """Remove what a compaction left that did not get to its end."""
    for path in [*covered(directory.glob("*.parquet")), *directory.glob(f"{DRAFT}*")]:
        files.unlink(path)


def _files(directory: Path) -> list[TraceFile]:
    found = filter(None, map(trace_file, directory.glob("*.parquet")))
    return sorted(found, key=lambda file: (file.member, file.first))


def _runs(found: list[TraceFile], target: int) -> Iterator[list[TraceFile]]:
    """Files that follow each other and are better one; each run has at least two."""
    by_member = defaultdict[str, list[TraceFile]](list)
    for file in found:
        by_member[file.member].append(file)
    for files in by_member.values():
        run, size = list[TraceFile](), 0
        for file in files:
            nbytes = file.path.stat().st_size
            # A number that is missing was moved away, and may be put back.
            follows = not run or file.first == run[-1].last + 1
            if not follows or nbytes > target // 2 or size + nbytes > target:
                if len(run) > 1:
                    yield run
                run, size = [], 0
            if nbytes <= target // 2:
                run, size = [*run, file], size + nbytes
        if len(run) > 1:
            yield run


def _merge(directory: Path, run: list[TraceFile], files: Files) -> int:
    """Make one file of some; the number of its rows."""
    first, last = run[0].first, run[-1].last
    draft = directory / f"{DRAFT}{run[0].member}.tmp"
    fd = files.create(draft, new=False)
    try:
        sink = _Sink(files, fd)
        rows = _write(sink, run)
        files.sync(fd)
    except Exception:
        files.close(fd)
        files.unlink(draft)
        raise
    files.close(fd)
    name = compacted_name(run[0].member, first, last, sink.checksum)
    files.rename(draft, directory / name)
    files.sync_dir(directory)
    for file in run:
        files.unlink(file.path)
    return rows


class _Sink(RawIOBase):
    """What pyarrow writes to: an open file, with the checksum of all its bytes."""

    def __init__(self, files: Files, fd: int) -> None:
        self._files, self._fd = files, fd
        self.checksum = self._size = 0

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it."""
        piece = bytes(memoryview(data))
        self._files.write(self._fd, piece)
        self.checksum = zlib.crc32(piece, self.checksum)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        """How much was written."""
        return self._size

    def writable(self) -> bool:
        """It is only written to."""
        return True


def _write(sink: _Sink, run: list[TraceFile]) -> int:
    """Write all rows, those about messages and the others in row groups of their own."""
    waiting: dict[bool, list[pa.Table]] = {True: [], False: []}
    rows = 0
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        SCHEMA,
        compression="zstd",
        use_dictionary=list(DICTIONARY),  # type: ignore[arg-type]  # the stubs know bool only
        column_encoding=dict.fromkeys(DELTA, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    ) as writer:

        def flush(least: int) -> None:
            for tables in waiting.values():
                if tables and sum(map(len, tables)) >= least:
                    writer.write_table(pa.concat_tables(tables), row_group_size=GROUP_ROWS)
                    tables.clear()

        for table in _tables(run):
            rows += len(table)
            messages = pc.is_in(table.column("kind"), pa.array(MESSAGE_KINDS))
            for kind, mask in ((True, messages), (False, pc.invert(messages))):
                if len(part := table.filter(mask)):
                    waiting[kind].append(part)
            flush(GROUP_ROWS)
        flush(1)
    return rows


def _tables(run: list[TraceFile]) -> Iterator[pa.Table]:
    """The rows of some files, with the columns of today."""
    for file in run:
        if is_damaged(file.path):
            raise damage(file.path)
        try:
            with open_bounded(file.path) as opened:
                for batch in opened.iter_batches(BATCH_ROWS_MAX):
                    columns = [
                        batch.column(field.name).cast(field.type)
                        if field.name in batch.schema.names
                        else pa.nulls(len(batch), field.type)
                        for field in SCHEMA
                    ]
                    yield pa.Table.from_arrays(columns, schema=SCHEMA)
        except (pa.ArrowException, OSError, UnpacksTooLarge) as error:
            raise damage(file.path) from error
