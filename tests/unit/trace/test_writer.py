"""The writer of traces: what goes in comes out, and files are whole or not there at all."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast.errors import Closed, ConfigError
from ringcast.trace.check import check
from ringcast.trace.schema import COLUMNS, CONTROL_KINDS, Row, signed, unsigned
from ringcast.trace.table import SCHEMA
from ringcast.trace.writer import TraceSpec, TraceWriter, digest

ME, OTHER = 2**64 - 5, 2**63 + 7


def read(path: Path) -> list[Row]:
    """All rows that are visible, with the addresses as they were."""
    rows = []
    for file in sorted(path.glob("*.parquet")):
        for line in pq.read_table(file).to_pylist():
            row = Row(**line)
            members = None if row.members is None else tuple(map(unsigned, row.members))
            row = row._replace(member=unsigned(row.member), view_by=unsigned(row.view_by))
            rows.append(row._replace(members=members))
    return rows


def write_story(writer: TraceWriter) -> None:
    """One row of each kind."""
    writer.append_view(3, OTHER, [OTHER, ME], ["other", "me"], 100)
    writer.append_sent(1, 5, 500, 110, digest([b"a", b"b"]))
    writer.append_delivered(ME, 1, 5, 500, 110, 120)
    writer.append_delivered(OTHER, 7, 2, 20, 111, 121, 99)
    writer.append_skipped(OTHER, 9, 1, 122)
    writer.append_delivered(OTHER, 10, 1, 10, 112, 123, 98)
    writer.append_acked(OTHER, 5, 130)
    writer.append_purged(1, 5, 5, 6, 131)
    writer.append_window(ME, 5, 5, 6, 132)
    writer.append_requested(OTHER, 9, 1, OTHER, 133)
    writer.append_resent(ME, 2, 1, 100, None, 134)
    writer.append_blocked(OTHER, 100, 135)
    writer.append_closed(140)


def test_what_is_noted_is_what_is_read(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, ME) as writer:
        write_story(writer)
    rows = {(row.kind, row.seqno): row for row in read(tmp_path)}
    assert len(rows) == 13
    assert {(row.member, row.view, row.view_by) for row in rows.values()} == {(ME, 3, OTHER)}
    assert rows["view", None].members == (OTHER, ME)
    assert tuple(rows["view", None].names or ()) == ("other", "me")
    assert rows["sent", 1][3:12] == (
        signed(ME),
        "sent",
        1,
        5,
        None,
        500,
        digest([b"b", b"a"]),
        110,
        110,
    )
    assert rows["delivered", 1][3:12] == (signed(ME), "delivered", 1, 5, 0, 500, None, 110, 120)
    assert rows["skipped", 9].digest is None
    assert rows["purged", 1][12:16] == (None, 5, 5, 6)
    assert rows["blocked", None].sent_at == 100
    assert rows["blocked", None].peer == signed(OTHER)


def test_positions_are_counted_by_sender_and_start_anew_in_a_view(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, ME) as writer:
        write_story(writer)
        writer.append_view(4, ME, [ME], ["me"], 150)
        writer.append_delivered(OTHER, 11, 1, 10, 151, 152)
    positions = {
        row.seqno: row.pos
        for row in read(tmp_path)
        if row.sender == signed(OTHER) and row.pos is not None
    }
    assert positions == {7: 0, 9: 2, 10: 3, 11: 0}


def test_a_trace_that_was_written_passes_the_checks(tmp_path: Path) -> None:
    payloads = [bytes([number]) for number in range(40)]
    for member, step in ((ME, 10), (OTHER, 4)):
        with TraceWriter(tmp_path, member) as writer:
            writer.append_view(1, ME, [ME, OTHER], ["me", "other"], 0)
            if member == ME:
                writer.append_sent(1, 40, 40, 10, digest(payloads))
            for start in range(0, 40, step):
                run = payloads[start : start + step]
                writer.append_delivered(ME, 1 + start, step, step, 10, 20 + start, digest(run))
            writer.append_closed(90)
    rows = [row if row.sender is None else row._replace(sender=ME) for row in read(tmp_path)]
    assert check(rows) == []
    wrong = [row._replace(digest=0) if row.seqno == 5 else row for row in rows]
    assert [violation.cause for violation in check(wrong)] == ["contents"]


def test_the_file_has_the_columns_that_are_promised(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, ME) as writer:
        write_story(writer)
    (file,) = tmp_path.glob("*.parquet")
    assert pq.read_schema(file).names == [name for name, _ in COLUMNS]
    assert pq.read_schema(file).equals(SCHEMA)


def test_rows_about_messages_have_row_groups_of_their_own(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, ME, TraceSpec(group_rows=2)) as writer:
        write_story(writer)
    (path,) = tmp_path.glob("*.parquet")
    file = pq.ParquetFile(path)
    for number in range(file.num_row_groups):
        kinds = set(file.read_row_group(number, ["kind"])["kind"].to_pylist())
        assert kinds <= set(CONTROL_KINDS) or not kinds & set(CONTROL_KINDS)


def test_nothing_is_visible_before_the_file_is_whole(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, ME, TraceSpec(group_rows=2))
    write_story(writer)
    writer.flush()
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    writer.rotate()
    assert len(read(tmp_path)) == 13
    writer.close()


def test_files_rotate_by_age_and_by_size(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, ME, TraceSpec(rotate_seconds=10)) as writer:
        for second in range(0, 35, 5):
            writer.append_sent(second, 1, 10, second * 1_000_000)
            writer.tick(second * 1_000_000)
        assert len(list(tmp_path.glob("*.parquet"))) == 3
    small = TraceSpec(group_rows=4, rotate_rows=8)
    with TraceWriter(tmp_path / "small", ME, small) as writer:
        for number in range(20):
            writer.append_sent(number, 1, 10, number)
    assert len(list((tmp_path / "small").glob("*.parquet"))) == 3
    assert len(read(tmp_path / "small")) == 20


def test_a_second_trace_of_a_member_takes_other_names(tmp_path: Path) -> None:
    for _ in range(2):
        with TraceWriter(tmp_path, ME) as writer:
            write_story(writer)
    assert len(read(tmp_path)) == 26


def test_a_closed_trace_takes_no_more(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, ME)
    writer.close()
    writer.close()
    with pytest.raises(Closed, match="closed"):
        writer.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_closes_the_trace_and_leaves_no_file(tmp_path: Path) -> None:
    place = tmp_path / "trace"
    writer = TraceWriter(place, ME)
    writer.append_sent(1, 1, 10, 1)
    place.rmdir()
    with pytest.raises(OSError, match="trace"):
        writer.flush()
    with pytest.raises(Closed):
        writer.flush()
    assert not place.exists()


def test_a_place_that_cannot_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file: name a directory"):
        TraceWriter(tmp_path / "file", ME)
    with pytest.raises(ConfigError, match="No trace can be written"):
        TraceWriter(tmp_path / "file" / "below", ME)
    with pytest.raises(ConfigError, match="rotate_seconds"):
        TraceSpec(rotate_seconds=0)
