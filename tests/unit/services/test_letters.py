"""Letters: what was written is read again, and what is no letter is Malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.address import Address
from ringcast.core.view import ViewId
from ringcast.errors import Malformed
from ringcast.services.letters import (
    PIECE_HEAD,
    Answer,
    Ask,
    Begin,
    Call,
    Cancel,
    End,
    Letter,
    Mark,
    Piece,
    Refuse,
    read,
    write,
)

NUMBER = st.integers(0, 2**64 - 1)
ADDRESS = NUMBER.map(Address)
LETTERS: st.SearchStrategy[Letter] = st.one_of(
    *[st.builds(kind, NUMBER) for kind in (Call, Ask, Cancel, Piece, End)],
    *[st.builds(kind, NUMBER, NUMBER) for kind in (Answer, Refuse)],
    st.builds(
        Begin,
        NUMBER,
        st.builds(ViewId, NUMBER, ADDRESS),
        st.lists(st.builds(Mark, ADDRESS, NUMBER), max_size=5).map(tuple),
    ),
)


@given(LETTERS, st.binary(max_size=10_000))
def test_a_letter_is_read_as_it_was_written(letter: Letter, body: bytes) -> None:
    found, rest = read(write(letter, body))
    assert found == letter
    assert bytes(rest) == body


@given(st.binary(max_size=200))
def test_bytes_are_a_letter_or_malformed(payload: bytes) -> None:
    try:
        letter, body = read(payload)
    except Malformed:
        return
    assert write(letter, body) == payload


@given(LETTERS, st.data())
def test_a_letter_that_is_cut_off_is_malformed(letter: Letter, data: st.DataObject) -> None:
    whole = write(letter)
    with pytest.raises(Malformed):
        read(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_a_large_body_is_not_copied() -> None:
    payload = write(Piece(1), bytes(10_000))
    body = read(payload)[1]
    assert isinstance(body, memoryview)
    assert body.obj is payload


def test_the_head_of_a_piece() -> None:
    assert len(write(Piece(2**64 - 1))) == PIECE_HEAD
