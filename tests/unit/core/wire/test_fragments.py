"""Cutting a message and putting it together again, piece by piece."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.batch import Payload
from ringcast.core.wire.fragments import Assembly, Cutting, read_header
from ringcast.core.wire.layout import FRAGMENT_HEADER_SIZE


def assemble(fragments: Sequence[Payload], first: int = 1) -> Payload | None:
    header = read_header(fragments[0])
    assert header is not None
    assembly = Assembly(header, first)
    for seqno, fragment in enumerate(fragments, first):
        header = read_header(fragment)
        assert header is not None
        assembly.add(header, seqno, fragment)
    return assembly.take()


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50), st.integers(1, 7))
def test_what_is_cut_and_put_together_is_the_message(message: bytes, piece: int, most: int) -> None:
    cutting = Cutting(memoryview(message), 9, FRAGMENT_HEADER_SIZE + piece)
    fragments: list[Payload] = []
    while cutting.next < cutting.count:
        new = cutting.cut(most)
        assert 0 < len(new) <= most
        fragments += new
    assert len(fragments) == cutting.count == -(-len(message) // piece)
    assert max(map(len, fragments)) <= FRAGMENT_HEADER_SIZE + piece
    assert cutting.done == len(message)
    assert assemble(fragments, 1 << 62) == message


def test_a_missing_piece_breaks_the_message_and_frees_what_there_is() -> None:
    fragments = Cutting(bytes(100), 1, FRAGMENT_HEADER_SIZE + 10).cut(10)
    headers = [read_header(fragment) for fragment in fragments]
    assert headers[0] is not None
    assert headers[2] is not None
    assembly = Assembly(headers[0], 1)
    assembly.add(headers[0], 1, fragments[0])
    assembly.add(headers[2], 3, fragments[2])
    assert assembly.broken == "a part of it was skipped"
    assert (assembly.nbytes, assembly.take()) == (0, None)


def test_pieces_that_promise_more_than_they_are_make_no_message() -> None:
    fragments = Cutting(bytes(100), 1, FRAGMENT_HEADER_SIZE + 10).cut(10)
    assert assemble([*fragments[:9], fragments[9][:-1]]) is None
    assert assemble([*fragments[:9], bytes(fragments[9]) + b"!"]) is None


def test_what_cannot_be_a_fragment_has_no_header() -> None:
    whole = bytes(Cutting(b"xy", 1, FRAGMENT_HEADER_SIZE + 1).cut(1)[0])
    assert read_header(whole) is not None
    assert read_header(whole[:FRAGMENT_HEADER_SIZE]) is None
    count_zero = whole[:12] + bytes(4) + whole[16:]
    index_past_count = whole[:8] + b"\0\0\0\x09" + whole[12:]
    more_pieces_than_bytes = whole[:12] + b"\xff\xff\xff\xff" + whole[16:]
    for spoilt in (count_zero, index_past_count, more_pieces_than_bytes):
        assert read_header(spoilt) is None


def test_a_message_that_is_begun_anew_starts_at_its_first_piece() -> None:
    cutting = Cutting(b"abcdef", 1, FRAGMENT_HEADER_SIZE + 2)
    cutting.cut(2)
    cutting.begin_anew(2, FRAGMENT_HEADER_SIZE + 3)
    again = cutting.cut(9)
    assert len(again) == 2
    assert assemble(again) == b"abcdef"
    header = read_header(again[0])
    assert header is not None
    assert header.message == 2
