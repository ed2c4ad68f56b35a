"""A full disk stops the recorder with one sentence, and leaves a journal that can be read."""

import errno
from pathlib import Path

import pytest

from ringcast.errors import Closed
from ringcast.journal import JournalError, JournalFull, JournalWriter, recover
from ringcast.journal.format.layout import Layout
from tests.unit.journal.support import FaultyFiles, FullFiles, all_rows, append, expected

LAST = 15


class Life:
    """A recorder's life, and what it was promised before its disk was full."""

    def __init__(self, directory: Path, files: FaultyFiles) -> None:
        self.synced = 0
        self.writer: JournalWriter | None = None
        self._directory = directory
        self._files = files

    def run(self) -> None:
        self.writer = JournalWriter(self._directory, "prices", 1, files=self._files)
        for first in range(1, LAST, 5):
            append(self.writer, 7, first, first + 4)
            self.writer.sync()
            self.synced = first + 4
            self.writer.seal()
        self.writer.close()


@pytest.mark.slow
def test_the_disk_is_full_at_every_operation(tmp_path: Path) -> None:
    healthy = FaultyFiles()
    Life(tmp_path / "whole", healthy).run()
    last = max(i for i, name in enumerate(healthy.operations) if name in FullFiles.TAKES_ROOM)
    for number in range(last + 1):
        directory = tmp_path / str(number)
        files = FullFiles(number)
        life = Life(directory, files)
        with pytest.raises(JournalFull, match=r"^the disk .* is full: free some space[^\n]*$"):
            life.run()
        assert files.fds == set()
        if life.writer is not None:
            with pytest.raises(Closed):
                life.writer.sync()
        check_readable(directory, life.synced)


def check_readable(directory: Path, synced: int) -> None:
    """Whatever is there is whole; and once there is room, everything synced is."""
    layout = Layout(directory)
    if not layout.manifests.is_dir():
        assert synced == 0
        return
    rows = all_rows(directory)
    assert rows == expected(7, 1, len(rows))

    recover(directory, files=FaultyFiles())  # There is room again, and the lock was let go.
    rows = all_rows(directory)
    assert rows == expected(7, 1, len(rows))
    assert len(rows) >= synced
    assert not layout.logs.is_dir() or layout.log_names() == []


def test_recovery_on_a_full_disk_can_be_repeated(tmp_path: Path) -> None:
    dead = FaultyFiles()
    writer = JournalWriter(tmp_path, "prices", 1, files=dead)
    append(writer, 7, 1, 5)
    writer.sync()
    dead.die()
    with pytest.raises(JournalFull):
        recover(tmp_path, files=FullFiles(0))
    assert all_rows(tmp_path) == []
    assert len(recover(tmp_path)) == 1
    assert all_rows(tmp_path) == expected(7, 1, 5)


def test_another_failure_is_told_as_what_it_is(tmp_path: Path) -> None:
    files = FullFiles(10**9, errno.EIO)
    writer = JournalWriter(tmp_path, "prices", 1, files=files)
    append(writer, 7, 1, 5)
    files.fill()
    with pytest.raises(JournalError, match="cannot be written: Input/output error") as caught:
        writer.sync()
    assert not isinstance(caught.value, JournalFull)
    with pytest.raises(Closed):  # A second sync might succeed and promise what is lost.
        writer.sync()
