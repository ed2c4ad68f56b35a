"""All that the journal does to a disk, in one object, so that a test can fail each operation.

A crash is survived by order alone: contents are synced before the name that shows them, and a name
is synced (`sync_dir`) before anything that it replaces goes. The callers keep these rules; the
object only does what it is told, one operation a call.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ringcast.journal.format.errors import JournalError, JournalFull

Unsynced = bytes | bytearray | memoryview


class Files:
    """The operations of a real disk. Each may raise OSError; none hides one."""

    def make_dir(self, path: Path) -> None:
        """Make a directory if it is not there; its parents must be. Others cannot enter it."""
        path.mkdir(mode=0o700, exist_ok=True)

    def create(self, path: Path, *, new: bool) -> int:
        """Open for writing from empty; with `new`, FileExistsError when the name is taken.

        Only this user can read it: a journal holds all that a group says. A link that others have
        put there is not followed, or a file elsewhere would be emptied.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags | (os.O_EXCL if new else os.O_TRUNC), 0o600)

    def open(self, path: Path) -> int:
        """Open what exists, for locking. Raises JournalError for what is not a regular file."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise JournalError(f"{path} is not a regular file: move it away")
        return fd

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        """Take the lock that shows that a file's writer is alive; False when another has it.

        flock and not a POSIX lock: it belongs to this descriptor, so that it keeps two users in one
        process apart as well, and the kernel drops it when the process dies.
        """
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write(self, fd: int, data: Unsynced) -> None:
        """Write all of it."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]

    def sync(self, fd: int) -> None:
        """Return when the file's contents are on the disk."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """Close, which drops the lock as well."""
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its name in one step, in place of any that had it."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a file; one that is not there is fine, since a crash may have come between."""
        path.unlink(missing_ok=True)

    def sync_dir(self, path: Path) -> None:
        """Return when the directory's names are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_whole(path: Path) -> bytes:
    """The contents of a file that any process may have put there.

    Only a regular file is read: a pipe would have its reader wait for ever, and a device has no
    end. Raises JournalError, and OSError when it is not there.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > WHOLE_BYTES_MAX:
        os.close(fd)
        raise JournalError(
            f"{path} is not a regular file of up to {WHOLE_BYTES_MAX:,} bytes: move it away"
        )
    with os.fdopen(fd, "rb") as file:
        return file.read(WHOLE_BYTES_MAX)


def publish(files: Files, temporary: Path, final: Path, pieces: Iterable[Unsynced]) -> int:
    """Write a whole file so that it is seen either entirely or not at all; returns its bytes.

    The temporary name may be left over from a crash, and is in the same directory.
    """
    size = 0
    fd = files.create(temporary, new=False)
    try:
        for piece in pieces:
            files.write(fd, piece)
            size += len(piece)
        files.sync(fd)
    except Exception:
        files.close(fd)
        files.unlink(temporary)
        raise
    files.close(fd)
    files.rename(temporary, final)
    files.sync_dir(final.parent)
    return size


def create_locked(files: Files, path: Path) -> int:
    """A new file that is locked from its first moment; FileExistsError when the name is taken.

    A process that looks for dead recorders may open and remove the file between its creation and
    its lock. Then it is made again: what was removed was empty.
    """
    for _ in range(CREATE_ATTEMPTS):
        fd = files.create(path, new=True)
        if files.lock(fd) and is_at(fd, path):
            return fd
        files.close(fd)
    raise OSError(errno.EAGAIN, "it is removed as soon as it is created", str(path))


def is_at(fd: int, path: Path) -> bool:
    """Whether this open file is still the one of that name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def is_locked(files: Files, path: Path) -> bool:
    """Whether a living process holds the lock of this file."""
    try:
        fd = files.open(path)
    except FileNotFoundError:
        return False
    try:
        return not files.lock(fd, shared=True)
    finally:
        files.close(fd)


@contextmanager
def sentences(root: Path, failed: Callable[[], None] | None = None) -> Iterator[None]:
    """Turn what the disk says into the journal's own errors, after calling `failed`."""
    try:
        yield
    except OSError as error:
        if failed is not None:
            failed()
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise JournalFull(
                f"the disk of the journal {root} is full: free some space, then start the recorder "
                "again; all that was synced is safe"
            ) from error
        reason = error.strerror or type(error).__name__
        raise JournalError(f"the journal {root} cannot be written: {reason}") from error


CREATE_ATTEMPTS = 16
WHOLE_BYTES_MAX = 2**28
"""Bytes of a manifest or checkpoint: of a journal with a million segments that were compacted."""
