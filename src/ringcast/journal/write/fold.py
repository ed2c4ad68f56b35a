"""Folding: manifests go from files of their own into the checkpoint, and leftovers go."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.journal.format.checkpoint import lines_of, write_checkpoint
from ringcast.journal.format.files import Files
from ringcast.journal.format.layout import REMOVED, Layout, is_segment_name, numbers_of
from ringcast.journal.format.manifest import (
    read_removed,
    read_segment,
    segment_line,
    segment_of_line,
)
from ringcast.journal.write.retention import removed_paths


def fold(files: Files, layout: Layout) -> None:
    """Put all manifests into the checkpoint; the caller holds its lock. Raises OSError.

    1. the checkpoint is replaced: it now has what the files have, and readers look at it last;
    2. the files of the manifests that it has are removed.

    A crash between the two leaves files that the next call removes. A segment whose log is still
    there stays as it is, since its manifest says that the log is sealed.
    """
    path = layout.checkpoint
    former = lines_of(path)
    gone = {name for note in removed_paths(layout) for name in read_removed(note).names}
    lines = {name: line for name, line in former.items() if name not in gone}
    hidden = _hidden(lines, layout)
    loose = [name for name in _loose(layout) if not layout.log(name).exists()]
    for name in loose:
        if name not in gone and name not in hidden and name not in lines:
            lines[name] = segment_line(read_segment(layout.manifest(name)))
    if lines != former:
        write_checkpoint(files, layout, lines.values())
    remove_files(files, layout, (n for n in loose if n in lines), segments=False)
    remove_files(files, layout, hidden & {path.stem for path in layout.root.glob("*.parquet")})


def remove_files(
    files: Files, layout: Layout, names: Iterable[str], *, segments: bool = True
) -> None:
    """Remove manifests, and with `segments` the Parquet files, that the checkpoint stands for."""
    some = False
    for name in names:
        some = True
        files.unlink(layout.manifest(name))
        if segments:
            files.unlink(layout.segment(name))
    if some:
        files.sync_dir(layout.manifests)
        files.sync_dir(layout.root)


def _loose(layout: Layout) -> list[str]:
    names = [path.stem for path in layout.manifests.glob("*.json")]
    return sorted(name for name in names if not name.startswith((REMOVED, ".")))


def _hidden(lines: dict[str, bytes], layout: Layout) -> set[str]:
    """What the compacted segments among these lines stand for."""
    found: set[str] = set()
    for name, line in lines.items():
        first, last = numbers_of(name)
        if first < last and is_segment_name(name):
            found.update(segment_of_line(line, layout.checkpoint).replaced)
    return found
