"""Service messages: what was written is read again; everything else is Malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.errors import Malformed
from ringcast.services.messages import (
    PIECE_HEAD,
    REASON_MAX,
    Answer,
    Call,
    ServiceMessage,
    StateBegin,
    StateCancel,
    StateEnd,
    StateMark,
    StatePiece,
    StateRefusal,
    StateRequest,
    read,
    read_reason,
    write,
    write_reason,
)

NUMBER = st.integers(0, 2**62)
ADDRESS = NUMBER.map(Address)
MESSAGES: st.SearchStrategy[ServiceMessage] = st.one_of(
    *[st.builds(kind, NUMBER) for kind in (Call, StateRequest, StateCancel, StatePiece, StateEnd)],
    *[st.builds(kind, NUMBER, NUMBER) for kind in (Answer, StateRefusal)],
    st.builds(
        StateBegin,
        NUMBER,
        st.builds(ViewId, NUMBER, ADDRESS),
        st.lists(st.builds(StateMark, ADDRESS, NUMBER), max_size=5).map(tuple),
    ),
)


@given(MESSAGES, st.binary(max_size=10_000))
def test_a_letter_is_read_as_it_was_written(message: ServiceMessage, body: bytes) -> None:
    found, rest = read(write(message, body))
    assert found == message
    assert bytes(rest) == body


@given(st.binary(max_size=200))
def test_bytes_are_a_letter_or_malformed(payload: bytes) -> None:
    try:
        message, body = read(payload)
    except Malformed:
        return
    assert write(message, body) == payload


@given(MESSAGES, st.data())
def test_a_letter_that_is_cut_off_is_malformed(
    message: ServiceMessage, data: st.DataObject
) -> None:
    whole = write(message)
    with pytest.raises(Malformed):
        read(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_a_large_body_is_not_copied() -> None:
    payload = write(StatePiece(1), bytes(10_000))
    body = read(payload)[1]
    assert isinstance(body, memoryview)
    assert body.obj is payload


def test_the_head_of_a_piece() -> None:
    assert len(write(StatePiece(2**64 - 1))) == PIECE_HEAD


@given(st.text(alphabet=st.characters(), max_size=50) | st.just("\ud800" * REASON_MAX))
def test_any_reason_can_be_sent(reason: str) -> None:
    assert len(read_reason(write_reason(reason))) <= REASON_MAX + 1
    if reason.isprintable():
        assert read_reason(write_reason(reason)) == reason


@given(st.binary(max_size=100))
def test_a_reason_that_a_member_sent_steers_no_terminal(body: bytes) -> None:
    assert read_reason(body).replace("\t", "").isprintable()


def test_a_reason_of_megabytes_is_cut() -> None:
    assert len(read_reason(memoryview("é".encode() * 10**6))) == REASON_MAX + 1
