"""A crash at every single operation: nothing half is seen, nothing synced is lost."""

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import ringcast
from ringcast.journal import Files, Journal, JournalError, JournalWriter, recover
from ringcast.journal.format.manifest import RECOVERED
from tests.seeds import quick_first
from tests.unit.journal.support import (
    FakeClock,
    FaultyFiles,
    Killed,
    LosingFiles,
    all_rows,
    append,
    expected,
)

LAST = 26


@dataclass
class Progress:
    """What the recorder was promised before it died."""

    appended: int = 0
    synced: int = 0


def record(directory: Path, files: Files, progress: Progress, *, bytes_kept: int | None) -> None:
    """A recorder's life: runs of one sender, some synced, in three segments."""
    clock = FakeClock()
    writer = JournalWriter(
        directory, "prices", 1, retention_bytes=bytes_kept, files=files, now=clock
    )
    for first in range(1, LAST, 5):
        append(writer, 7, first, first + 4)
        progress.appended = first + 4
        if first % 2:
            writer.sync()
            progress.synced = progress.appended
        if first in {6, 16}:
            writer.seal()
            progress.synced = progress.appended
    writer.close()
    progress.synced = progress.appended


def operations(tmp_path: Path, bytes_kept: int | None = None) -> int:
    """How many operations a life without a crash has."""
    files = FaultyFiles()
    record(tmp_path / "whole", files, Progress(), bytes_kept=bytes_kept)
    return len(files.operations)


def crashes(tmp_path: Path, bytes_kept: int | None = None) -> Iterator[tuple[Path, Progress]]:
    """Lives that end before each of their operations, and in the middle of each write."""
    for number in range(operations(tmp_path, bytes_kept)):
        directory, progress = tmp_path / str(number), Progress()
        with pytest.raises(Killed):
            record(directory, FaultyFiles(number), progress, bytes_kept=bytes_kept)
        yield directory, progress


def check_prefix(directory: Path, progress: Progress) -> None:
    """The journal is sealed, and has everything synced and nothing else than what was appended."""
    rows = all_rows(directory)
    assert rows == expected(7, 1, len(rows))
    assert progress.synced <= len(rows) <= progress.appended
    assert list((directory / "_open").iterdir()) == []
    assert not list(directory.rglob("*.tmp"))
    assert recover(directory, files=FaultyFiles()) == []


def check_visible(directory: Path, progress: Progress) -> None:
    """What anybody sees of the journal before it is recovered is whole and was appended."""
    known = [seqno for _, _, seqno, _ in all_rows(directory)]
    assert known == list(range(1, len(known) + 1))
    native = [
        seqno
        for path in sorted(directory.glob("[!._]*.parquet"))
        for seqno in pq.read_table(path).column("seqno").to_pylist()
    ]
    assert native == list(range(1, len(native) + 1))
    assert len(known) <= len(native) <= progress.appended


def is_journal(directory: Path) -> bool:
    """Whether the recorder got so far that there is a journal at all."""
    return (directory / "_manifest").is_dir() and (directory / "_open").is_dir()


@pytest.mark.slow
def test_killed_at_every_operation(tmp_path: Path) -> None:
    seen = 0
    for directory, progress in crashes(tmp_path):
        if not is_journal(directory):
            assert progress.synced == 0
            continue
        seen += 1
        check_visible(directory, progress)
        recover(directory, files=FaultyFiles())
        check_prefix(directory, progress)
    assert seen > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first([None, 1, 2, 3], 1))
def test_the_power_fails_at_every_operation(tmp_path: Path, seed: int | None) -> None:
    chance = None if seed is None else random.Random(seed)
    for number in range(operations(tmp_path)):
        directory, progress = tmp_path / str(number), Progress()
        files = LosingFiles(tmp_path / f"keep{number}", number)
        with pytest.raises(Killed):
            record(directory, files, progress, bytes_kept=None)
        files.lose(chance)
        if not is_journal(directory):
            assert progress.synced == 0
            continue
        check_visible(directory, progress)
        recover(directory, files=FaultyFiles())
        check_prefix(directory, progress)


def test_recovery_is_killed_at_every_operation(tmp_path: Path) -> None:
    number = 0
    while True:
        directory, progress = tmp_path / str(number), Progress()
        with pytest.raises(Killed):
            record(directory, FaultyFiles(30), progress, bytes_kept=None)
        files = FaultyFiles(number)
        try:
            recover(directory, files=files)
        except Killed:
            check_visible(directory, progress)
            recover(directory, files=FaultyFiles())
            check_prefix(directory, progress)
            number += 1
        else:
            break
    assert number > 10


@pytest.mark.slow
def test_retention_is_killed_at_every_operation(tmp_path: Path) -> None:
    for directory, progress in crashes(tmp_path, bytes_kept=1):
        if not is_journal(directory):
            continue
        rows = all_rows(directory)
        assert rows == expected(7, rows[0][2], rows[-1][2]) if rows else True
        recover(directory, files=FaultyFiles())
        journal = Journal(directory)
        gone = journal.removed.get(("prices", 7), ())
        left = journal.cover.get(("prices", 7), ())
        assert sum(last - first + 1 for first, last in (*gone, *left)) >= progress.synced
        # What was noted as removed is gone, and nothing else is.
        names = {segment.name for segment in journal.segments}
        assert {path.stem for path in directory.glob("*.parquet")} == names
        assert [row[2] for row in all_rows(directory)] == [
            seqno for first, last in left for seqno in range(first, last + 1)
        ]


def test_a_living_recorder_is_left_alone(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 3)
        writer.sync()
        assert recover(tmp_path) == []
        append(writer, 7, 4, 5)
    assert all_rows(tmp_path) == expected(7, 1, 5)


def test_a_dead_recorder_is_recovered_beside_a_living_one(tmp_path: Path) -> None:
    dead = FaultyFiles()
    former = JournalWriter(tmp_path, "prices", 1, files=dead)
    append(former, 7, 1, 3)
    former.sync()
    dead.die()
    with JournalWriter(tmp_path, "prices", 2) as writer:
        append(writer, 7, 4, 5, view=2)
        (segment,) = recover(tmp_path)
        assert (segment.recorder, segment.rows, segment.ended) == (1, 3, RECOVERED)
    assert all_rows(tmp_path) == expected(7, 1, 5)


def test_a_log_that_cannot_be_read_stays_and_the_others_are_recovered(tmp_path: Path) -> None:
    dead = FaultyFiles()
    for recorder in (1, 2):
        former = JournalWriter(tmp_path, "prices", recorder, files=dead)
        append(former, 7, 1, 3, view=recorder)
        former.sync()
    dead.die()
    damaged, _ = sorted((tmp_path / "_open").iterdir())
    content = bytearray(damaged.read_bytes())
    content[10] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(JournalError, match=rf"{damaged.name}: its beginning is damaged"):
        recover(tmp_path)
    assert damaged.read_bytes() == content
    (segment,) = Journal(tmp_path).segments
    assert (segment.recorder, segment.rows, segment.ended) == (2, 3, RECOVERED)


def test_a_manifest_never_changes(tmp_path: Path) -> None:
    """Readers keep what they read: a log whose segment is known is removed, and nothing else."""
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 3)
        writer.sync()
        (log,) = (tmp_path / "_open").iterdir()
        content = log.read_bytes()
    (before,) = Journal(tmp_path).segments
    log.write_bytes(content)  # As if the recorder had died before it removed it.
    assert recover(tmp_path) == [before]
    assert Journal(tmp_path).segments == (before,)
    assert not log.exists()


def test_what_is_torn_is_counted(tmp_path: Path) -> None:
    dead = FaultyFiles()
    former = JournalWriter(tmp_path, "prices", 1, files=dead)
    append(former, 7, 1, 3)
    former.sync()
    dead.die()
    (log,) = (tmp_path / "_open").iterdir()
    with log.open("ab") as file:
        file.write(b"half a record")
    (segment,) = recover(tmp_path)
    assert (segment.rows, segment.torn_bytes) == (3, len(b"half a record"))


def test_sigkill_in_the_middle_of_writing(tmp_path: Path) -> None:
    script = """
        import sys
        from ringcast.journal import JournalWriter

        writer = JournalWriter(sys.argv[1], "prices", 1, roll_bytes=20_000)
        for first in range(1, 10**9, 10):
            payloads = [b"%d" % seqno for seqno in range(first, first + 10)]
            writer.append(1, 1, 7, first, payloads, sent_at=1, delivered_at=2)
            writer.sync()
            print(first + 9, flush=True)
    """
    source = str(Path(ringcast.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "journal")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert child.stdout is not None
    lines: list[bytes] = []
    with child.stdout as output:
        while len(lines) < 400:
            lines.append(output.readline())
        assert recover(tmp_path / "journal") == []  # It lives.
        child.send_signal(signal.SIGKILL)
        lines += output.readlines()
    child.wait()
    synced = max(int(line) for line in lines if line.endswith(b"\n"))

    recover(tmp_path / "journal")
    rows = all_rows(tmp_path / "journal")
    assert [row[2] for row in rows] == list(range(1, len(rows) + 1))
    assert all(row[3] == b"%d" % row[2] for row in rows)
    assert len(rows) >= synced >= 4000
    assert len(Journal(tmp_path / "journal").segments) > 1
