"""Pieces: whatever the chunks, the bytes are the same, and none but the last is short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.services.state_chunks import PIECE_MIN, Cutter, piece_size

CHUNK = st.one_of(st.binary(max_size=100), st.binary(max_size=100).map(bytearray))


@given(st.lists(CHUNK, max_size=20), st.integers(1, 40))
def test_pieces_are_the_chunks(chunks: list[bytes | bytearray], size: int) -> None:
    cutter = Cutter(size)
    pieces = [bytes(piece) for chunk in chunks for piece in cutter.cut(chunk)]
    assert all(len(piece) == size for piece in pieces)
    rest = cutter.rest()
    assert len(rest) < size
    assert b"".join(pieces) + rest == b"".join(chunks)


def test_large_chunks_are_not_copied() -> None:
    chunk = bytes(100_000)
    (piece,) = Cutter(60_000).cut(chunk)
    assert isinstance(piece, memoryview)
    assert piece.obj is chunk


def test_memory_of_other_items_is_bytes_too() -> None:
    cutter = Cutter(4)
    pieces = [bytes(piece) for piece in cutter.cut(memoryview(b"abcdefgh").cast("H"))]
    assert pieces == [b"abcd", b"efgh"]


def test_text_is_no_chunk() -> None:
    with pytest.raises(TypeError, match="encode it first"):
        list(Cutter(4).cut("text"))  # type: ignore[arg-type]


def test_pieces_fill_a_datagram_if_it_is_large() -> None:
    assert 59_000 < piece_size(256_000_000, 60_000) < 60_000
    assert piece_size(256_000_000, 1_400) == PIECE_MIN
    assert piece_size(1_300, 1_400) < 1_300
