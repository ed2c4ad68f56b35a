"""A journal on an object store, as `ringcast upload` writes it: read like one in a directory.

    s3://bucket/journal/
      00000000000000a1-prices-00000001.parquet               a sealed segment
      _manifest/00000000000000a1-prices-00000001.json        what is in it
      _manifest/checkpoint-00000000000000a1-prices.jsonl     manifests of older segments

Manifests are copied to a directory of this process, once each, where `Journal` reads them; rows are
read from the store by the tasks. A recorder has one uploader, so no two write one object.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp

from ringcast.errors import ConfigError
from ringcast.journal.format.layout import Layout
from ringcast.journal.format.object_store import (
    MANIFESTS,
    ObjectStore,
    StoredObject,
    shown,
    store_at,
)
from ringcast.journal.read.reader import Journal

CHECKPOINT, LINES, LOOSE = "checkpoint-", ".jsonl", ".json"
LISTING_SECONDS = 1.0
"""A store is listed this often at most: a stream asks a hundred times per second."""
READERS = 16
"""Manifests that are read at once."""


class RemoteJournal(Journal):
    """The segments of a journal in a store; `refresh` lists it again, once per second at most.

    Raises ConfigError when there is none, JournalError when the store is not reached.
    """

    def __init__(self, url: str) -> None:
        self._store = store_at(url)
        folder = mkdtemp(prefix="ringcast-journal-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        copy = Layout(Path(folder))
        copy.manifests.mkdir()
        self._copies: Path = copy.manifests
        self._checkpoint_copy = copy.checkpoint
        self._checkpoints: dict[str, tuple[StoredObject, bytes]] = {}
        self._listed = -LISTING_SECONDS
        if not self._copy_manifests():
            raise ConfigError(f"{shown(url)} is not a journal: run `ringcast upload DIR URL` first")
        super().__init__(copy.root)
        self.root = url

    def refresh(self) -> bool:
        """Look again; whether anything has changed."""
        if time.monotonic() - self._listed >= LISTING_SECONDS:
            self._copy_manifests()
        return super().refresh()

    def refresh_now(self) -> bool:
        """The same, however short ago the last look was."""
        self._listed = -LISTING_SECONDS
        return self.refresh()

    def _copy_manifests(self) -> bool:
        """Copy what is new. Checkpoints come first, before what they stand for is taken away."""
        found = self._store.names(MANIFESTS)
        self._listed = time.monotonic()
        self._copy_checkpoints({n: o for n, o in found.items() if n.endswith(LINES)})
        loose = {name for name in found if name.endswith(LOOSE)}
        known = {path.name for path in self._copies.glob(f"*{LOOSE}")}
        read_all(self._store, sorted(loose - known), self._copies)
        for name in known - loose:
            (self._copies / name).unlink()
        return bool(found)

    def _copy_checkpoints(self, found: dict[str, StoredObject]) -> None:
        news = [n for n, o in found.items() if self._checkpoints.get(n, (None,))[0] != o]
        for name in news:
            self._checkpoints[name] = found[name], self._store.read(f"{MANIFESTS}/{name}")
        if news:
            draft = self._checkpoint_copy.with_suffix(".tmp")
            draft.write_bytes(b"".join(lines for _, lines in self._checkpoints.values()))
            draft.rename(self._checkpoint_copy)


def open_journal(place: str | Path) -> Journal:
    """The journal in a directory or at an address."""
    return RemoteJournal(str(place)) if is_address(place) else Journal(place)


def is_address(place: str | Path) -> bool:
    """Whether a place is the address of a store, and not a directory."""
    return isinstance(place, str) and "://" in place


def read_all(store: ObjectStore, names: Iterable[str], target: Path) -> None:
    """Copy some manifests to a directory; those that went in the meantime are left out."""

    def copy(name: str) -> None:
        try:
            content = store.read(f"{MANIFESTS}/{name}")
        except FileNotFoundError:  # It was folded since: the next look finds it in a checkpoint.
            return
        (target / name).write_bytes(content)

    with ThreadPoolExecutor(READERS) as threads:
        for _ in threads.map(copy, names):
            pass
