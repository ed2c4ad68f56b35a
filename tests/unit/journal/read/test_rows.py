"""Reading rows: those that a plan takes, and no file ends the process that reads it."""

import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from ringcast.journal import Journal, JournalError, JournalWriter
from ringcast.journal.format.layout import Layout
from ringcast.journal.format.table import SCHEMA
from ringcast.journal.read.prune import Conditions
from ringcast.journal.read.rows import read_rows


def test_columns_and_spans_are_those_that_are_asked_for(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.append(1, 1, 7, 1, [b"x"] * 20, sent_at=1_000, delivered_at=2_000)
    (segment,) = Journal(tmp_path).segments
    batches = list(read_rows(tmp_path, segment.name, {7: ((3, 4), (20, 25))}, ["seqno"]))
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"seqno": seqno} for seqno in (3, 4, 20)
    ]
    assert sum(b.num_rows for b in read_rows(tmp_path, segment.name, None, ["payload"])) == 20


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_damaged_and_not_waited_for(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.append(1, 1, 7, 1, [b"x"], sent_at=1_000, delivered_at=2_000)
    (segment,) = Journal(tmp_path).segments
    place = Layout(tmp_path).segment(segment.name)
    place.unlink()
    put(place)
    with pytest.raises(JournalError, match=r"\.parquet is damaged: restore it, or remove its"):
        list(read_rows(tmp_path, segment.name, None, SCHEMA.names))


def test_times_leave_out_rows_whether_or_not_they_are_asked_for(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        for seqno in range(1, 6):
            times = {"sent_at": seqno * 1_000, "delivered_at": seqno * 1_000 + 500}
            writer.append(1, 1, 7, seqno, [b"x"], **times)
    (segment,) = Journal(tmp_path).segments
    late = Conditions().within("sent_at", (2_000, 9_000)).within("delivered_at", (0, 4_500))
    for columns in (["seqno"], ["seqno", "sent_at"]):
        for senders in (None, {7: ((3, 9),)}):
            batches = read_rows(tmp_path, segment.name, senders, columns, late)
            rows = [row for batch in batches for row in batch.to_pylist()]
            assert [row["seqno"] for row in rows] == ([2, 3, 4] if senders is None else [3, 4])
            assert [*rows[0]] == columns


def read_with_every_byte_of_the_footer_changed(root: Path, name: str) -> None:
    path = Layout(root).segment(name)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for place in range(len(whole) - 8 - footer, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([0xFF * (place % 2)]) + whole[place + 1 :])
        with suppress(JournalError):
            list(read_rows(root, name, None, SCHEMA.names))


@pytest.mark.slow
def test_no_footer_ends_the_process_or_is_refused_without_a_sentence(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.append(1, 1, 7, 1, [b"x"] * 20, sent_at=1_000, delivered_at=2_000)
    (segment,) = Journal(tmp_path).segments
    reader = get_context("spawn").Process(
        target=read_with_every_byte_of_the_footer_changed, args=(tmp_path, segment.name)
    )
    reader.start()
    reader.join()
    assert reader.exitcode == 0
