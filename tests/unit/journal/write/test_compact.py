"""Compaction: the same rows in fewer files, whatever dies when, and for all that read meanwhile."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast.cli.main import main
from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalError, JournalWriter, recover
from ringcast.journal.format.checkpoint import checkpoint_lock, lines_of
from ringcast.journal.format.layout import Layout, stem_of
from ringcast.journal.read.rows import read_slice, seqnos
from ringcast.journal.read.stream import JournalStream, Offset
from ringcast.journal.write import writer as writer_module
from ringcast.journal.write.compact import compact
from ringcast.journal.write.fold import fold
from ringcast.journal.write.retention import remove
from tests.seeds import quick_first
from tests.unit.journal.format.test_members import make_first_format
from tests.unit.journal.support import (
    FakeClock,
    FaultyFiles,
    Killed,
    LosingFiles,
    Row,
    all_rows,
    append,
    expected,
    rows,
)

ALL = sorted(expected(7, 1, 40) + expected(8, 1, 20))
ANN = (7, "ann", "10.0.0.7:7800")


def write(directory: Path) -> None:
    """Two recorders that overlap, with four and two segments."""
    files, clock = FaultyFiles(), FakeClock()
    with (
        JournalWriter(directory, "prices", 1, files=files, now=clock) as one,
        JournalWriter(directory, "prices", 2, files=files, now=clock) as other,
    ):
        one.view(1, 1, [ANN], at=5)
        for first in range(1, 41, 10):
            append(one, 7, first, first + 9, at=first)
            one.seal()
            if first > 20:
                append(other, 7, first, first + 9, at=first)
                append(other, 8, first - 20, first - 11, at=first)
                other.seal()


def native(directory: Path) -> list[int]:
    """The seqnos of sender 7 that recorder 1 wrote, as a reader of plain Parquet sees them."""
    tables = [pq.read_table(path) for path in directory.glob("[!._]*.parquet")]
    found = [row for table in tables for row in table.select(["recorder", "seqno"]).to_pylist()]
    return sorted(row["seqno"] for row in found if row["recorder"] == 1)


def check_compacted(directory: Path) -> None:
    """Two segments, two files, the same rows, and nothing that was left over."""
    journal = Journal(directory)
    assert all_rows(directory) == ALL
    assert len(journal.segments) == 2
    assert {path.stem for path in directory.glob("*.parquet")} == set(lines_of_names(directory))
    assert native(directory) == list(range(1, 41))
    assert not list(directory.rglob("*.tmp"))
    assert journal.holes() == {}


def lines_of_names(directory: Path) -> list[str]:
    return sorted(lines_of(Layout(directory).checkpoint))


def test_many_segments_become_one_per_recorder(tmp_path: Path) -> None:
    write(tmp_path)
    before = Journal(tmp_path)
    done = compact(tmp_path)
    assert (done.before, done.after, done.rows) == (6, 2, 80)
    check_compacted(tmp_path)
    one, _ = Journal(tmp_path).segments
    assert one.name.endswith("-prices-00000001to00000004")
    assert one.views[0].senders == {7: ((1, 40, 40),)}
    assert (one.sent_at, one.delivered_at) == ((1, 31), (2, 32))
    assert Journal(tmp_path).members() == before.members()
    assert before.refresh()
    assert before.segments == Journal(tmp_path).segments
    again = compact(tmp_path)
    assert (again.before, again.after, again.rows) == (2, 2, 0)


def test_what_is_compacted_is_compacted_again_with_what_came_since(tmp_path: Path) -> None:
    write(tmp_path)
    old = Journal(tmp_path)
    compact(tmp_path)
    former = Journal(tmp_path)
    with JournalWriter(tmp_path, "prices", 1, files=FaultyFiles()) as writer:
        append(writer, 7, 41, 50)
    assert compact(tmp_path).after == 2
    newest = max(Journal(tmp_path).segments, key=lambda segment: segment.rows)
    assert newest.name.endswith("-00000001to00000005")
    for late in (old, former):  # Planned before; the files are gone since.
        assert sorted(rows(late.read())) == ALL
    assert all_rows(tmp_path) == sorted(ALL + expected(7, 41, 50))


def test_large_segments_stay_and_the_target_bounds_what_is_made(tmp_path: Path) -> None:
    write(tmp_path)
    size = max(segment.bytes for segment in Journal(tmp_path).segments)
    done = compact(tmp_path, target_bytes=size)
    assert (done.before, done.after) == (6, 6)
    done = compact(tmp_path, target_bytes=2 * size)
    assert done.after == 3
    assert all_rows(tmp_path) == ALL


def killed_everywhere(
    tmp_path: Path,
    files: Callable[[Path, int], FaultyFiles],
    lost: Callable[[FaultyFiles], None],
    every: int,
) -> int:
    """Compactions that end before each of their operations, or before every second or third one:
    nothing is lost, nothing is double."""
    number = 0
    write(tmp_path / "whole")
    while True:
        directory = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", directory)
        reader = Journal(directory)
        disk = files(tmp_path / f"keep{number}", number)
        try:
            compact(directory, files=disk)
        except Killed:
            lost(disk)
        else:
            check_compacted(directory)
            return number
        assert all_rows(directory) == ALL, number
        reader.refresh()
        assert sorted(rows(reader.read())) == ALL, number
        recover(directory, files=FaultyFiles())
        assert all_rows(directory) == ALL, number
        compact(directory, files=FaultyFiles())
        check_compacted(directory)
        number += every


@pytest.mark.slow
@pytest.mark.parametrize("every", quick_first([4, 1], 1))
def test_killed_at_every_operation(tmp_path: Path, every: int) -> None:
    def files(_: Path, number: int) -> FaultyFiles:
        return FaultyFiles(number)

    assert killed_everywhere(tmp_path, files, lambda _: None, every) > 30


@pytest.mark.slow
@pytest.mark.parametrize("how", quick_first([(None, 3), (None, 1), (1, 1)], 1))
def test_the_power_fails_at_every_operation(tmp_path: Path, how: tuple[int | None, int]) -> None:
    seed, every = how
    chance = None if seed is None else random.Random(seed)

    def lose(disk: FaultyFiles) -> None:
        assert isinstance(disk, LosingFiles)
        disk.lose(chance)

    assert killed_everywhere(tmp_path, LosingFiles, lose, every) > 30


def test_a_stream_goes_on_exactly_once(tmp_path: Path) -> None:
    """A query stops at a digest in the middle of a segment; then everything is compacted."""
    write(tmp_path)
    seen: list[Row] = []

    def batch(stream: JournalStream, start: Offset, size: int | None) -> Offset:
        end = stream.latest(start, size)
        for part in stream.plan(start, end):
            seen.extend(rows(read_slice(tmp_path, part)))
        return end

    def find(name: str, sender: int, spans: tuple[tuple[int, int], ...]) -> list[int]:
        return seqnos(tmp_path, name, sender, spans)

    running = JournalStream(Journal(tmp_path), find)
    at = batch(running, running.initial(), 17)
    late_end = running.latest(at, 13)
    late = running.plan(at, late_end)
    compact(tmp_path)
    restarted = JournalStream(Journal(tmp_path), find)
    tried = [row for part in late for row in rows(read_slice(tmp_path, part))]
    again = restarted.plan(at, late_end)
    assert sorted(tried) == sorted(r for part in again for r in rows(read_slice(tmp_path, part)))
    seen += tried  # Tasks that were planned before and read after.
    middle = batch(running, late_end, 10)
    batch(restarted, middle, None)
    assert sorted(seen) == ALL


def test_it_is_safe_beside_a_recorder(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1, files=FaultyFiles()) as writer:
        reader = Journal(tmp_path)
        for first in range(1, 60, 3):
            append(writer, 7, first, first + 2)
            writer.seal()
            append(writer, 8, first, first + 2)
            compact(tmp_path, files=FaultyFiles())
            reader.refresh()
            known = sorted(rows(reader.read()))
            assert known == sorted(expected(7, 1, first + 2) + expected(8, 1, first - 1))
    assert all_rows(tmp_path) == sorted(expected(7, 1, 60) + expected(8, 1, 60))


def test_what_retention_removed_of_it_stays_away(tmp_path: Path) -> None:
    write(tmp_path)
    compact(tmp_path)
    layout, stem = Layout(tmp_path), stem_of("prices", 1)
    journal = Journal(tmp_path)
    (mine,) = [segment for segment in journal.segments if segment.recorder == 1]
    remove(FaultyFiles(), layout, stem, [mine], journal.folded)
    left = sorted(expected(7, 21, 40) + expected(8, 1, 20))
    assert all_rows(tmp_path) == left
    assert journal.refresh()
    fold(FaultyFiles(), layout)
    assert all_rows(tmp_path) == left
    assert len(lines_of_names(tmp_path)) == 1


def test_segments_of_the_first_format_are_compacted(tmp_path: Path) -> None:
    write(tmp_path)
    make_first_format(tmp_path)
    compact(tmp_path)
    check_compacted(tmp_path)
    assert Journal(tmp_path).segments[0].sent_at is None


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such directory"):
        compact(tmp_path / "missing")
    write(tmp_path)
    with pytest.raises(ConfigError, match="target_bytes is 0"):
        compact(tmp_path, target_bytes=0)
    with checkpoint_lock(FaultyFiles(), Layout(tmp_path)) as mine:
        assert mine
        with pytest.raises(JournalError, match="another process compacts"):
            compact(tmp_path)
    damaged = sorted(tmp_path.glob("*.parquet"))[2]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(JournalError, match=f"{damaged.name} is damaged"):
        compact(tmp_path)


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(["compact", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "6 segments are now 2: 80 rows were moved.\n"
    assert main(["compact", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"before": 2, "after": 2, "rows": 0}


def test_a_recorder_folds_its_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FOLD_SEGMENTS", 4)
    with JournalWriter(tmp_path, "prices", 1, files=FaultyFiles()) as writer:
        reader = Journal(tmp_path)
        for seqno in range(1, 11):
            append(writer, 7, seqno, seqno)
            writer.seal()
            reader.refresh()
            assert sorted(rows(reader.read())) == expected(7, 1, seqno)
    assert len(lines_of_names(tmp_path)) == 8
    assert len(list((tmp_path / "_manifest").glob("*.json"))) == 2
    assert all_rows(tmp_path) == expected(7, 1, 10)


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    write(tmp_path)
    compact(tmp_path)
    path = Layout(tmp_path).checkpoint
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(JournalError, match=r"checkpoint\.jsonl is damaged or no manifest"):
        Journal(tmp_path)


@pytest.mark.parametrize("name", ["../elsewhere/{}", "{}/../{}", "\x1b[2J", "\ud800", "x" * 5_000])
def test_a_manifest_that_names_a_file_elsewhere_has_none_read_or_removed(
    name: str, tmp_path: Path
) -> None:
    journal, elsewhere = tmp_path / "journal", tmp_path / "elsewhere"
    write(elsewhere)
    write(journal)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*.parquet")}
    manifest = sorted(Layout(journal).manifests.glob("*.json"))[0]
    content = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps({**content, "name": name.replace("{}", content["name"])}))
    uses: list[Callable[[], object]] = [
        lambda: list(Journal(journal).read()),
        lambda: compact(journal),
    ]
    for use in uses:
        with pytest.raises(JournalError, match=r"\.json is damaged or no manifest"):
            use()
    assert {path: path.read_bytes() for path in elsewhere.rglob("*.parquet")} == before
