"""A state as pieces that fit a message each, whatever the chunks that the application makes.

Small chunks are gathered, large ones are cut without being copied: at no time is more than a piece
of the state in memory besides the chunk that the application has made.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.core.model.batch import Payload, flat
from ringcast.core.wire.layout import DATA_SIZE, HEADER_SIZE
from ringcast.services.messages import PIECE_HEAD

SIZE_FIELD = 4
PIECE_MIN = 16_000
"""Pieces are not smaller than this for the sake of small datagrams: rather they are fragmented."""


def piece_size(max_message: int, mtu: int) -> int:
    """How large pieces are in a stack with these bounds: they fill a datagram, if it is large."""
    fitting = mtu - HEADER_SIZE - DATA_SIZE - SIZE_FIELD - PIECE_HEAD
    return max(1, min(max_message - PIECE_HEAD, max(fitting, PIECE_MIN)))


class Cutter:
    """Makes pieces of chunks."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._small = bytearray()

    def cut(self, chunk: bytes | bytearray | memoryview) -> Iterator[Payload]:
        """The pieces that are full with this chunk; the rest waits for more. Raises TypeError."""
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise TypeError(
                f"a state is made of bytes, not {type(chunk).__name__}: encode it first"
            )
        view = memoryview(chunk)
        view = memoryview(flat(view))
        if self._small or len(view) < self._size:
            taken = self._size - len(self._small)
            self._small += view[:taken]
            view = view[taken:]
            if len(self._small) == self._size:
                yield self.rest()
        full = len(view) - len(view) % self._size
        for begin in range(0, full, self._size):
            yield view[begin : begin + self._size]
        self._small += view[full:]

    def rest(self) -> bytes:
        """What is left."""
        left, self._small = bytes(self._small), bytearray()
        return left
