"""Retention takes the oldest first, nothing that another living recorder keeps, and says so."""

from pathlib import Path

import pytest

from ringcast.journal import Journal, JournalWriter, recover
from ringcast.journal.format.layout import Layout, stem_of
from ringcast.journal.format.manifest import Removed, write_removed
from ringcast.journal.write import retention
from tests.unit.journal.support import FakeClock, FaultyFiles, all_rows, append, expected


def fill(writer: JournalWriter, first: int, last: int) -> None:
    """A segment for each of these messages."""
    for seqno in range(first, last + 1):
        append(writer, 7, seqno, seqno)
        writer.seal()


def test_the_oldest_go_when_it_is_too_much(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "one", "prices", 1) as writer:
        fill(writer, 1, 1)
    (segment,) = Journal(tmp_path / "one").segments
    room = 3 * segment.bytes + segment.bytes // 2
    with JournalWriter(tmp_path / "all", "prices", 1, retention_bytes=room) as writer:
        fill(writer, 1, 10)
        assert all_rows(tmp_path / "all") == expected(7, 8, 10)
    journal = Journal(tmp_path / "all")
    assert journal.removed == {("prices", 7): ((1, 7),)}
    assert journal.holes() == {}
    assert len(list((tmp_path / "all").glob("*.parquet"))) == 3


def test_the_oldest_go_when_they_are_too_old(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, retention_seconds=60, now=clock) as writer:
        fill(writer, 1, 3)
        clock.now += 61_000_000
        fill(writer, 4, 5)
        assert all_rows(tmp_path) == expected(7, 4, 5)


def test_the_newest_always_stays(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1, retention_bytes=1) as writer:
        fill(writer, 1, 3)
        assert all_rows(tmp_path) == expected(7, 3, 3)


def test_the_dead_are_cleared_away_and_the_living_are_not(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as dead:
        fill(dead, 1, 2)
    with (
        JournalWriter(tmp_path, "prices", 2) as living,
        JournalWriter(tmp_path, "other", 3) as other,
    ):
        fill(living, 3, 4)
        fill(other, 1, 1)
        with JournalWriter(tmp_path, "prices", 4, retention_bytes=1) as writer:
            fill(writer, 5, 5)
        assert all_rows(tmp_path) == sorted(expected(7, 3, 5) + expected(7, 1, 1, "other"))


def test_numbers_of_what_was_removed_are_not_used_again(tmp_path: Path) -> None:
    layout, stem = Layout(tmp_path), stem_of("prices", 1)
    with JournalWriter(tmp_path, "prices", 1) as writer:
        fill(writer, 1, 1)
        retention.remove(FaultyFiles(), layout, stem, list(Journal(tmp_path).segments))
    with JournalWriter(tmp_path, "prices", 1) as writer:
        fill(writer, 2, 2)
    assert all_rows(tmp_path) == expected(7, 2, 2)


def test_a_removal_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        fill(writer, 1, 2)
    first, second = Journal(tmp_path).segments
    layout, stem = Layout(tmp_path), stem_of("prices", 1)
    note = Removed("prices", first.cover, (first.name,))
    write_removed(FaultyFiles(), layout.removed(stem), note)
    assert all_rows(tmp_path) == expected(7, 2, 2)  # It is gone for readers already.
    assert layout.segment(first.name).exists()
    recover(tmp_path)
    assert [path.stem for path in tmp_path.glob("*.parquet")] == [second.name]
    assert [path.stem for path in layout.manifests.glob("0*")] == [second.name]


def test_the_note_of_what_is_gone_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "REMOVED_SENDERS_MAX", 3)
    with JournalWriter(tmp_path, "prices", 1, retention_bytes=1) as writer:
        for sender in range(1, 9):
            append(writer, sender, 1, 1)
            writer.seal()
    assert sorted(Journal(tmp_path).removed) == [("prices", 5), ("prices", 6), ("prices", 7)]


def test_a_clock_that_is_set_back_does_not_make_the_newest_the_oldest(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, now=clock) as former:
        fill(former, 1, 2)
    room = 3 * Journal(tmp_path).segments[0].bytes + 100
    clock.now -= 3_600_000_000
    with JournalWriter(tmp_path, "prices", 2, retention_bytes=room, now=clock) as writer:
        fill(writer, 3, 4)
        clock.now -= 3_600_000_000
        fill(writer, 5, 6)
        assert all_rows(tmp_path) == expected(7, 4, 6)


def test_readers_keep_the_order_of_a_recorder_whose_clock_was_set_back(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, now=clock) as writer:
        fill(writer, 1, 2)
        clock.now -= 3_600_000_000
        fill(writer, 3, 4)
    batches = Journal(tmp_path).read()
    assert [n for batch in batches for n in batch.column("seqno").to_pylist()] == [1, 2, 3, 4]


def test_what_was_dated_by_a_clock_ahead_stops_no_others(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, retention_seconds=60, now=clock) as writer:
        clock.now += 3_600_000_000
        fill(writer, 1, 1)
        clock.now -= 3_600_000_000
        fill(writer, 2, 3)
        clock.now += 61_000_000
        fill(writer, 4, 4)
        assert all_rows(tmp_path) == expected(7, 1, 1) + expected(7, 4, 4)


@pytest.mark.parametrize("name", ["../precious", "_manifest/../../precious", "{root}/precious"])
def test_a_note_that_names_files_elsewhere_removes_nothing(name: str, tmp_path: Path) -> None:
    journal, stem = tmp_path / "journal", stem_of("prices", 1)
    with JournalWriter(journal, "prices", 1) as writer:
        fill(writer, 1, 1)
    layout = Layout(journal)
    precious = [
        tmp_path / "precious.parquet",
        tmp_path / "precious.json",
        journal / "precious.json",
    ]
    for path in precious:
        path.write_text("{}")
    note = Removed("prices", {}, (name.format(root=tmp_path),))
    write_removed(FaultyFiles(), layout.removed(stem), note)
    retention.finish_removals(FaultyFiles(), layout)
    retention.remove(FaultyFiles(), layout, stem, list(Journal(journal).segments))
    assert all(path.exists() for path in precious)
