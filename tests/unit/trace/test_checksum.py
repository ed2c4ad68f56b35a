"""A damaged trace is never read as other data: every flipped bit is noticed, and the file named."""

import random
from pathlib import Path

import pytest

from ringcast.errors import ConfigError
from ringcast.trace.checksum import SummedFile, is_damaged, trace_name
from ringcast.trace.table import read_file, read_rows
from ringcast.trace.writer import TraceWriter


def write_trace(place: Path) -> Path:
    """A small trace in one file."""
    with TraceWriter(place, 7) as writer:
        writer.append_view(1, 7, [7], ["anna"], 100)
        for first in range(1, 400, 4):
            writer.append_sent(first, 4, 400, 110 + first, first * 31)
            writer.append_delivered(7, first, 4, 400, 110 + first, 120 + first, first * 31)
        writer.append_closed(10_000)
    (file,) = place.glob("*.parquet")
    return file


def test_no_flipped_bit_reads_as_other_data(tmp_path: Path) -> None:
    file = write_trace(tmp_path)
    content = file.read_bytes()
    assert not is_damaged(file)
    assert len(list(read_file(file))) == 202
    bits = random.Random(1).sample(range(8 * len(content)), 1_200)
    for bit in bits:
        spoilt = bytearray(content)
        spoilt[bit // 8] ^= 1 << bit % 8
        file.write_bytes(spoilt)
        with pytest.raises(ConfigError, match=f"{file.name} is damaged"):
            next(read_file(file))


def test_a_file_that_was_cut_short_is_damaged(tmp_path: Path) -> None:
    file = write_trace(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ConfigError, match="is damaged: restore it, or move it away"):
        read_rows(tmp_path)


def test_names_without_a_checksum_say_nothing(tmp_path: Path) -> None:
    file = write_trace(tmp_path).rename(tmp_path / "a.parquet")
    assert not is_damaged(file)


def test_a_file_sums_up_what_is_written(tmp_path: Path) -> None:
    with SummedFile(tmp_path / "draft") as file:
        file.write(b"some ")
        file.write(memoryview(b"bytes"))
    whole = (tmp_path / "draft").rename(tmp_path / trace_name(1, 2, file.checksum))
    assert whole.read_bytes() == b"some bytes"
    assert not is_damaged(whole)
