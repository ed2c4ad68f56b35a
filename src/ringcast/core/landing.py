"""Landing: the next fragment of a large message is received where it belongs, without a copy.

Whoever reads datagrams can have the kernel write one to several buffers. While a large message
comes, the next datagram is nearly always the next fragment of it. So three buffers are offered: one
for the heads, the fragment's place in the message, and one for whatever is longer than expected. A
guess that was right leaves nothing to do but to read the heads; fragments that landed one after the
other are one run. A wrong one costs a copy: the datagram is put together again and read as always.
What it has left in the place does no harm, since nothing has come there yet; and where a fragment
has landed, nothing is offered again, whatever becomes of its run.
"""

from __future__ import annotations

import struct
from zlib import crc32

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT
from ringcast.core.codec import CHECKSUM, DATA_SIZE, EVERYBODY, HEADER, HEADER_SIZE, MAGIC, VERSION
from ringcast.core.fragments import FRAGMENT_HEADER_SIZE, Assembly, Fragments
from ringcast.core.frames import Data
from ringcast.core.view import ViewId

LANDED = memoryview(b"")
"""What stands for a datagram that has landed; to be compared by identity."""

HEADS_SIZE = HEADER_SIZE + DATA_SIZE + FRAGMENT_HEADER_SIZE
DATAGRAM_MAX = 65_536

_HEADS = struct.Struct("!BIQQQQQIIQQIQIIQ")
"""The frame, and the header of the one fragment in it."""
_PLACES = struct.Struct("!QQIQIIQ")
"""The end of it, in which the datagrams of a batch differ: first, low, count, and that header."""
_PLACES_AT = HEADS_SIZE - _PLACES.size

Buffer = bytearray | memoryview


class Landing:
    """Where the next fragment is expected, and what has landed of the datagram read last.

    A transport hands `offer` to the kernel, if there is one, and asks `landed` what to make of the
    result; the stack takes what has landed by `goes_on` and `begin` before it does anything else.
    """

    __slots__ = (
        "_assembly",
        "_begins",
        "_checksum",
        "_common",
        "_fields",
        "_index",
        "_nbytes",
        "_next",
        "_prefix",
        "_rest",
        "_run",
        "_sender",
        "group",
        "heads",
        "is_used",
        "is_whole",
        "offer",
    )

    def __init__(self) -> None:
        self.group = 0
        """The group's number on the wire; the stack sets it."""
        self.heads = bytearray(HEADS_SIZE)
        """How the datagram begins that came last."""
        self.offer: list[Buffer] | None = None
        """Where the next datagram is to be written, in order; None for anywhere."""
        self.is_used = False
        """Whether whoever reads datagrams makes use of this."""
        self.is_whole = False
        """Whether a message is whole for which memory was lent: the application should have its
        turn before more is read, and may let go of such memory. Whoever reads sets this back."""
        self._sender = EVERYBODY
        self._assembly: Assembly | None = None
        self._index = 0
        self._nbytes = 0
        """The size of the datagram that is expected."""
        self._next = b""
        """How it begins if it is of the same batch as the one before it; empty if that is
        unknown."""
        self._begins = False
        """Whether what has landed begins a run."""
        self._prefix = self._common = b""
        self._checksum = 0
        """Of the prefix, and of what the datagrams of a batch have in common behind it."""
        self._fields: tuple[int, ...] = ()
        self._rest = bytearray()
        """For what is longer than expected."""
        self._run: Data | None = None

    # Who puts messages together ------------------------------------------------------------------

    def aim(self, sender: Address, assembly: Assembly | None) -> None:
        """The next fragment will be of this message; None if nothing is known of it."""
        if assembly is None or not assembly.is_open:
            self._assembly = self._run = self.offer = None
            return
        # What has landed may be on its way up still; what comes next is behind it.
        index = max(assembly.next, assembly.landed)
        if assembly is self._assembly and index == self._index and self.offer is not None:
            return
        if sender != self._sender:
            self._sender = sender
            self._prefix = HEADER.pack(MAGIC, VERSION, 0, self.group, sender, EVERYBODY, DATA_SIZE)
        self._assembly, self._index, self._next = assembly, index, b""
        self._offer_next()

    def _offer_next(self) -> None:
        assert self._assembly is not None
        place = self._assembly.place(self._index)
        if place is None:
            self.offer = None
            return
        self._nbytes = HEADS_SIZE + len(place)
        if self.offer is None:
            # Each member has one of its own, since others may read at the same time.
            self._rest = self._rest or bytearray(DATAGRAM_MAX)
            self.offer = [self.heads, place, self._rest]
        else:
            self.offer[1] = place

    # Who reads datagrams -------------------------------------------------------------------------

    def landed(self, nbytes: int) -> bytes | memoryview:
        """What came when so many bytes were written to the offer: LANDED, or else a datagram."""
        assert self._assembly is not None
        if nbytes == self._nbytes and self._assembly.broken is None:
            if self.heads == self._next:
                self._begins = False
                return LANDED
            if self._is_expected():
                self._begins = True
                return LANDED
        assert self.offer is not None
        datagram = b"".join(self.offer)[:nbytes]
        self.offer = None
        return datagram

    def _is_expected(self) -> bool:
        heads, assembly = self.heads, self._assembly
        assert assembly is not None
        if not heads.startswith(self._prefix):
            return False
        self._fields = fields = _HEADS.unpack_from(heads, HEADER_SIZE)
        code, _, _, _, _, origin, _, flags, size, first, _, count, *fragment = fields
        index = self._index
        if (
            fragment != [assembly.message, index, assembly.count, assembly.total]
            or first != assembly.first + index
            or count != 1
            or size != self._nbytes - HEADS_SIZE + FRAGMENT_HEADER_SIZE
            or code != Data.code
            or origin != self._sender
            or not flags & FRAGMENT
        ):
            return False
        view = memoryview(heads)
        self._common = bytes(view[HEADER_SIZE:_PLACES_AT])
        self._checksum = crc32(self._common, crc32(self._prefix))
        (checksum,) = CHECKSUM.unpack_from(heads, HEADER.size)
        return crc32(view[_PLACES_AT:-FRAGMENT_HEADER_SIZE], self._checksum) == int(checksum)

    # Who takes runs ------------------------------------------------------------------------------

    def goes_on(self, run: Data | None) -> bool:
        """Whether what has landed goes on where a run ends, in its batch: then it is joined."""
        if self._begins or run is None or run is not self._run:
            return False
        assert isinstance(run.payloads, Fragments)
        run.payloads.grow()
        run.nbytes += run.size
        self._advance()
        return True

    def begin(self, at: ViewId) -> Data:
        """What has landed, as a run; `at` is the view that is expected."""
        assembly, index = self._assembly, self._index
        assert assembly is not None
        _, _, number, coordinator, start, _, sent_at, flags, size, first, low, *_ = self._fields
        if number != at.number or coordinator != at.coordinator:
            at = ViewId(number, Address(coordinator))
        first, fragments = assembly.first + index, assembly.fragments(index)
        self._run = Data(at, start, self._sender, first, low, sent_at, flags, fragments, size, size)
        self._advance()
        return self._run

    def _advance(self) -> None:
        assembly, run = self._assembly, self._run
        assert assembly is not None
        assert run is not None
        self._index += 1
        assembly.landed = index = self._index
        self._offer_next()
        first, message = assembly.first + index, assembly.message
        places = _PLACES.pack(first, run.low, 1, message, index, assembly.count, assembly.total)
        checksum = CHECKSUM.pack(crc32(places[:-FRAGMENT_HEADER_SIZE], self._checksum))
        self._next = b"".join((self._prefix, checksum, self._common, places))
