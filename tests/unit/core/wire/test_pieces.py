"""Frames larger than a datagram are joined from their pieces, and never more than is bounded."""

from __future__ import annotations

import random

import pytest

from ringcast.core.model.address import Address
from ringcast.core.wire.codec import encode_frame
from ringcast.core.wire.frames import FramePiece
from ringcast.core.wire.pieces import (
    FRAME_MAX,
    FRAMES_MAX,
    KEPT_MAX,
    PIECE_SIZE,
    PieceJoiner,
    split,
)
from ringcast.errors import Malformed

SENDER, OTHER = Address(1), Address(2)
FRAME = random.Random(1).randbytes(10_000)


def test_pieces_have_the_size_that_was_asked_for() -> None:
    sizes = [len(encode_frame(piece)) for piece in split(FRAME, 512)]
    assert set(sizes[:-1]) == {512}
    assert PIECE_SIZE < sizes[-1] <= 512


def test_pieces_in_any_order_and_twice_are_one_frame() -> None:
    pieces = list(split(FRAME, 512))[1:] * 2 + list(split(FRAME, 512))[:1]
    random.Random(5).shuffle(pieces)
    joiner = PieceJoiner()
    wholes = [whole for piece in pieces if (whole := joiner.add(SENDER, piece)) is not None]
    assert wholes == [FRAME]


def test_a_frame_that_is_sent_again_fills_the_gaps() -> None:
    joiner = PieceJoiner()
    for index, piece in enumerate(split(FRAME, 512)):
        if index % 3:
            assert joiner.add(SENDER, piece) is None
    again = [joiner.add(SENDER, piece) for i, piece in enumerate(split(FRAME, 512)) if not i % 3]
    assert again[-1] == FRAME
    assert joiner.nbytes == 0


def test_pieces_of_two_senders_are_not_mixed() -> None:
    joiner = PieceJoiner()
    first, *rest = split(FRAME, 512)
    joiner.add(OTHER, first)
    assert [joiner.add(SENDER, piece) for piece in rest] == [None] * len(rest)


@pytest.mark.parametrize(
    "piece",
    [
        FramePiece(7, 2, 2, b"x"),
        FramePiece(7, 0, 0, b"x"),
        FramePiece(7, 0, FRAME_MAX + 1, b"x"),
        FramePiece(7, 0, 2, b""),
        FramePiece(7, 0, 1, b"not what the digest says"),
        FramePiece(7, 0, 2, bytes(FRAME_MAX + 1)),
    ],
)
def test_a_piece_of_no_frame_is_refused_and_not_kept(piece: FramePiece) -> None:
    joiner = PieceJoiner()
    with pytest.raises(Malformed):
        joiner.add(SENDER, piece)
    assert joiner.nbytes == 0


def test_pieces_that_disagree_about_their_number_are_forgotten() -> None:
    joiner = PieceJoiner()
    joiner.add(SENDER, FramePiece(7, 0, 2, b"x"))
    with pytest.raises(Malformed):
        joiner.add(SENDER, FramePiece(7, 1, 3, b"x"))
    assert joiner.nbytes == 0


def test_frames_that_never_become_whole_are_bounded() -> None:
    joiner = PieceJoiner()
    for digest in range(1_000):
        joiner.add(SENDER, FramePiece(digest, 0, 2, bytes(60_000)))
        assert joiner.nbytes <= KEPT_MAX
    for digest in range(1_000):
        joiner.add(SENDER, FramePiece(digest, 0, 2, b"x"))
    assert joiner.nbytes <= FRAMES_MAX * 200
