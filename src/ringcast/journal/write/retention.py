"""Retention: the oldest segments go when the journal is too large or they are too old.

What goes is first noted, durably, in the recorder's own `removed-` file: its digest ranges, so that
a reader that had not read them learns of the loss, and its names, so that readers no longer count
on the files and the next run after a crash removes the rest. Then manifests go, then files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ringcast.errors import ConfigError
from ringcast.journal.format.files import Files, is_locked
from ringcast.journal.format.layout import REMOVED, Layout, is_segment_name, stem_of
from ringcast.journal.format.manifest import Removed, Segment, read_removed, write_removed
from ringcast.journal.format.members import bounded, merged
from ringcast.journal.format.spans import Spans, union


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How much a recorder keeps; None means no bound. A recorder's newest segment always stays."""

    bytes: int | None = None
    """Of sealed Parquet files: a reader that is further behind loses what is removed."""
    seconds: float | None = None
    """Since sealing: the time that a reader may be down without a loss."""

    def __post_init__(self) -> None:
        for name, bound in (("retention_bytes", self.bytes), ("retention_seconds", self.seconds)):
            if bound is not None and not bound > 0:
                raise ConfigError(
                    f"{name} is {bound}: give a positive number, or none for no bound"
                )

    def expired(self, segments: Iterable[Segment], now: int) -> list[Segment]:
        """Those that have to go, oldest first, of segments in the order of sealing.

        Age goes by each one's own time: what a clock that was ahead has dated stops no others.
        """
        oldest_first = list(segments)
        excess = sum(segment.bytes for segment in oldest_first) - (self.bytes or 0)
        gone: list[Segment] = []
        for segment in oldest_first[:-1]:
            too_much = self.bytes is not None and excess > 0
            too_old = (
                self.seconds is not None and now - segment.sealed_at > self.seconds * 1_000_000
            )
            if too_much or too_old:
                gone.append(segment)
                excess -= segment.bytes
        return gone


def remove(
    files: Files,
    layout: Layout,
    stem: str,
    gone: list[Segment],
    folded: Collection[str] = (),
) -> None:
    """Remove segments of one group on behalf of the recorder with this stem. Raises OSError.

    `folded` are the names in the checkpoint. It still has them, so the note keeps them until it
    has not. Where there can be a checkpoint, the caller holds its lock.
    """
    if not gone:
        return
    path = layout.removed(stem)
    former = read_removed(path) if path.exists() else Removed(gone[0].group, {})
    cover = dict(former.cover)
    for segment in gone:
        for sender, spans in segment.cover.items():
            cover[sender] = union(cover.pop(sender, ()), spans)
    # A compaction that was cut short may have left what a segment stands for.
    added = [name for segment in gone for name in (segment.name, *segment.replaced)]
    names = (*_left(layout, former.names, folded), *_left(layout, added, folded))
    members = bounded(merged((former.members, *(segment.members for segment in gone))))
    write_removed(files, path, Removed(former.group, _bounded(cover), names, members))
    _remove_files(files, layout, names)


def finish_removals(files: Files, layout: Layout) -> None:
    """Remove what a recorder noted as removed and had not yet removed when it died."""
    for path in removed_paths(layout):
        names = _left(layout, read_removed(path).names)
        if names:
            _remove_files(files, layout, names)


def removable(
    files: Files, layout: Layout, stem: str, segments: Iterable[Segment]
) -> list[Segment]:
    """The segments whose retention is this recorder's business: its own and those of the dead.

    Another living recorder has bounds of its own.
    """
    others = [name for name in layout.log_names() if not name.startswith(f"{stem}-")]
    alive = {name.rpartition("-")[0] for name in others if is_locked(files, layout.log(name))}
    return [
        segment for segment in segments if stem_of(segment.group, segment.recorder) not in alive
    ]


def removed_paths(layout: Layout) -> list[Path]:
    """The `removed-` files of all recorders."""
    return sorted(layout.manifests.glob(f"{REMOVED}*.json"))


def _left(layout: Layout, names: Iterable[str], folded: Collection[str] = ()) -> list[str]:
    """The segments among these of which there is a file, or a line in the checkpoint."""
    return [
        name
        for name in names
        if is_segment_name(name)
        and (name in folded or layout.manifest(name).exists() or layout.segment(name).exists())
    ]


def _remove_files(files: Files, layout: Layout, names: Iterable[str]) -> None:
    for name in names:
        files.unlink(layout.manifest(name))
        files.unlink(layout.segment(name))
    files.sync_dir(layout.manifests)
    files.sync_dir(layout.root)


def _bounded(cover: dict[int, Spans]) -> dict[int, Spans]:
    """The note of what is gone stays small: the senders removed longest ago are forgotten."""
    surplus = max(0, len(cover) - REMOVED_SENDERS_MAX)
    return dict(list(cover.items())[surplus:])


REMOVED_SENDERS_MAX = 10_000
