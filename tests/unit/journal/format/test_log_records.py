"""Records come back as they were written, up to the first that is not whole."""

from io import BytesIO
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.errors import LocalError
from ringcast.journal.format.coverage import Reached
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.log_records import (
    FRAME,
    Header,
    LogReader,
    RunRecord,
    SkipRecord,
    header_record,
    read_log,
    run_record,
    skip_record,
)

HEADER = Header(
    group="prices", recorder=-5, number=3, opened_at=17, durable=True, reached=Reached(2, 1, {7: 9})
)
LONG = st.integers(-(2**63), 2**63 - 1)


def opened(data: bytes) -> LogReader | None:
    return read_log(BytesIO(data), len(data))


@given(LONG, LONG, LONG, LONG, LONG, LONG, st.lists(st.binary(max_size=40), min_size=1))
def test_a_run_comes_back(
    view: int, by: int, sender: int, first: int, sent: int, delivered: int, some: list[bytes]
) -> None:
    record = run_record(view, by, sender, first, some, sent_at=sent, delivered_at=delivered)
    log = opened(header_record(HEADER) + record)
    assert log is not None
    assert log.header == HEADER
    lengths = tuple(map(len, some))
    run = RunRecord(view, by, sender, first, sent, delivered, lengths, memoryview(b"".join(some)))
    assert list(log.records) == [run]


def test_every_cut_gives_the_whole_records_before_it() -> None:
    records = [
        header_record(HEADER),
        run_record(1, 1, 7, 1, [b"abc", b""], sent_at=1, delivered_at=2),
        skip_record(1, 1, 7, 3, 4),
        run_record(1, 1, 7, 5, [b"x"], sent_at=1, delivered_at=2),
    ]
    whole = b"".join(records)
    ends = [sum(map(len, records[: n + 1])) for n in range(len(records))]
    for cut in range(len(whole) + 1):
        file = BytesIO(whole[:cut])
        log = read_log(file, cut)
        intact = sum(end <= cut for end in ends)
        if intact == 0:
            assert log is None
            continue
        assert log is not None
        assert len(list(log.records)) == intact - 1
        assert file.tell() == ends[intact - 1]


def test_every_flipped_bit_ends_the_log() -> None:
    head = header_record(HEADER)
    run = run_record(1, 1, 7, 1, [b"abc"], sent_at=1, delivered_at=2)
    for bit in range(8 * len(run)):
        spoilt = bytearray(run)
        spoilt[bit // 8] ^= 1 << bit % 8
        log = opened(head + bytes(spoilt) + run)
        assert log is not None
        assert list(log.records) == []


def test_a_skip_comes_back() -> None:
    log = opened(header_record(HEADER) + skip_record(1, 2, 3, 4, 5))
    assert log is not None
    assert list(log.records) == [SkipRecord(1, 2, 3, 4, 5)]


def test_memoryviews_are_taken_as_they_are() -> None:
    record = run_record(1, 1, 7, 1, [memoryview(b"abc")[1:]], sent_at=1, delivered_at=2)
    log = opened(header_record(HEADER) + record)
    assert log is not None
    (run,) = log.records
    assert isinstance(run, RunRecord)
    assert bytes(run.payloads) == b"bc"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(LocalError, match="64 bits"):
        run_record(2**63, 1, 7, 1, [b""], sent_at=1, delivered_at=2)
    wide = memoryview(b"12345678").cast("I")
    with pytest.raises(LocalError, match="cast it"):
        run_record(1, 1, 7, 1, [wide], sent_at=1, delivered_at=2)


def test_a_log_whose_recorder_did_not_get_to_the_end_of_its_header_is_none() -> None:
    head = header_record(HEADER)
    for cut in range(len(head)):
        assert opened(head[:cut]) is None
    for size in (1, 100, 3_000_000):
        assert opened(bytes(size)) is None, "the disk forgot what was in it"


@pytest.mark.parametrize(
    "log", [skip_record(1, 2, 3, 4, 5), b"my own notes, all day", bytes(50) + b"x"]
)
def test_a_log_that_begins_with_something_else_is_named(log: bytes) -> None:
    with pytest.raises(JournalError, match="not a recorder's log"):
        opened(log)


def test_a_header_with_a_flipped_bit_is_no_header_that_was_never_written() -> None:
    head = header_record(HEADER)
    run = run_record(1, 1, 7, 1, [b"abc"], sent_at=1, delivered_at=2)
    for bit in range(8 * 4, 8 * len(head)):  # In its length it may look like one cut off.
        spoilt = bytearray(head)
        spoilt[bit // 8] ^= 1 << bit % 8
        with pytest.raises(JournalError, match="damaged"):
            opened(bytes(spoilt) + run)


def test_a_log_of_another_version_is_left_to_that_version() -> None:
    body = b'H{"format": 3}'
    log = FRAME.pack(len(body), crc32(body)) + body
    with pytest.raises(JournalError, match="format 3"):
        read_log(BytesIO(log), len(log))
