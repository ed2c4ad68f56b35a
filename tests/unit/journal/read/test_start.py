"""Where a new query begins, how large its batches are, and how far it is behind."""

from pathlib import Path

import pytest

from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.read.rows import delivered_before, read_slice, seqnos
from ringcast.journal.read.start import StartingPoint, parse_start
from ringcast.journal.read.stream import JournalStream, Lag, Offset
from tests.unit.journal.support import rows


def journal(directory: Path) -> JournalStream:
    """Sender 7 in two segments of ten messages, delivered at 1,000 to 1,019 microseconds."""
    with JournalWriter(directory, "prices", 1) as writer:
        for seqno in range(1, 21):
            writer.append(1, 1, 7, seqno, [b"x"], sent_at=1, delivered_at=999 + seqno)
            if seqno % 10 == 0:
                writer.seal()
    return JournalStream(Journal(directory), lambda *of: seqnos(directory, *of))


def begin(stream: JournalStream, directory: Path, text: str) -> Offset:
    return stream.initial(parse_start(text), lambda part, at: delivered_before(directory, part, at))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("earliest", {}),
        ("Latest", {"prices": {"7": 20}}),
        ("1970-01-01T00:00:00.001005", {"prices": {"7": 5}}),
        ("1970-01-01T01:00:00.001010+01:00", {"prices": {"7": 10}}),
        ("1970-01-01", {}),
        ("2026-01-01", {"prices": {"7": 20}}),
        ('{"prices": {"7": 12}}', {"prices": {"7": 12}}),
    ],
)
def test_a_query_begins_where_it_is_told(tmp_path: Path, text: str, read: Offset) -> None:
    stream = journal(tmp_path)
    start = begin(stream, tmp_path, text)
    assert start == read
    left = stream.plan(start, stream.latest(start, None))
    numbers = [row[2] for part in left for row in rows(read_slice(tmp_path, part))]
    assert numbers == [*range(int(read.get("prices", {}).get("7", 0)) + 1, 21)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "{", "12", "[]", '{"a": ' * 100_000),
        *('{"prices": 7}', '{"prices": {"ann": 1}}', '{"prices": {"7": null}}'),
        *('{"prices": {"7": true}}', '{"prices": {"7": -1}}', '{"prices": {"7": "9-1"}}'),
        *('{"prices": {"7": ""}}', '{"prices": {"7": "5"}}', '{"prices": {"7": 1.5}}'),
    ],
)
def test_a_wrong_start_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="startingOffsets"):
        parse_start(text)


def test_bytes_bound_a_batch(tmp_path: Path) -> None:
    stream = journal(tmp_path)
    half = sum(segment.bytes for segment in Journal(tmp_path).segments) // 2
    assert stream.latest({}, None, half) == {"prices": {"7": 10}}
    assert stream.latest({}, 3, half) == {"prices": {"7": 3}}
    assert stream.latest({}, None, 1) == {"prices": {"7": 1}}


def test_how_far_a_query_is_behind(tmp_path: Path) -> None:
    stream = journal(tmp_path)
    assert stream.lag({}) == Lag(20, 19e-6)
    assert stream.lag({"prices": {"7": 12}}) == Lag(8, 9e-6)
    assert stream.lag(stream.initial(StartingPoint("latest"))) == Lag(0, 0.0)
