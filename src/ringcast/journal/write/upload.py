"""Upload: sealed segments go to an object store, where `format("ringcast")` reads them as well.

A segment goes before its manifest, so a reader never knows of one that is not there as a whole.
What a crash cut short is uploaded again. Nothing is removed there: retention is the store's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from ringcast.errors import ConfigError
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files, sentences
from ringcast.journal.format.layout import Layout, journal_at, stem_of
from ringcast.journal.format.manifest import Segment, segment_line
from ringcast.journal.format.object_store import MANIFESTS, ObjectStore, shown, store_at
from ringcast.journal.read.plan import cover_of, joined, less, size
from ringcast.journal.read.reader import Journal
from ringcast.journal.read.remote import CHECKPOINT, LINES, LOOSE, RemoteJournal, is_address

FOLD_SEGMENTS = 1_000
"""After this many segments of a recorder their manifests go into one object."""


class Uploaded(NamedTuple):
    """What one upload did."""

    segments: int = 0
    rows: int = 0
    bytes: int = 0
    missed: int = 0
    """Messages that retention removed before they were uploaded."""

    def __str__(self) -> str:
        missed = f"; retention had removed {self.missed:,} messages before" if self.missed else ""
        return f"{self.segments:,} segments with {self.rows:,} messages were uploaded{missed}."

    def plus(self, segment: Segment) -> Uploaded:
        """With one segment more."""
        return self._replace(
            segments=self.segments + 1,
            rows=self.rows + segment.rows,
            bytes=self.bytes + segment.bytes,
        )


def upload(directory: str | Path, url: str) -> Uploaded:
    """Upload what is sealed and not in the store yet.

    Raises ConfigError for places that cannot be; JournalError when the store is not reached, or
    another process uploads this journal there.
    """
    with Uploader.of(directory, url) as uploader:
        return uploader.run()


class Uploader:
    """Uploads one journal to one address, as often as it is asked."""

    def __init__(self, journal: Journal, store: ObjectStore) -> None:
        self._journal, self._store = journal, store
        self._there: dict[str, bytes] = {}
        """The manifests in the store by the names of their segments."""
        self._loose: set[str] = set()
        """Those of them that are objects of their own."""
        self._cover = cover_of(())
        self._look()

    @staticmethod
    @contextmanager
    def of(directory: str | Path, url: str) -> Iterator[Uploader]:
        """An uploader that holds the lock, so that no other folds the same manifests."""
        if not is_address(url):
            raise ConfigError(f"{shown(url)} is not an address of a store: give s3://bucket/folder")
        layout, files = journal_at(directory), Files()
        with sentences(layout.root):
            fd = files.create(layout.manifests / LOCK, new=False)
        try:
            if not files.lock(fd):
                raise JournalError(f"another process uploads {layout.root}: end it first")
            yield Uploader(Journal(layout.root), store_at(url))
        finally:
            files.close(fd)

    def run(self, said: Callable[[Segment], None] | None = None) -> Uploaded:
        """Upload what is new; `said` is called after each segment."""
        self._journal.refresh()
        done = Uploaded()
        for segment in self._journal.segments:
            if self._is_there(segment) or not self._upload(segment):
                continue
            done = done.plus(segment)
            if said is not None:
                said(segment)
        self._fold()
        return done._replace(missed=size(less(self._journal.removed, self._cover)))

    def _look(self) -> None:
        """What the store has."""
        if not self._store.names(MANIFESTS):
            return
        known = RemoteJournal(self._store.url)
        self._there = {segment.name: segment_line(segment) for segment in known.segments}
        self._cover = known.cover
        names = self._store.names(MANIFESTS)
        self._loose = {name.removesuffix(LOOSE) for name in names if name.endswith(LOOSE)}

    def _is_there(self, segment: Segment) -> bool:
        """Whether the store has a segment, or all that a compacted one stands for."""
        replaced = segment.replaced
        return segment.name in self._there or (
            bool(replaced) and all(name in self._there for name in replaced)
        )

    def _upload(self, segment: Segment) -> bool:
        """Upload one; False when it has gone since, by retention or compaction."""
        path = Layout(Path(self._journal.root)).segment(segment.name)
        try:
            found = path.stat()
            # Opening a pipe would wait for its other end.
            content = path.read_bytes() if S_ISREG(found.st_mode) else b""
        except FileNotFoundError:
            return False
        if len(content) != segment.bytes:
            raise JournalError(
                f"{path} is damaged: it has {len(content)} bytes, and its manifest says "
                f"{segment.bytes}"
            )
        line = segment_line(segment)
        self._store.write(path.name, content)
        self._store.write(f"{MANIFESTS}/{segment.name}{LOOSE}", line)
        self._there[segment.name] = line
        self._loose.add(segment.name)
        self._cover = joined(self._cover, cover_of([segment]))
        return True

    def _fold(self) -> None:
        """Put the manifests of recorders with many into one object each.

        The object is written first. A crash before the others are removed leaves them: they are
        told twice, which readers know how to take.
        """
        by_stem = defaultdict[str, list[str]](list)
        stems = {stem_of(s.group, s.recorder) for s in self._journal.segments}
        for name in sorted(self._there):
            if (stem := name.rpartition("-")[0]) in stems:
                by_stem[stem].append(name)
        for stem, names in by_stem.items():
            loose = [name for name in names if name in self._loose]
            if len(loose) < FOLD_SEGMENTS:
                continue
            lines = b"".join(self._there[name] for name in names)
            self._store.write(f"{MANIFESTS}/{CHECKPOINT}{stem}{LINES}", lines)
            for name in loose:
                self._store.delete(f"{MANIFESTS}/{name}{LOOSE}")
            self._loose.difference_update(loose)


LOCK = ".upload"
