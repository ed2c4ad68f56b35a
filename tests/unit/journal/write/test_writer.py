"""The writer: what is appended is read, once, with all its columns; segments roll and are kept."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast.core.model.address import Address
from ringcast.errors import Closed, ConfigError, LocalError, TooLarge
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.format.manifest import CLOSED, ROLLED
from ringcast.journal.write import writer
from tests.unit.journal.support import FakeClock, all_rows, append, expected, payload


def test_a_run_has_all_its_columns(tmp_path: Path) -> None:
    high = 2**64 - 3
    with JournalWriter(tmp_path, "prices", high) as journal:
        journal.append(
            4,
            2**63,
            high,
            2**62,
            [b"a", memoryview(b"bc")],
            sent_at=10**15 + 7,
            delivered_at=10**15 + 9,
        )
    (path,) = tmp_path.glob("*.parquet")
    sent = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=10**15 + 7)
    row = {
        "group": "prices",
        "view": 4,
        "sender": -3,
        "seqno": 2**62,
        "sent_at": sent,
        "delivered_at": sent + timedelta(microseconds=2),
        "payload": b"a",
        "recorder": -3,
        "view_by": -(2**63),
        "sender_name": None,
    }
    again = {**row, "seqno": 2**62 + 1, "payload": b"bc"}
    assert pq.read_table(path).to_pylist() == [row, again]


def test_addresses_are_taken_as_they_are(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", Address(0xAB)) as journal:
        for first in (1, 2):
            journal.append(1, Address(0xCD), Address(0xEF), first, [b""], sent_at=1, delivered_at=2)
            journal.seal()
    one, two = Journal(tmp_path).segments
    assert (one.recorder, one.views[0].view_by) == (0xAB, 0xCD)
    assert one.cover == {0xEF: ((1, 1),)}
    assert two.cover == {0xEF: ((2, 2),)}


def test_nothing_is_seen_until_it_is_sealed(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as journal:
        append(journal, 7, 1, 3)
        journal.sync()
        assert all_rows(tmp_path) == []
        journal.seal()
        assert all_rows(tmp_path) == expected(7, 1, 3)


def test_segments_roll_by_size(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1, roll_bytes=300) as journal:
        for first in range(1, 101, 10):
            append(journal, 7, first, first + 9)
    segments = Journal(tmp_path).segments
    assert len(segments) > 3
    assert [segment.ended for segment in segments] == [ROLLED] * (len(segments) - 1) + [CLOSED]
    assert all_rows(tmp_path) == expected(7, 1, 100)


def test_segments_roll_by_time_from_the_first_message_on(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, roll_seconds=2.0, now=clock) as journal:
        clock.now += 10_000_000
        assert journal.tick() == 2.0  # An empty segment waits for its first message.
        append(journal, 7, 1, 1)
        clock.now += 500_000
        assert 1.4 < journal.tick() < 1.6
        assert Journal(tmp_path).segments == ()
        clock.now += 1_600_000
        assert journal.tick() == 2.0
        assert len(Journal(tmp_path).segments) == 1


def test_a_clock_that_was_set_back_does_not_keep_a_segment_open(tmp_path: Path) -> None:
    clock = FakeClock()
    with JournalWriter(tmp_path, "prices", 1, roll_seconds=2.0, now=clock) as journal:
        append(journal, 7, 1, 1)
        clock.now -= 500_000
        journal.tick()
        assert len(Journal(tmp_path).segments) == 1


def test_an_empty_writer_leaves_nothing(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "prices", 1)
    journal.append(1, 1, 7, 1, [], sent_at=0, delivered_at=0)
    journal.seal()
    journal.close()
    journal.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert Journal(tmp_path).segments == ()


def test_a_run_must_follow_the_last_one_of_its_sender(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as journal:
        append(journal, 7, 1, 3)
        with pytest.raises(LocalError, match="do not follow 3"):
            append(journal, 7, 3, 4)
        with pytest.raises(LocalError, match="do not follow"):
            journal.skip(1, 1, 7, 9, 8)
        with pytest.raises(LocalError, match="do not follow"):
            append(journal, 8, 2**63, 2**63)
        with pytest.raises(LocalError, match="64 bits"):
            append(journal, 2**64, 1, 1)
    assert all_rows(tmp_path) == expected(7, 1, 3)


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "prices", 1)
    journal.close()
    for use in (journal.sync, journal.seal, journal.tick, lambda: append(journal, 7, 1, 1)):
        with pytest.raises(Closed):
            use()


def test_wrong_settings_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="positive"):
        JournalWriter(tmp_path, "prices", 1, roll_seconds=0)
    with pytest.raises(ConfigError, match="retention_bytes"):
        JournalWriter(tmp_path, "prices", 1, retention_bytes=0)


def test_one_recorder_has_one_writer(tmp_path: Path) -> None:
    with (
        JournalWriter(tmp_path, "prices", 1),
        pytest.raises(LocalError, match="already writes"),
    ):
        JournalWriter(tmp_path, "prices", 1)


def test_numbers_go_on_when_a_recorder_is_used_again(tmp_path: Path) -> None:
    for first in (1, 4):
        with JournalWriter(tmp_path, "prices", 1) as journal:
            append(journal, 7, first, first + 2)
    assert [segment.number for segment in Journal(tmp_path).segments] == [1, 2]
    assert all_rows(tmp_path) == expected(7, 1, 6)


def test_two_groups_share_a_directory(tmp_path: Path) -> None:
    for group in ("prices", "_odd = näme/.."):
        with JournalWriter(tmp_path, group, 1) as journal:
            append(journal, 7, 1, 2)
    assert sorted(all_rows(tmp_path)) == sorted(
        expected(7, 1, 2) + expected(7, 1, 2, "_odd = näme/..")
    )
    only = list(Journal(tmp_path).read("prices"))
    assert sum(batch.num_rows for batch in only) == 2
    # Spark's own reader hides names that begin so, and takes = for a partition column.
    assert not [p for p in tmp_path.glob("*.parquet") if p.name[0] in "_." or "=" in p.name]


def test_large_runs_are_cut_into_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RECORD_BYTES_MAX", 20)
    monkeypatch.setattr(writer, "MESSAGE_BYTES_MAX", 100)
    with JournalWriter(tmp_path, "prices", 1) as journal:
        append(journal, 7, 1, 50)
        with pytest.raises(TooLarge, match="101 bytes"):
            journal.append(1, 1, 7, 51, [b"", b"x" * 101], sent_at=0, delivered_at=0)
    assert all_rows(tmp_path) == expected(7, 1, 50)


def test_large_segments_have_several_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringcast.journal.format import table

    monkeypatch.setattr(table, "ROW_GROUP_ROWS_MAX", 10)
    with JournalWriter(tmp_path, "prices", 1) as journal:
        for first in range(1, 50, 7):
            append(journal, 7, first, first + 6)
    (path,) = tmp_path.glob("*.parquet")
    assert pq.ParquetFile(path).num_row_groups == 7
    assert all_rows(tmp_path) == expected(7, 1, 49)


def test_the_manifest_has_the_digest_ranges_and_the_holes(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as journal:
        append(journal, 7, 5, 9, view=3)
        append(journal, 8, 1, 1, view=3)
        journal.skip(3, 1, 7, 10, 11)
        append(journal, 7, 20, 20, view=4)
    (path,) = (tmp_path / "_manifest").iterdir()
    manifest = json.loads(path.read_text())
    assert manifest["views"] == [
        {"view": 3, "view_by": 1, "senders": {"7": [[5, 9, 5]], "8": [[1, 1, 1]]}},
        {"view": 4, "view_by": 1, "senders": {"7": [[20, 20, 1]]}},
    ]
    assert manifest["holes"] == {"7": "10-19"}
    assert manifest["rows"] == 7
    assert manifest["bytes"] == next(tmp_path.glob("*.parquet")).stat().st_size
    assert manifest["delivered_at"] == [6, 6]


def test_the_absence_of_a_recorder_is_a_hole(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as journal:
        append(journal, 7, 1, 50)
    with JournalWriter(tmp_path, "prices", 2) as journal:  # It restarted: a new member.
        append(journal, 7, 81, 90, view=3)
    assert Journal(tmp_path).holes() == {("prices", 7): ((51, 80),)}


def test_payloads_are_what_they_were() -> None:
    assert len({payload(7, seqno) for seqno in (1, 2, 4, 5)}) == 4


def test_only_its_user_can_read_a_journal(tmp_path: Path) -> None:
    former = os.umask(0o022)
    try:
        with JournalWriter(tmp_path / "journal", "prices", 1) as writer:
            append(writer, 7, 1, 1)
            writer.seal()
            append(writer, 7, 2, 2)
            paths = [tmp_path / "journal", *(tmp_path / "journal").rglob("*")]
            modes = {path: path.stat().st_mode & 0o077 for path in paths}
    finally:
        os.umask(former)
    assert len(modes) > 4
    assert not any(modes.values()), modes
