"""The reader: recorders make one journal, and what is no journal is told in a sentence."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringcast.errors import ConfigError
from ringcast.journal import DataLost, Files, Journal, JournalError, JournalWriter
from ringcast.journal.format.table import SCHEMA
from ringcast.journal.read.rows import seqnos
from tests.unit.journal.support import all_rows, append, expected, rows


def test_two_recorders_are_read_as_one(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one, JournalWriter(tmp_path, "prices", 2) as other:
        append(one, 7, 1, 10)
        append(one, 8, 1, 4)
        append(other, 7, 6, 20)
        append(other, 9, 1, 1)
    assert all_rows(tmp_path) == sorted(expected(7, 1, 20) + expected(8, 1, 4) + expected(9, 1, 1))


def test_one_recorder_fills_the_others_skips_and_absences(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one:
        append(one, 7, 1, 3)
        one.skip(1, 1, 7, 4, 5)
        append(one, 7, 6, 7)
        append(one, 7, 11, 12, view=3)  # A partition kept it out of view 2.
    with JournalWriter(tmp_path, "prices", 2) as other:
        append(other, 7, 1, 10)
        append(other, 7, 11, 12, view=3)
    assert all_rows(tmp_path) == expected(7, 1, 12)
    assert Journal(tmp_path).holes() == {}


def test_what_neither_has_is_a_hole(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one, JournalWriter(tmp_path, "prices", 2) as other:
        append(one, 7, 1, 3)
        append(other, 7, 9, 9)
    assert Journal(tmp_path).holes() == {("prices", 7): ((4, 8),)}


def test_refresh_sees_what_was_sealed_since(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        journal = Journal(tmp_path)
        assert journal.segments == ()
        append(writer, 7, 1, 3)
        assert not journal.refresh()
        writer.seal()
        assert journal.refresh()
        assert not journal.refresh()
        assert sorted(rows(journal.read())) == expected(7, 1, 3)


def test_two_changes_within_one_tick_of_the_disks_clock_are_seen(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        tick = time.time_ns() + 10**12  # It has not passed, so more may come within it.
        os.utime(tmp_path / "_manifest", ns=(tick, tick))
        journal = Journal(tmp_path)
        append(writer, 7, 1, 3)
        writer.seal()
        os.utime(tmp_path / "_manifest", ns=(tick, tick))
        assert journal.refresh()


def test_an_idle_journal_costs_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 3)
    os.utime(tmp_path / "_manifest", (1, 1))  # As if its last change was long ago.
    journal = Journal(tmp_path)
    monkeypatch.setattr(os, "listdir", None)
    assert not journal.refresh()


def test_columns_and_senders_are_cut_from_a_segment(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        for first in range(1, 20, 5):
            append(writer, 7, first, first + 4)
            append(writer, 8, first, first + 4)
    (segment,) = Journal(tmp_path).segments
    assert seqnos(tmp_path, segment.name, 7, ((2, 3), (9, 11), (99, 100))) == [2, 3, 9, 10, 11]


def test_no_journal_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    (tmp_path / "foreign").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "foreign" / "x.parquet")
    for name, words in {
        "missing": "no such directory",
        "empty": "is empty: start `ringcast record GROUP",
        "file": "is a file, not the directory",
        "other": "is not a journal: start",
        "foreign": 'that no recorder wrote .*format."parquet".',
    }.items():
        with pytest.raises(ConfigError, match=words) as caught:
            Journal(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"format": 1}', '{"format": 1, "name": 3}', '{"format": 1, "views": "x"}'],
)
def test_a_damaged_manifest_is_told(tmp_path: Path, content: str) -> None:
    JournalWriter(tmp_path, "prices", 1).close()
    (tmp_path / "_manifest" / "x.json").write_text(content)
    with pytest.raises(JournalError, match=r"x\.json is damaged or no manifest"):
        Journal(tmp_path)


def test_a_directory_in_a_manifests_place_is_told(tmp_path: Path) -> None:
    JournalWriter(tmp_path, "prices", 1).close()
    (tmp_path / "_manifest" / "x.json").mkdir()
    with pytest.raises(JournalError, match=r"x\.json is not a regular file"):
        Journal(tmp_path)


def test_a_damaged_note_of_removals_is_told(tmp_path: Path) -> None:
    JournalWriter(tmp_path, "prices", 1).close()
    (tmp_path / "_manifest" / "removed-x.json").write_text('{"format": 1, "group": 5}')
    with pytest.raises(JournalError, match="is damaged or no manifest"):
        Journal(tmp_path)


def test_a_later_format_is_told(tmp_path: Path) -> None:
    JournalWriter(tmp_path, "prices", 1).close()
    (tmp_path / "_manifest" / "x.json").write_text('{"format": 3}')
    with pytest.raises(JournalError, match="has the format 3"):
        Journal(tmp_path)


def test_a_spoilt_segment_is_told(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 3)
    journal = Journal(tmp_path)
    (path,) = tmp_path.glob("*.parquet")
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(JournalError, match="is not a segment of a journal"):
        list(journal.read())
    path.write_bytes(b"no Parquet")
    with pytest.raises(JournalError, match="is damaged"):
        list(journal.read())
    Files().unlink(path)
    with pytest.raises(DataLost, match="by retention or by hand"):
        list(journal.read())


def test_a_segment_that_is_damaged_anywhere_is_an_error_and_never_another_message(
    tmp_path: Path,
) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 50)
    (segment,) = tmp_path.glob("*.parquet")
    sound, rows = segment.read_bytes(), all_rows(tmp_path)
    for place in range(4, len(sound) - 8, 7):
        segment.write_bytes(sound[:place] + bytes((sound[place] ^ 0x10,)) + sound[place + 1 :])
        with suppress(JournalError):
            assert all_rows(tmp_path) == rows, f"byte {place}"


@pytest.mark.parametrize(("size", "rows"), [(900_000, 60_000), (2_000, 1_000_000)])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, size: int, rows: int
) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 3)
    (segment,) = tmp_path.glob("*.parquet")
    bomb = segment_of_one_payload(bytes(size), rows)
    segment.write_bytes(bomb)
    assert len(bomb) < 250_000
    with pytest.raises(JournalError, match=r"unpacks to [0-9,]{13,} bytes"):
        list(Journal(tmp_path).read())


def segment_of_one_payload(payload: bytes, rows: int) -> bytes:
    """A segment in which all rows are the same, stored once with their count."""
    columns = {
        field.name: pa.DictionaryArray.from_arrays(
            pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([payload], field.type)
        )
        if field.name == "payload"
        else pa.nulls(rows, field.type)
        for field in SCHEMA
    }
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table, row_group_size=rows)
    return sink.getvalue().to_pybytes()
