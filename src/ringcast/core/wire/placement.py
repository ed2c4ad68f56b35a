"""Direct data placement: the next fragment of a large message is received where it belongs.

A reader of datagrams can have the kernel write one datagram to several buffers. While a large
message arrives, the next datagram is nearly always its next fragment. So three buffers are
advertised: one for the heads, the fragment's place in the message, and one for the excess of a
longer datagram. A right guess leaves nothing to do but to read the heads; fragments that were
placed one after the other are one run. A wrong guess costs a copy: the datagram is put together
again and read as usual. The bytes that it left in the place do no harm, since nothing has arrived
there yet; and a place that holds a fragment is not advertised again, whatever becomes of its run.
"""

from __future__ import annotations

from zlib import crc32

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT
from ringcast.core.model.view import ViewId
from ringcast.core.wire.fragments import Assembly, Fragments
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import (
    CHECKSUM,
    DATA_SIZE,
    EVERYBODY,
    FRAGMENT_AT,
    FRAGMENT_HEADER_SIZE,
    FRAGMENT_HEADS,
    FRAGMENT_PLACE,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    PLACE_AT,
    VERSION,
    is_run_in_bounds,
    is_stream_in_bounds,
)

PLACED = memoryview(b"")
"""What stands for a datagram that was placed; to be compared by identity."""

DATAGRAM_MAX = 65_536

Buffer = bytearray | memoryview


class Placement:
    """Where the next fragment is expected, and what was placed of the datagram read last.

    A transport hands `advertised` to the kernel, if there is any, and asks `placed` what to make of
    the result. In a closed group the receiver calls `place` with what it has opened. It takes what
    was placed by `extend` or `start` before anything else.
    """

    __slots__ = (
        "_assembly",
        "_begins",
        "_checksum",
        "_common",
        "_fields",
        "_group",
        "_index",
        "_nbytes",
        "_next",
        "_prefix",
        "_rest",
        "_run",
        "_sender",
        "advertised",
        "heads",
        "is_used",
        "is_whole",
    )

    def __init__(self, group: int = 0) -> None:
        self._group = group
        self.heads = bytearray(FRAGMENT_AT)
        """The head of the datagram that arrived last."""
        self.advertised: list[Buffer] | None = None
        """Where the next datagram is to be written, in order; None for anywhere."""
        self.is_used = False
        """Whether the transport, or the receiver of a closed group, makes use of this."""
        self.is_whole = False
        """Whether a message is whole for which memory was lent: the application should have its
        turn before more is read, and may free such memory. The transport resets this."""
        self._sender = EVERYBODY
        self._assembly: Assembly | None = None
        self._index = 0
        self._nbytes = 0
        """The size of the datagram that is expected."""
        self._next = b""
        """How it begins if it is of the same batch as the one before it; empty if that is
        unknown."""
        self._begins = False
        """Whether what was placed begins a run."""
        self._prefix = self._common = b""
        self._checksum = 0
        """Of the prefix, and of what the datagrams of a batch have in common behind it."""
        self._fields: tuple[int, ...] = ()
        self._rest = bytearray()
        """For what is longer than expected."""
        self._run: Data | None = None

    # Who puts messages together ------------------------------------------------------------------

    def advertise(self, sender: Address, assembly: Assembly | None) -> None:
        """The next fragment will be of this message; None if nothing is known of it."""
        if assembly is None or not assembly.is_open:
            self._assembly = self._run = self.advertised = None
            return
        # What was placed may still be on its way up; the next fragment is behind it.
        index = max(assembly.next, assembly.placed)
        if assembly is self._assembly and index == self._index and self.advertised is not None:
            return
        if sender != self._sender:
            self._sender = sender
            self._prefix = HEADER.pack(MAGIC, VERSION, 0, self._group, sender, EVERYBODY, DATA_SIZE)
        self._assembly, self._index, self._next = assembly, index, b""
        self._advertise_next()

    def _advertise_next(self) -> None:
        assert self._assembly is not None
        place = self._assembly.place(self._index)
        if place is None:
            self.advertised = None
            return
        self._nbytes = FRAGMENT_AT + len(place)
        if self.advertised is None:
            # Each member has one of its own, since others may read at the same time.
            self._rest = self._rest or bytearray(DATAGRAM_MAX)
            self.advertised = [self.heads, place, self._rest]
        else:
            self.advertised[1] = place

    # Who reads datagrams -------------------------------------------------------------------------

    def placed(self, nbytes: int) -> bytes | memoryview:
        """What arrived when this many bytes were written to the buffers: PLACED, or a datagram."""
        assert self._assembly is not None
        if nbytes == self._nbytes and self._assembly.broken is None:
            if self.heads == self._next:
                self._begins = False
                return PLACED
            if self._is_expected():
                self._begins = True
                return PLACED
        assert self.advertised is not None
        datagram = b"".join(self.advertised)[:nbytes]
        self.advertised = None
        return datagram

    def place(self, datagram: memoryview) -> bool:
        """Copy a datagram that is in memory to its place; False when it is not the expected one.

        Nothing of another datagram is written to the place.
        """
        assembly = self._assembly
        if self.advertised is None or assembly is None or len(datagram) != self._nbytes:
            return False
        self.heads[:] = datagram[:FRAGMENT_AT]
        self._begins = self.heads != self._next
        if assembly.broken is not None or (self._begins and not self._is_expected()):
            return False
        self.advertised[1][:] = datagram[FRAGMENT_AT:]
        return True

    def _is_expected(self) -> bool:
        heads, assembly = self.heads, self._assembly
        assert assembly is not None
        if not heads.startswith(self._prefix):
            return False
        self._fields = fields = FRAGMENT_HEADS.unpack_from(heads, HEADER_SIZE)
        code, _, number, _, start, origin, sent_at, flags, size, first, low, count = fields[:-4]
        index = self._index
        if (
            fields[-4:] != (assembly.message, index, assembly.count, assembly.total)
            or first != assembly.first + index
            or count != 1
            or size != self._nbytes - FRAGMENT_AT + FRAGMENT_HEADER_SIZE
            or code != Data.code
            or origin != self._sender
            or not flags & FRAGMENT
            or not is_stream_in_bounds(number, start)
            or not is_run_in_bounds(first, low, count, sent_at, flags)
        ):
            return False
        view = memoryview(heads)
        self._common = bytes(view[HEADER_SIZE:PLACE_AT])
        self._checksum = crc32(self._common, crc32(self._prefix))
        (checksum,) = CHECKSUM.unpack_from(heads, HEADER.size)
        return crc32(view[PLACE_AT:-FRAGMENT_HEADER_SIZE], self._checksum) == int(checksum)

    # Who takes runs ------------------------------------------------------------------------------

    def extend(self, run: Data | None) -> bool:
        """Join what was placed to a run of its batch that it continues; False if it does not."""
        if self._begins or run is None or run is not self._run:
            return False
        assert isinstance(run.payloads, Fragments)
        run.payloads.grow()
        run.nbytes += run.size
        self._advance()
        return True

    def start(self, at: ViewId) -> Data:
        """What was placed, as a run; `at` is the view that is expected."""
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
        assembly.placed = index = self._index
        self._advertise_next()
        first, message = assembly.first + index, assembly.message
        places = FRAGMENT_PLACE.pack(
            first, run.low, 1, message, index, assembly.count, assembly.total
        )
        checksum = CHECKSUM.pack(crc32(places[:-FRAGMENT_HEADER_SIZE], self._checksum))
        self._next = b"".join((self._prefix, checksum, self._common, places))
