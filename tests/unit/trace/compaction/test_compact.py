"""Compaction of traces: the same rows in fewer files, whatever dies when, beside who writes."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from ringcast.cli.main import main
from ringcast.errors import ConfigError, LocalError
from ringcast.spark.follow.stream import audit_stream
from ringcast.spark.traces import find_traces
from ringcast.trace.compaction.compact import compact_traces
from ringcast.trace.compaction.lock import reading
from ringcast.trace.compaction.names import covered
from ringcast.trace.schema import Row
from ringcast.trace.table import read_rows
from ringcast.trace.writer import TraceWriter
from tests.seeds import quick_first
from tests.unit.journal.support import FaultyFiles, Killed, LosingFiles

MEMBERS = (7, 2**63 + 5)


def write(directory: Path, member: int, first: int, last: int) -> None:
    """A file per number."""
    with TraceWriter(directory, member) as writer:
        for number in range(first, last + 1):
            add(writer, number)


def add(writer: TraceWriter, number: int) -> None:
    if number == 1:
        writer.append_view(1, 7, MEMBERS, ["ann", "ben"], 0)
    writer.append_sent(number, 1, 10, number)
    writer.append_delivered(7, number, 1, 10, number, number + 5, 99)
    writer.append_acked(7, number, number + 9)
    writer.rotate()


def rows(directory: Path) -> list[Row]:
    return sorted(read_rows(directory), key=repr)


def names(directory: Path) -> list[str]:
    return sorted(path.name[:-17] for path in directory.glob("*.parquet"))


def test_links_and_pipes_lead_a_compaction_nowhere(tmp_path: Path) -> None:
    """A link back would be followed without an end, and one elsewhere to files of others."""
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    write(root, 7, 1, 4)
    write(elsewhere, 7, 1, 4)
    kept = names(elsewhere)
    for number in range(3):
        (root / f"back{number}").symlink_to(root)
    (root / "away").symlink_to(elsewhere)
    assert compact_traces(root).before == 4
    assert names(elsewhere) == kept
    os.mkfifo(root / f"{7:016x}-000004-00000000.parquet")
    with pytest.raises(ConfigError, match="is damaged"):
        compact_traces(root)


def test_the_files_of_each_member_become_one(tmp_path: Path) -> None:
    for member in MEMBERS:
        write(tmp_path, member, 1, 4)
        write(tmp_path / "below", member, 1, 2)
    before, below = rows(tmp_path), rows(tmp_path / "below")
    assert compact_traces(tmp_path) == (12, 4, len(before) + len(below))
    assert names(tmp_path) == ["0000000000000007-000000to000003", "8000000000000005-000000to000003"]
    assert (rows(tmp_path), rows(tmp_path / "below")) == (before, below)
    assert compact_traces(tmp_path) == (4, 4, 0)


def test_what_is_compacted_is_compacted_again_with_what_came_since(tmp_path: Path) -> None:
    write(tmp_path, 7, 1, 3)
    compact_traces(tmp_path)
    write(tmp_path, 7, 4, 5)
    assert names(tmp_path)[1:] == ["0000000000000007-000003", "0000000000000007-000004"]
    before = rows(tmp_path)
    assert compact_traces(tmp_path).after == 1
    assert names(tmp_path) == ["0000000000000007-000000to000004"]
    assert rows(tmp_path) == before


def test_a_member_writes_on_under_other_numbers(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 7) as writer:
        for number in range(1, 20):
            add(writer, number)
            compact_traces(tmp_path, files=FaultyFiles())
            assert len(rows(tmp_path)) == 1 + 3 * number
    assert names(tmp_path) == ["0000000000000007-000000to000018"]


def test_large_files_stay_and_a_missing_number_parts_a_run(tmp_path: Path) -> None:
    write(tmp_path, 7, 1, 6)
    files = sorted(tmp_path.glob("*.parquet"))
    size = max(file.stat().st_size for file in files)
    assert compact_traces(tmp_path, target_bytes=size).after == 6
    kept = files[2].rename(tmp_path / "kept")
    assert compact_traces(tmp_path) == (5, 2, 16)
    kept.rename(files[2])
    assert len(rows(tmp_path)) == 1 + 3 * 6, "a file that is put back counts"


def killed_everywhere(
    tmp_path: Path,
    files: Callable[[Path, int], FaultyFiles],
    lost: Callable[[FaultyFiles], None],
    every: int,
) -> int:
    """Compactions that end before each of their operations: nothing is lost, nothing is double."""
    number, whole = 0, tmp_path / "whole"
    for member in MEMBERS:
        write(whole, member, 1, 3)
    expected = rows(whole)
    while True:
        directory = tmp_path / str(number)
        shutil.copytree(whole, directory)
        disk = files(tmp_path / f"keep{number}", number)
        try:
            compact_traces(directory, files=disk)
        except Killed:
            lost(disk)
        else:
            assert rows(directory) == expected
            return number
        assert rows(directory) == expected, number
        compact_traces(directory, files=FaultyFiles())
        assert rows(directory) == expected, number
        assert len(names(directory)) == 2
        assert not covered(directory.glob("*.parquet"))
        assert {path.name for path in directory.glob(".*")} <= {".lock"}
        number += every


@pytest.mark.slow
@pytest.mark.parametrize("every", quick_first([5, 1], 1))
def test_killed_at_every_operation(tmp_path: Path, every: int) -> None:
    def files(_: Path, number: int) -> FaultyFiles:
        return FaultyFiles(number)

    assert killed_everywhere(tmp_path, files, lambda _: None, every) > 30


@pytest.mark.slow
@pytest.mark.parametrize("how", quick_first([(None, 5), (None, 1), (1, 4)], 1))
def test_the_power_fails_at_every_operation(tmp_path: Path, how: tuple[int | None, int]) -> None:
    seed, every = how
    chance = None if seed is None else random.Random(seed)

    def lose(disk: FaultyFiles) -> None:
        assert isinstance(disk, LosingFiles)
        disk.lose(chance)

    assert killed_everywhere(tmp_path, LosingFiles, lose, every) > 30


def test_mistakes_are_told(tmp_path: Path) -> None:
    write(tmp_path, 7, 1, 3)
    with pytest.raises(ConfigError, match="target_bytes is 0"):
        compact_traces(tmp_path, target_bytes=0)
    with reading([tmp_path]), pytest.raises(LocalError, match="is being audited or compacted"):
        compact_traces(tmp_path)
    damaged = sorted(tmp_path.glob("*.parquet"))[1]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    with pytest.raises(ConfigError, match=f"{damaged.name} is damaged"):
        compact_traces(tmp_path)
    assert len(names(tmp_path)) == 3
    assert not list(tmp_path.glob(".compact-*"))


def test_an_audit_of_a_directory_above_keeps_a_compaction_away(tmp_path: Path) -> None:
    """A continuous audit reads what is below its directory, also what comes there later."""
    host = tmp_path / "trace" / "host"
    write(host, 7, 1, 3)
    note = tmp_path / ".lock"
    note.write_text("of another program")
    with reading([tmp_path / "trace"]):
        for place in (host, tmp_path):
            with pytest.raises(LocalError, match="trace is being audited or compacted"):
                compact_traces(place)
    assert len(names(host)) == 3
    assert compact_traces(tmp_path).after == 1
    assert note.read_text() == "of another program"


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, 7, 1, 3)
    assert main(["compact", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "3 files are now 1: 10 rows were moved.\n"
    assert main(["compact", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"before": 1, "after": 1, "rows": 0}


def test_an_audit_reads_a_compacted_file_and_not_what_it_stands_for(tmp_path: Path) -> None:
    write(tmp_path, 7, 1, 3)
    small = {path: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    compact_traces(tmp_path)
    (large,) = tmp_path.glob("*.parquet")
    for path, content in small.items():  # As a process leaves it that dies before it removes them.
        path.write_bytes(content)
    found = find_traces(str(tmp_path))
    assert (found.files, found.places, found.double) == ([large], [large], set(small))
    assert len(rows(tmp_path)) == 10
    with pytest.raises(ConfigError, match="was compacted, but not to the end"):
        audit_stream(cast(SparkSession, None), tmp_path)
