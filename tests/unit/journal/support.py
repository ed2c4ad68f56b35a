"""What the journal's tests share: a disk that fails on command, short ways to write and read."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from ringcast.journal import Files, Journal, JournalWriter
from ringcast.journal.format.files import Unsynced

Row = tuple[str, int, int, bytes]
"""Group, sender, seqno, payload."""


class Killed(BaseException):
    """The process died here; nothing that it had planned happens any more."""


class FaultyFiles(Files):
    """Counts operations and dies before the one with this number; a write it leaves half done.

    It syncs nothing: a process that dies needs no sync, and what a machine forgets that dies is
    modelled by `LosingFiles`. So thousands of lives take seconds.
    """

    def __init__(self, die_at: int | None = None) -> None:
        self.operations: list[str] = []
        self.dead = False
        self._die_at = die_at
        self.fds: set[int] = set()
        """What is open."""

    def step(self, name: str) -> None:
        """One operation begins."""
        if not self.dead and len(self.operations) == self._die_at:
            self.die()
        if self.dead:
            raise Killed(name)
        self.operations.append(name)

    def die(self) -> None:
        """Let go of everything, as the kernel does for a dead process."""
        self.dead = True
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()

    def make_dir(self, path: Path) -> None:
        self.step("make_dir")
        super().make_dir(path)

    def create(self, path: Path, *, new: bool) -> int:
        self.step("create")
        fd = super().create(path, new=new)
        self.fds.add(fd)
        return fd

    def open(self, path: Path) -> int:
        self.step("open")
        fd = super().open(path)
        self.fds.add(fd)
        return fd

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        self.step("lock")
        return super().lock(fd, shared=shared)

    def write(self, fd: int, data: Unsynced) -> None:
        if not self.dead and len(self.operations) == self._die_at:
            super().write(fd, memoryview(data)[: len(data) // 2])
        self.step("write")
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        self.step("sync")

    def close(self, fd: int) -> None:
        if self.dead:
            return
        self.step("close")
        self.fds.discard(fd)
        super().close(fd)

    def rename(self, old: Path, new: Path) -> None:
        self.step("rename")
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self.step("unlink")
        super().unlink(path)

    def sync_dir(self, path: Path) -> None:
        self.step("sync_dir")


class LosingFiles(FaultyFiles):
    """A disk that forgets, when the power fails, what nobody synced: contents and names alike."""

    def __init__(self, keep: Path, die_at: int | None = None) -> None:
        super().__init__(die_at)
        self._keep = keep
        self._count = 0
        self._synced: dict[int, int] = {}
        self._undo: dict[Path, list[Callable[[], None]]] = {}
        keep.mkdir()

    def lose(self, chance: random.Random | None = None) -> None:
        """Cut the power: all that was not synced is gone, or with `chance` only the end of it."""
        for path in (p for folder in self._undo for p in folder.iterdir() if p.is_file()):
            stat = path.stat()
            synced = self._synced.get(stat.st_ino, stat.st_size)
            if synced < stat.st_size:
                os.truncate(path, chance.randint(synced, stat.st_size) if chance else synced)
        for undo in self._undo.values():
            kept = chance.randint(0, len(undo)) if chance else 0
            for step in reversed(undo[kept:]):
                step()
            undo.clear()

    def create(self, path: Path, *, new: bool) -> int:
        fd = super().create(path, new=new)
        self._synced[os.fstat(fd).st_ino] = 0
        self._later(path.parent, lambda: path.unlink(missing_ok=True))
        return fd

    def sync(self, fd: int) -> None:
        super().sync(fd)
        stat = os.fstat(fd)
        self._synced[stat.st_ino] = stat.st_size

    def rename(self, old: Path, new: Path) -> None:
        saved = self._save(new)
        super().rename(old, new)

        def back() -> None:
            new.rename(old)
            if saved is not None:
                saved.rename(new)

        self._later(new.parent, back)

    def unlink(self, path: Path) -> None:
        saved = self._save(path)
        super().unlink(path)
        if saved is not None:
            self._later(path.parent, lambda: shutil.move(saved, path))

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        self._undo.setdefault(path, []).clear()

    def _later(self, folder: Path, undo: Callable[[], object]) -> None:
        self._undo.setdefault(folder, []).append(lambda: void(undo()))

    def _save(self, path: Path) -> Path | None:
        if self.dead or not path.exists():
            return None
        self._count += 1
        saved = self._keep / str(self._count)
        os.link(path, saved)
        return saved


class FullFiles(FaultyFiles):
    """A disk that is full from the operation with this number on."""

    TAKES_ROOM = frozenset({"make_dir", "create", "write", "sync", "rename", "sync_dir"})

    def __init__(self, full_at: int, error: int = errno.ENOSPC) -> None:
        super().__init__()
        self._full_at = full_at
        self._error = error

    def fill(self) -> None:
        """Be full from now on."""
        self._full_at = 0

    def step(self, name: str) -> None:
        if name in self.TAKES_ROOM and len(self.operations) >= self._full_at:
            raise OSError(self._error, os.strerror(self._error))
        super().step(name)


class FakeClock:
    """Microseconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


def void(_: object) -> None:
    """Take a value and give none."""


def payload(sender: int, seqno: int) -> bytes:
    """What a message carries in these tests: something that no other message has."""
    return f"{sender}:{seqno}:".encode() * (seqno % 3)


def append(
    writer: JournalWriter, sender: int, first: int, last: int, *, view: int = 1, at: int = 5
) -> None:
    """Append the messages first to last as one run."""
    payloads = [payload(sender, seqno) for seqno in range(first, last + 1)]
    writer.append(view, 1, sender, first, payloads, sent_at=at, delivered_at=at + 1)


def rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Batches as plain rows, in order."""
    return [
        (row["group"], row["sender"], row["seqno"], row["payload"])
        for batch in batches
        for row in batch.to_pylist()
    ]


def all_rows(directory: Path) -> list[Row]:
    """The union of all recorders in a journal, sorted."""
    return sorted(rows(Journal(directory).read()))


def expected(sender: int, first: int, last: int, group: str = "prices") -> list[Row]:
    """The rows of messages first to last of a sender."""
    return [(group, sender, seqno, payload(sender, seqno)) for seqno in range(first, last + 1)]
