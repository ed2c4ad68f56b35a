"""Fragments: one large message as pieces that fit a datagram, each with a header that says where it
belongs.

The header stands before the piece, inside the fragment's payload, so that for everything below a
fragment is a message like any other. Fragments of one message have consecutive seqnos, and come in
order: a stream is never reordered, and a sender cuts one message after the other. So a piece
that is missing was skipped for good, and putting together needs no table of pieces, only the next
index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from typing import overload

from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.buffers import Buffer
from ringcast.core.wire.layout import FRAGMENT_HEADER, FRAGMENT_HEADER_SIZE

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
    header = FragmentHeader(*FRAGMENT_HEADER.unpack_from(payload))
    if not header.index < header.count <= header.total:
        return None
    return header


class Fragments(Sequence[Payload]):
    """Some fragments of a message, all of one size, each made when it is read.

    So a window that keeps them keeps nothing but the message itself, and what is made for the wire
    is free again once it has left.
    """

    __slots__ = ("_header", "_piece", "indices", "size", "view")

    def __init__(
        self, view: memoryview, piece: int, header: tuple[int, int, int], indices: range
    ) -> None:
        self.view = view
        """The message."""
        self._piece = piece
        self._header = header
        """Number of the message, count of its fragments, and its size."""
        self.indices = indices
        begin = indices.start * piece
        self.size = FRAGMENT_HEADER_SIZE + min(piece, len(view) - begin)
        """Bytes of each."""

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self.size * len(self.indices)

    @property
    def is_end(self) -> bool:
        """Whether the last fragment of the message is among them."""
        return self.indices.stop == self._header[1]

    def grow(self) -> None:
        """Add the next one, which has the same size; only before they are passed on."""
        self.indices = range(self.indices.start, self.indices.stop + 1)

    def parts(self) -> Iterator[tuple[bytes, memoryview]]:
        """The header and the piece of each, to be sent without a copy."""
        message, count, total = self._header
        view, size, pack = self.view, self._piece, FRAGMENT_HEADER.pack
        for index in self.indices:
            yield pack(message, index, count, total), view[index * size : (index + 1) * size]

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, at: int) -> Payload: ...
    @overload
    def __getitem__(self, at: slice) -> Fragments: ...

    def __getitem__(self, at: int | slice) -> Payload | Fragments:
        if isinstance(at, slice):
            return Fragments(self.view, self._piece, self._header, self.indices[at])
        return self._make(self.indices[at])

    def __iter__(self) -> Iterator[Payload]:
        return map(self._make, self.indices)

    def _make(self, index: int) -> bytes:
        message, count, total = self._header
        begin = index * self._piece
        piece = self.view[begin : begin + self._piece]
        return b"".join((FRAGMENT_HEADER.pack(message, index, count, total), piece))


class Cutting:
    """One message on its way out, cut as far as there is room and no further."""

    __slots__ = (
        "_piece",
        "_view",
        "count",
        "flags",
        "last",
        "message",
        "next",
        "payload",
        "reported",
    )

    def __init__(self, payload: Payload, message: int, fragment_size: int, flags: int = 0) -> None:
        self.payload = payload
        self.message = message
        self.flags = flags
        """Those of the whole message."""
        self.next = 0
        """The index of the fragment that comes next."""
        self.last = 0
        """The seqno that the last fragment which was cut has got, or will get when a layer below
        lets it go."""
        self.reported = 0
        """How many bytes the application was told of."""
        self._view = memoryview(payload)
        self._set_size(fragment_size)

    def _set_size(self, fragment_size: int) -> None:
        self._piece = fragment_size - FRAGMENT_HEADER_SIZE
        self.count = -(-len(self.payload) // self._piece)
        assert 0 < self.count <= COUNT_MAX

    def cut(self, most: int) -> Fragments:
        """The next fragments, this many at the most, and of one size: the last may stand alone."""
        total = len(self.payload)
        until = min(self.count, self.next + most)
        if until == self.count and total % self._piece and until - self.next > 1:
            until -= 1
        header, indices = (self.message, self.count, total), range(self.next, until)
        self.next = until
        return Fragments(self._view, self._piece, header, indices)

    def begin_anew(self, message: int, fragment_size: int) -> None:
        """Forget what was cut, under a new number and with fragments of this size."""
        self.message, self.next, self.reported = message, 0, 0
        self._set_size(fragment_size)

    @property
    def done(self) -> int:
        """How many bytes of the message were cut."""
        return min(self.next * self._piece, len(self.payload))


def split(batch: Batch, fragment_size: int, numbers: Iterator[int]) -> Iterator[Batch | Cutting]:
    """A batch as runs of messages that fit a fragment, and larger ones by themselves, numbered."""
    for is_large, group in groupby(batch.payloads, lambda p: len(p) > fragment_size):
        payloads = list(group)
        if is_large:
            for payload in payloads:
                yield Cutting(payload, next(numbers), fragment_size, batch.flags)
        else:
            nbytes, flags = sum(map(len, payloads)), batch.flags
            yield Batch(batch.sender, payloads, nbytes, dest=batch.dest, flags=flags)


class Assembly:
    """One message that arrives: its pieces up to now, or the reason why they are dropped.

    Each piece is copied behind the others as it comes, while it is in the processor's cache, and
    its datagram is free again: keeping all of them to join them at the end takes twice the memory
    and the time. It grows with what has really come, in a BytesIO that hands it out without another
    copy. Where there is memory for the whole (`use`), pieces can also be placed where they belong,
    without any copy."""

    __slots__ = (
        "_body",
        "_buffer",
        "_piece",
        "_view",
        "broken",
        "count",
        "first",
        "last",
        "message",
        "nbytes",
        "next",
        "placed",
        "reported",
        "total",
        "touched",
    )

    def __init__(self, header: FragmentHeader, seqno: int) -> None:
        self.message, self.count, self.total = header.message, header.count, header.total
        self._buffer: Buffer | None = None
        self._view: memoryview | None = None
        """All of that memory."""
        self._piece = 0
        """Bytes of each piece but the last."""
        self.placed = 0
        """Pieces before this index have arrived, or are in their place and on their way up."""
        self.nbytes = 0
        """Bytes that are kept: what has really come, whatever the header promises."""
        self.first = seqno
        self.last = seqno - 1
        """The seqno of the last fragment that arrived."""
        self.next = 0
        self._body = BytesIO()
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
            self._keep(piece)

    def _keep(self, piece: memoryview) -> None:
        begin = self.nbytes
        self.nbytes += len(piece)
        self._piece = self._piece or len(piece)
        if self._buffer is None or self._view is None:
            self._body.write(piece)
        else:
            self._buffer.prepare(self.nbytes)
            self._view[begin : self.nbytes] = piece

    # Placement -----------------------------------------------------------------------------------

    def use(self, buffer: Buffer) -> None:
        """There is memory for the whole: to be called before the first piece arrives."""
        assert not self.nbytes
        self._buffer, self._view = buffer, buffer.view

    @property
    def is_open(self) -> bool:
        """Whether pieces can be placed: all that came are of one size, and more are to come."""
        return (
            self._buffer is not None
            and self.next < self.count == -(-self.total // self._piece)
            and self.nbytes == self.next * self._piece
        )

    def place(self, index: int) -> memoryview | None:
        """Where this piece belongs; None when it may be there already, or there is none."""
        if self._buffer is None or self._view is None or not self.placed <= index < self.count:
            return None
        begin = index * self._piece
        self._buffer.prepare(min(begin + self._piece, self.total))
        return self._view[begin : begin + self._piece]

    def fragments(self, index: int) -> Fragments:
        """The fragment that was placed here."""
        assert self._view is not None
        header = (self.message, self.count, self.total)
        return Fragments(self._view, self._piece, header, range(index, index + 1))

    def take_placed(self, first: int, fragments: Fragments) -> bool:
        """Take fragments that are in their places; False when they are not the next of this."""
        indices = fragments.indices
        if (
            fragments.view is not self._view
            or first != self.last + 1
            or indices.start != self.next
            or self.nbytes != self.next * self._piece
        ):
            return False
        self.last, self.next = first + len(indices) - 1, indices.stop
        self.nbytes = min(self.next * self._piece, self.total)
        return True

    # The end -------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether its last piece has arrived, be it whole or not."""
        return self.next == self.count

    def give_up(self, reason: str) -> None:
        """Free the pieces: the message will not be whole."""
        if self.broken is None:
            self.broken = reason
        self._free()

    def take(self) -> Payload | None:
        """The message, whose last piece has arrived; None when it is broken after all."""
        if self.broken is None and self.nbytes != self.total:
            self.give_up("its parts do not fit together")
        if self.broken is not None:
            return None
        whole = self._body.getvalue() if self._view is None else self._view.toreadonly()
        self._free()
        return whole

    def _free(self) -> None:
        self._buffer = self._view = None
        self._body, self.nbytes = BytesIO(), 0
