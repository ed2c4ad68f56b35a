"""Reading a journal without Spark: its segments, what is covered, where the holes are, its rows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.journal.format.errors import DataLost
from ringcast.journal.format.layout import REMOVED, journal_at
from ringcast.journal.format.manifest import Removed, Segment, read_removed, read_segment
from ringcast.journal.format.members import SeenMember, SeenMembers, merged
from ringcast.journal.format.spans import Spans, gaps, to_text
from ringcast.journal.read.plan import Cover, Key, assign, cover_of, joined

if TYPE_CHECKING:
    import pyarrow as pa


class Journal:
    """The sealed segments of a directory; `refresh` sees what was sealed or removed since.

    Raises ConfigError when the directory has no journal, JournalError when a manifest is damaged.
    """

    def __init__(self, directory: str | Path) -> None:
        self._layout = journal_at(directory)
        self.root = self._layout.root
        self._manifests: dict[str, Segment] = {}
        self._seen = 0
        self.version = 0
        """Rises whenever a refresh saw a change."""
        self.segments: tuple[Segment, ...] = ()
        """In the order of sealing."""
        self.cover: dict[Key, Spans] = {}
        """What the segments cover together."""
        self.removed: dict[Key, Spans] = {}
        """What retention took away, whether or not another recorder still has it."""
        self._notes: list[Removed] = []
        self.refresh()

    def refresh(self) -> bool:
        """Look again; whether anything has changed. Idle, it costs one look at the directory."""
        changed = self._layout.manifests.stat().st_mtime_ns
        if changed == self._seen:
            return False
        # A directory's time is coarse. Only one that lies some way back can be trusted to move
        # with the next change.
        self._seen = changed if time.time_ns() - changed > SETTLED_NS else 0
        return self._load()

    def read(self, group: str | None = None) -> Iterator[pa.RecordBatch]:
        """The messages of all recorders, each once, as Arrow batches with the journal's columns."""
        from ringcast.journal.read.rows import read_slice  # noqa: PLC0415, it needs pyarrow

        segments = [s for s in self.segments if group is None or s.group == group]
        slices, _ = assign(segments, cover_of(segments))
        for part in slices:
            yield from read_slice(self.root, part)

    def holes(self) -> dict[Key, Spans]:
        """What no recorder has, between the first and the last message known of each sender."""
        known = joined(self.cover, self.removed)
        found = ((key, gaps(spans)) for key, spans in known.items())
        return {key: spans for key, spans in found if spans}

    def members(self) -> dict[str, dict[int, SeenMember]]:
        """By group and address: who was in it while it was recorded."""
        tables: dict[str, list[SeenMembers]] = {}
        known = [(note.group, note.members) for note in self._notes]
        known += [(segment.group, segment.members) for segment in self.segments]
        for group, members in known:
            if members:
                tables.setdefault(group, []).append(members)
        return {group: merged(some) for group, some in tables.items()}

    def _load(self) -> bool:
        # Retention notes what it takes before it takes it, so notes are read after manifests: one
        # that is not there any more is always accounted for.
        manifests, notes = self._read_manifests(), self._read_notes()
        gone = {name for note in notes for name in note.names}
        manifests = {name: manifests[name] for name in manifests if name not in gone}
        removed = _removed_by(notes)
        if manifests.keys() == self._manifests.keys() and removed == self.removed:
            return False
        if manifests.keys() >= self._manifests.keys():
            added = [manifests[name] for name in manifests if name not in self._manifests]
            self.cover = joined(self.cover, cover_of(added))
        else:
            self.cover = cover_of(manifests.values())
        self.segments = tuple(in_order_of_sealing(manifests.values()))
        self.removed = removed
        self._notes = notes
        self._manifests = manifests
        self.version += 1
        return True

    def _read_manifests(self) -> dict[str, Segment]:
        """All manifests; one that was read before is not read again, since none ever changes."""
        found: dict[str, Segment] = {}
        for name in os.listdir(self._layout.manifests):
            stem = name.removesuffix(".json")
            if stem == name or name.startswith((".", REMOVED)):
                continue
            try:
                found[stem] = self._manifests.get(stem) or read_segment(self._layout.manifest(stem))
            except FileNotFoundError:  # Retention was quicker.
                continue
        return found

    def _read_notes(self) -> list[Removed]:
        names = sorted(os.listdir(self._layout.manifests))
        notes = [name for name in names if name.startswith(REMOVED)]
        return [read_removed(self._layout.manifests / name) for name in notes]


def check_lost(lost: Cover, root: str | Path) -> None:
    """Raise DataLost when anything is."""
    for (group, sender), spans in lost.items():
        raise DataLost(
            f"retention removed messages of {len(lost)} sender(s) from {root} before they were "
            f'read, {to_text(spans)} of sender {sender} in group "{group}" among them: keep more, '
            "or set failOnDataLoss to false"
        )


def _removed_by(notes: list[Removed]) -> dict[Key, Spans]:
    removed: dict[Key, Spans] = {}
    for note in notes:
        cover = {(note.group, sender): spans for sender, spans in note.cover.items()}
        removed = joined(removed, cover)
    return removed


def in_order_of_sealing(
    segments: Iterable[Segment], floors: Mapping[int, int] | None = None
) -> list[Segment]:
    """Segments by time; those of one recorder by number, also when its clock was set back.

    `floors` has times, by recorder, before which it can have sealed nothing, whatever it says.
    """
    reached = dict(floors or {})
    placed: list[tuple[int, str, Segment]] = []
    for segment in sorted(segments, key=lambda segment: segment.number):
        who, at = segment.recorder, segment.sealed_at
        at = reached[who] = max(at, reached.get(who, at))
        placed.append((at, segment.name, segment))
    return [segment for _, _, segment in sorted(placed, key=lambda place: place[:2])]


SETTLED_NS = 2_000_000_000
