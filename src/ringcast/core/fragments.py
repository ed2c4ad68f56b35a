"""Fragments: one large message as pieces that fit a datagram, each with a header that says where it
belongs.

The header stands before the piece, inside the fragment's payload, so that for everything below a
fragment is a message like any other. Fragments of one message have consecutive seqnos, and come in
order: a stream is never reordered, and whoever sends cuts one message after the other. So a piece
that is missing was skipped for good, and putting together needs no table of pieces, only the next
index."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ringcast.core.batch import Payload

_HEADER = struct.Struct("!QIIQ")

FRAGMENT_HEADER_SIZE = _HEADER.size
COUNT_MAX = 2**32 - 1

WHOLE = 2
"""Flag of a run, besides FRAGMENT: the sender wants to hear when the message is whole."""


@dataclass(slots=True)
class FragmentHeader:
    """Where a fragment belongs."""

    message: int
    """The sender's number of the message; one that is begun anew gets a new one."""
    index: int
    count: int
    total: int
    """The size of the message in bytes: what its sender says, to be bounded before it is
    believed."""


def read_header(payload: Payload) -> FragmentHeader | None:
    """The header of a fragment; None when this cannot be one."""
    if len(payload) <= FRAGMENT_HEADER_SIZE:
        return None
    header = FragmentHeader(*_HEADER.unpack_from(payload))
    if not header.index < header.count <= header.total:
        return None
    return header


class Cutting:
    """One message on its way out, cut as far as there is room and no further."""

    __slots__ = ("_piece", "_view", "count", "last", "message", "next", "payload", "reported")

    def __init__(self, payload: Payload, message: int, fragment_size: int) -> None:
        self.payload = payload
        self.message = message
        self.next = 0
        """The index of the fragment that comes next."""
        self.last = 0
        """The seqno that the last fragment which was cut has got, or will get when a layer below
        lets it go."""
        self.reported = 0
        """How many bytes the application was told of."""
        self._piece = fragment_size - FRAGMENT_HEADER_SIZE
        self._view = memoryview(payload)
        self.count = -(-len(payload) // self._piece)
        assert 0 < self.count <= COUNT_MAX

    def cut(self, most: int) -> list[Payload]:
        """The next fragments, this many at the most: the only copies that are made of the
        message."""
        piece, total = self._piece, len(self.payload)
        until = min(self.count, self.next + most)
        fragments: list[Payload] = [
            b"".join(
                (
                    _HEADER.pack(self.message, index, self.count, total),
                    self._view[index * piece : (index + 1) * piece],
                )
            )
            for index in range(self.next, until)
        ]
        self.next = until
        return fragments

    def begin_anew(self, message: int) -> None:
        """Forget what was cut, under a new number."""
        self.message, self.next, self.reported = message, 0, 0

    @property
    def done(self) -> int:
        """How many bytes of the message were cut."""
        return min(self.next * self._piece, len(self.payload))


class Assembly:
    """One message on its way in: the pieces that have come, or the reason why they are thrown
    away."""

    __slots__ = (
        "broken",
        "count",
        "first",
        "last",
        "message",
        "nbytes",
        "next",
        "pieces",
        "reported",
        "total",
        "touched",
    )

    def __init__(self, header: FragmentHeader, seqno: int) -> None:
        self.message, self.count, self.total = header.message, header.count, header.total
        self.first = seqno
        self.last = seqno - 1
        """The seqno of the last fragment that came."""
        self.next = 0
        self.pieces: list[Payload] = []
        self.nbytes = 0
        """Bytes that are kept: what has really come, whatever the header promises."""
        self.broken: str | None = None
        """Why the message will never be whole; None while it may."""
        self.touched = 0.0
        self.reported = 0

    def add(self, header: FragmentHeader, seqno: int, payload: Payload) -> None:
        """Keep the next piece; one that does not fit breaks the message."""
        piece = memoryview(payload)[FRAGMENT_HEADER_SIZE:]
        if seqno != self.last + 1 or header.index != self.next:
            self.give_up("a part of it was skipped")
            self.first = seqno  # What lies before was announced as skipped, or taken.
        elif (header.count, header.total) != (self.count, self.total) or (
            self.nbytes + len(piece) > self.total
        ):
            self.give_up("its parts do not fit together")
            self.count = header.count
        self.last, self.next = seqno, header.index + 1
        if self.broken is None:
            self.pieces.append(piece)
            self.nbytes += len(piece)

    @property
    def ended(self) -> bool:
        """Whether its last piece has come, be it whole or not."""
        return self.next == self.count

    def give_up(self, reason: str) -> None:
        """Free the pieces: the message will not be whole."""
        if self.broken is None:
            self.broken = reason
        self.pieces = []
        self.nbytes = 0

    def join(self) -> bytes | None:
        """The message, whose last piece has come; None when it is broken after all."""
        if self.broken is None and self.nbytes != self.total:
            self.give_up("its parts do not fit together")
        return None if self.broken is not None else b"".join(self.pieces)
