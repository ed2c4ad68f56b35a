"""The checkpoint: manifests of many segments in one file, so that opening a journal reads one file.

One line per segment, its manifest as its own file had it. It is replaced as a whole, in one step,
by a process that holds the journal's lock; only then are the files removed that it stands for. So
a reader that looks at the directory first and at the checkpoint afterwards misses nothing: a file
that it did not find any more is in the checkpoint, itself or as a part of a compacted segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ringcast.journal.format.files import Files, publish, read_whole
from ringcast.journal.format.layout import Layout, temporary
from ringcast.journal.format.manifest import Segment, segment_of_line

Stamp = tuple[int, int, int]
"""What tells one version of the file from the next."""


def stamp_of(path: Path) -> Stamp | None:
    """The version of the checkpoint; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_checkpoint(path: Path, known: Mapping[str, Segment]) -> dict[str, Segment]:
    """The segments in it by name; those that are known are not parsed again. Raises JournalError.

    Lines of manifests never change, so the name is enough to tell.
    """
    return {
        name: known.get(name) or segment_of_line(line, path)
        for name, line in lines_of(path).items()
    }


def lines_of(path: Path) -> dict[str, bytes]:
    """The lines by the names of their segments, as they are; {} when there is none."""
    try:
        content = read_whole(path)
    except FileNotFoundError:
        return {}
    return {_name_in(line, path): line for line in content.splitlines(keepends=True)}


def write_checkpoint(files: Files, layout: Layout, lines: Iterable[bytes]) -> None:
    """Replace the checkpoint, in one step; the caller holds the lock."""
    path = layout.checkpoint
    publish(files, temporary(path), path, [b"".join(lines)])


@contextmanager
def checkpoint_lock(files: Files, layout: Layout) -> Iterator[bool]:
    """Hold the lock of a journal; False when another process has it."""
    fd = files.create(layout.lock, new=False)
    try:
        yield files.lock(fd)
    finally:
        files.close(fd)


def _name_in(line: bytes, path: Path) -> str:
    """The name that a line begins with, without parsing all of it."""
    start = line.find(NAME)
    end = line.find(b'"', start + len(NAME))
    if start < 0 or end < 0:
        return segment_of_line(line, path).name
    return line[start + len(NAME) : end].decode()


NAME = b'"name":"'
