"""Reading a journal without Spark: its segments, what is covered, where the holes are, its rows."""

from __future__ import annotations

import os
import time
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.journal.format.checkpoint import Stamp, read_checkpoint, stamp_of
from ringcast.journal.format.errors import DataLost
from ringcast.journal.format.layout import REMOVED, journal_at
from ringcast.journal.format.manifest import Removed, Segment, read_removed, read_segment
from ringcast.journal.format.members import SeenMember, SeenMembers, merged
from ringcast.journal.format.spans import Spans, gaps, to_text
from ringcast.journal.read.plan import Cover, Key, assign, cover_of, joined

if TYPE_CHECKING:
    import pyarrow as pa

Root = Path | str
"""Where the segments are: a directory, or an address in an object store."""


class Journal:
    """The sealed segments of a directory; `refresh` sees what was sealed or removed since.

    Raises ConfigError when the directory has no journal, JournalError when a manifest is damaged.
    """

    def __init__(self, directory: str | Path) -> None:
        self._layout = journal_at(directory)
        self.root: Root = self._layout.root
        self._manifests: dict[str, Segment] = {}
        """All that count."""
        self._loose: dict[str, Segment] = {}
        """Those with a file of their own, whether they count or not."""
        self._folded: dict[str, Segment] = {}
        """Those that the checkpoint has."""
        self._hidden: set[str] = set()
        """What compacted segments stand for."""
        self._gone: set[str] = set()
        """What retention says that it has removed."""
        self._stamp: Stamp | None = None
        self._order = SealingOrder(())
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
        """By group and address: its members while it was recorded."""
        tables: dict[str, list[SeenMembers]] = {}
        known = [(note.group, note.members) for note in self._notes]
        known += [(segment.group, segment.members) for segment in self.segments]
        for group, members in known:
            if members:
                tables.setdefault(group, []).append(members)
        return {group: merged(some) for group, some in tables.items()}

    @property
    def folded(self) -> Collection[str]:
        """The names of the segments that the checkpoint has."""
        return self._folded.keys()

    def _load(self) -> bool:
        # Retention notes what it takes before it takes it, and a file goes after the checkpoint has
        # it: so manifests are read first, then the checkpoint, then the notes.
        loose, moved = self._read_manifests(), self._read_checkpoint()
        notes = self._read_notes()
        names = {name for note in notes for name in note.names}
        removed = _removed_by(notes)
        only_more = not moved and names == self._gone and self._loose.keys() <= loose.keys()
        self._loose, self._gone, self._notes = loose, names, notes
        if only_more:
            added = [s for name, s in loose.items() if self._is_new(name)]
            if not added and removed == self.removed:
                return False
            self._add(added)
        elif not self._replace({**self._folded, **loose}) and removed == self.removed:
            return False
        self.removed = removed
        self.version += 1
        return True

    def _is_new(self, name: str) -> bool:
        known = name in self._manifests or name in self._gone or name in self._hidden
        return not known

    def _add(self, added: list[Segment]) -> None:
        """Take in what was sealed since, which costs nothing for what was there before."""
        self._manifests.update((segment.name, segment) for segment in added)
        self.cover = joined(self.cover, cover_of(added))
        if not self._order.add(added):
            self._order = SealingOrder(self._manifests.values())
        self.segments = self._order.segments()

    def _replace(self, found: Mapping[str, Segment]) -> bool:
        """Read the directory again; whether it differs."""
        away = self._gone | self._hidden
        manifests = {name: found[name] for name in found if name not in away}
        if manifests.keys() == self._manifests.keys():
            return False
        self._manifests = manifests
        self.cover = cover_of(manifests.values())
        self._order = SealingOrder(manifests.values())
        self.segments = self._order.segments()
        return True

    def _read_manifests(self) -> dict[str, Segment]:
        """Manifests in files of their own; none is read twice, since none ever changes."""
        found: dict[str, Segment] = {}
        for name in os.listdir(self._layout.manifests):
            stem = name.removesuffix(".json")
            if stem == name or name.startswith((".", REMOVED)):
                continue
            known = self._manifests.get(stem)
            try:
                found[stem] = known or read_segment(self._layout.manifest(stem))
            except FileNotFoundError:  # Retention was quicker, or the checkpoint has it.
                continue
        return found

    def _read_checkpoint(self) -> bool:
        """Read the checkpoint if it has changed; whether it has."""
        path = self._layout.checkpoint
        stamp = stamp_of(path)
        if stamp == self._stamp:
            return False
        self._folded = read_checkpoint(path, self._manifests)
        self._hidden = {name for s in self._folded.values() if s.parts for name in s.replaced}
        self._stamp = stamp
        return True

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


class SealingOrder:
    """Segments by time; those of one recorder by number, also when its clock was set back.

    `floors` has times, by recorder, before which it can have sealed nothing, whatever it says.
    """

    def __init__(
        self, segments: Iterable[Segment], floors: Mapping[int, int] | None = None
    ) -> None:
        self._reached = dict(floors or {})
        self._numbers: dict[int, int] = {}
        self._placed: list[tuple[int, str, Segment]] = []
        for segment in sorted(segments, key=_number):
            self._placed.append(self._place(segment))
        self._placed.sort(key=_place)

    def add(self, segments: Iterable[Segment]) -> bool:
        """Add segments; False when one has a number below others of its recorder: begin anew."""
        for segment in sorted(segments, key=_number):
            if segment.number < self._numbers.get(segment.recorder, 0):
                return False
            insort(self._placed, self._place(segment), key=_place)
        return True

    def segments(self) -> tuple[Segment, ...]:
        """All of them, in order."""
        return tuple(segment for _, _, segment in self._placed)

    def _place(self, segment: Segment) -> tuple[int, str, Segment]:
        who, at = segment.recorder, segment.sealed_at
        at = self._reached[who] = max(at, self._reached.get(who, at))
        self._numbers[who] = segment.number
        return at, segment.name, segment


def in_order_of_sealing(
    segments: Iterable[Segment], floors: Mapping[int, int] | None = None
) -> list[Segment]:
    """Segments as `SealingOrder` has them."""
    return list(SealingOrder(segments, floors).segments())


def _number(segment: Segment) -> int:
    return segment.number


def _place(placed: tuple[int, str, Segment]) -> tuple[int, str]:
    return placed[:2]


SETTLED_NS = 2_000_000_000
