"""Pieces: a control frame that is larger than a datagram leaves as several, and is joined again.

A VIEW of a thousand members has 60 KB. Its pieces are named by a digest of the whole frame, so a
frame that is sent again fills the gaps of the first attempt, and a joined frame is known to be the
one that was cut. Joining is bounded in frames and bytes: the oldest is forgotten first, since the
protocol that sent it sends it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from ringcast.core.model.address import Address
from ringcast.core.wire.frames import FramePiece
from ringcast.core.wire.layout import FRAME_SIZE
from ringcast.errors import Malformed

PIECE_SIZE = FRAME_SIZE + 3 * 8 + 4
"""Bytes of a piece besides its content."""
FRAME_MAX = 1 << 18
"""Bytes of the largest frame that is joined: the view of about 2,500 members."""
KEPT_MAX = 1 << 20
"""Bytes of all pieces that wait for others."""
FRAMES_MAX = 64
"""Frames that wait for pieces."""
_PIECE_COST = 128
"""Bytes that keeping a piece takes besides its content."""


def split(frame: bytes, room: int) -> Iterator[FramePiece]:
    """The bytes of a frame as pieces that take up to `room` bytes each."""
    step = room - PIECE_SIZE
    assert 0 < step < len(frame) <= FRAME_MAX
    count, digest = -(-len(frame) // step), _digest(frame)
    for index in range(count):
        yield FramePiece(digest, index, count, frame[index * step : (index + 1) * step])


class PieceJoiner:
    """Joins the pieces that one member receives."""

    __slots__ = ("_open", "nbytes")

    def __init__(self) -> None:
        self.nbytes = 0
        """Bytes that all pieces take."""
        self._open: dict[tuple[Address, int], _Frame] = {}
        """Frames that wait for pieces; the one that got a piece last is the last."""

    def add(self, source: Address, piece: FramePiece) -> bytes | None:
        """Keep a piece; the frame's bytes when it is whole. Raises Malformed."""
        key = source, piece.digest
        if not piece.index < piece.count <= FRAME_MAX or not piece.content:
            raise Malformed("a piece of no frame")
        frame = self._open.pop(key, None) or _Frame(piece.count)
        self._open[key] = frame
        if piece.index not in frame.pieces:
            cost = len(piece.content) + _PIECE_COST
            frame.nbytes += cost
            self.nbytes += cost
            frame.pieces[piece.index] = piece.content
        if frame.count != piece.count or frame.nbytes > FRAME_MAX + len(frame.pieces) * _PIECE_COST:
            self._forget(key)
            raise Malformed("pieces that do not fit together, or too many of them")
        whole = None
        if len(frame.pieces) == frame.count:
            whole = b"".join(frame.pieces[index] for index in range(frame.count))
            self._forget(key)
            if _digest(whole) != piece.digest:
                raise Malformed("pieces that do not fit together")
        while self.nbytes > KEPT_MAX or len(self._open) > FRAMES_MAX:
            self._forget(next(iter(self._open)))
        assert self.nbytes >= 0
        return whole

    def _forget(self, key: tuple[Address, int]) -> None:
        self.nbytes -= self._open.pop(key).nbytes


class _Frame:
    """The pieces of one frame."""

    __slots__ = ("count", "nbytes", "pieces")

    def __init__(self, count: int) -> None:
        self.count = count
        self.nbytes = 0
        self.pieces: dict[int, bytes] = {}


def _digest(frame: bytes) -> int:
    return int.from_bytes(blake2b(frame, digest_size=8).digest(), "big") >> 1
