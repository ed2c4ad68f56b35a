"""Names in a journal: rows carry them, views tell who was there, and old journals still read."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast.journal import Journal, JournalWriter, recover
from ringcast.journal.format.layout import Layout, stem_of
from ringcast.journal.format.members import (
    MEMBERS_MAX,
    SeenMember,
    SeenView,
    bounded,
    from_json,
    merged,
    to_json,
)
from ringcast.journal.format.table import FIRST_SCHEMA
from ringcast.journal.write.retention import remove
from tests.unit.journal.support import FaultyFiles, all_rows, append, expected

ANN, BOB = (7, "ann", "10.0.0.7:7800"), (8, "bob", "10.0.0.8:7800")


def names(directory: Path) -> list[tuple[int, int, str | None]]:
    """Sender, seqno and name of each row."""
    columns = ("sender", "seqno", "sender_name")
    batches = Journal(directory).read()
    rows = [tuple(row[c] for c in columns) for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row[:2])


def test_rows_carry_the_name_of_their_sender(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.view(1, 1, [ANN], at=10)
        append(writer, 7, 1, 1)
        writer.view(2, 1, [ANN, BOB], at=20)
        append(writer, 7, 2, 2, view=2)
        writer.seal()
        append(writer, 8, 1, 1, view=2)  # The names are carried to the next segment.
        append(writer, 9, 1, 1, view=2)
    assert names(tmp_path) == [(7, 1, "ann"), (7, 2, "ann"), (8, 1, "bob"), (9, 1, None)]


def test_a_dead_recorders_names_are_recovered(tmp_path: Path) -> None:
    dead = FaultyFiles()
    writer = JournalWriter(tmp_path, "prices", 1, files=dead)
    writer.view(1, 1, [ANN], at=10)
    append(writer, 7, 1, 1)
    writer.seal()
    append(writer, 7, 2, 2)
    writer.sync()
    dead.die()
    recover(tmp_path)
    assert names(tmp_path) == [(7, 1, "ann"), (7, 2, "ann")]
    assert Journal(tmp_path).members()["prices"].keys() == {7}


def test_the_members_have_their_first_and_last_view(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.view(1, 1, [ANN], at=10)
        append(writer, 7, 1, 1)
        writer.seal()
        writer.view(2, 1, [ANN, BOB], at=20)
        append(writer, 7, 2, 2, view=2)
        writer.seal()
        writer.view(3, 1, [BOB], at=30)
        append(writer, 8, 1, 1, view=3)
        writer.seal()
        first, *_ = Journal(tmp_path).segments
        # What retention takes away leaves its members behind.
        remove(FaultyFiles(), Layout(tmp_path), stem_of("prices", 1), [first])
    assert Journal(tmp_path).members() == {
        "prices": {
            7: SeenMember(*ANN, SeenView(1, 1, 10), SeenView(2, 1, 20)),
            8: SeenMember(*BOB, SeenView(2, 1, 20), SeenView(3, 1, 30)),
        }
    }


def test_a_journal_of_the_first_format_is_read(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 9)
    make_first_format(tmp_path)
    with JournalWriter(tmp_path, "prices", 2) as writer:
        writer.view(2, 2, [ANN], at=20)
        append(writer, 7, 10, 11, view=2)
    assert all_rows(tmp_path) == expected(7, 1, 11)
    assert [name for *_, name in names(tmp_path)] == [None] * 9 + ["ann"] * 2
    assert Journal(tmp_path).segments[0].sent_at is None


def make_first_format(directory: Path) -> None:
    """Turn a journal into one that an earlier version has written."""
    for path in (directory / "_manifest").glob("*.json"):
        content = json.loads(path.read_bytes())
        for later in ("sent_at", "members"):
            content.pop(later, None)
        path.write_text(json.dumps({**content, "format": 1}))
    for path in directory.glob("*.parquet"):
        table = pq.read_table(path).select(FIRST_SCHEMA.names)
        pq.write_table(table, path, write_page_checksum=True)


def test_tables_merge_and_stay_small() -> None:
    one = {7: SeenMember(*ANN, SeenView(1, 1, 10), SeenView(3, 1, 30))}
    other = {7: SeenMember(7, "anna", "there", SeenView(2, 1, 20), SeenView(4, 1, 40))}
    (both,) = merged([one, other]).values()
    assert both == SeenMember(7, "anna", "there", SeenView(1, 1, 10), SeenView(4, 1, 40))
    views = [SeenView(n, 1, n) for n in range(MEMBERS_MAX + 5)]
    many = {n: SeenMember(n, "", "", view, view) for n, view in enumerate(views)}
    assert sorted(bounded(many)) == list(range(5, MEMBERS_MAX + 5))
    assert from_json(to_json(one)) == one


@pytest.mark.parametrize("content", [None, [[1]], [[1, 2, "", [1, 1, 1], [1, 1, 1]]], [7]])
def test_what_is_no_table_is_refused(content: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(content)
