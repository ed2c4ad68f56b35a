"""The express lane of the codec: datagrams that hold one run to the group, and nothing else.

Under load nearly every datagram is of this kind. Its bytes are those that `codec` would write and
read, with the same checks, in fewer steps: the head is one struct, and what the datagrams of one
batch have in common is compared as bytes. Runs that continue each other become one frame again, so
that everything above works by the batch and not by the datagram. Whatever is not of this kind is
left to `codec`, which also says what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.codec import (
    CHECKSUM,
    DATA,
    DATA_SIZE,
    EVERYBODY,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    SEQNO_MAX,
    VARIED,
    VERSION,
)
from ringcast.core.frames import Data
from ringcast.core.slices import cut_uniform
from ringcast.core.view import ViewId

EXPRESS_SIZE = HEADER_SIZE + DATA_SIZE
"""What such a datagram has besides its payloads."""

_WHOLE = struct.Struct("!2sBBQQQIIBIQQQQQIIQQI")
"""The header, its checksum and the frame."""
_FRAME = struct.Struct("!BIQQQQQIIQQI")
_PLACE = struct.Struct("!QQI")
"""The end of the frame, in which the datagrams of a batch differ: first, low and count."""
_PLACE_AT = EXPRESS_SIZE - _PLACE.size


def encode_run(group: int, source: Address, run: Data, step: int) -> Iterator[list[Payload]]:
    """The buffers of datagrams with so many messages of a run each; all have one size."""
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, EVERYBODY, DATA_SIZE)
    head_checksum = crc32(head)
    fixed = (Data.code, DATA.size, *run.view, run.start, run.origin, run.sent_at, run.flags)
    payloads, first, size, low = run.payloads, run.first, run.size, run.low
    for begin in range(0, len(payloads), step):
        some = payloads[begin : begin + step]
        frame = _FRAME.pack(*fixed, size, first + begin, low, len(some))
        checksum = CHECKSUM.pack(crc32(frame, head_checksum))
        yield [b"".join((head, checksum, frame)), *some]


class RunReader:
    """Reads such datagrams one after the other, and joins those that continue each other."""

    __slots__ = ("_common", "_group", "_head", "_head_checksum", "run")

    def __init__(self, group: int) -> None:
        self.run: Data | None = None
        """The run that was begun last; whoever takes it sets this to None."""
        self._group = group
        self._head = self._common = b""
        self._head_checksum = 0

    def goes_on(self, datagram: bytes | memoryview) -> bool:
        """Whether a datagram goes on where the open run ends, in its batch: then it is joined."""
        run = self.run
        if (
            run is None
            or datagram[: HEADER.size] != self._head
            or datagram[HEADER_SIZE:_PLACE_AT] != self._common
            or len(datagram) < EXPRESS_SIZE
        ):
            return False
        first, low, count = _PLACE.unpack_from(datagram, _PLACE_AT)
        (checksum,) = CHECKSUM.unpack_from(datagram, HEADER.size)
        if (
            first != run.first + len(run.payloads)
            or not 0 < count <= SEQNO_MAX - first
            or len(datagram) != EXPRESS_SIZE + count * run.size
            or crc32(datagram[HEADER_SIZE:EXPRESS_SIZE], self._head_checksum) != checksum
        ):
            return False
        assert isinstance(run.payloads, list)
        run.payloads += cut_uniform(datagram, count, run.size, EXPRESS_SIZE)
        run.nbytes += count * run.size
        run.low = low
        return True

    def begin(self, datagram: bytes | memoryview, at: ViewId) -> bool:
        """Whether a datagram is of this kind: then it is the open run from now on.

        `at` is the view that is expected, for which no new id is made.
        """
        if len(datagram) < EXPRESS_SIZE:
            return False
        (
            magic, version, flags, group, source, target, control_size, checksum, code, _,
            number, coordinator, start, origin, sent_at, run_flags, size, first, low, count,
        ) = _WHOLE.unpack_from(datagram)  # fmt: skip
        if (
            control_size != DATA_SIZE
            or code != Data.code
            or magic != MAGIC
            or version != VERSION
            or group != self._group
            or flags
            or target
            or source != origin
            or not 0 < size < VARIED
            or not 0 < count <= SEQNO_MAX - first
            or first == 0
            or len(datagram) != EXPRESS_SIZE + count * size
        ):
            return False
        self._head = bytes(datagram[: HEADER.size])
        self._head_checksum = crc32(self._head)
        if crc32(datagram[HEADER_SIZE:EXPRESS_SIZE], self._head_checksum) != checksum:
            return False
        self._common = bytes(datagram[HEADER_SIZE:_PLACE_AT])
        if number != at.number or coordinator != at.coordinator:
            at = ViewId(number, Address(coordinator))
        payloads = cut_uniform(datagram, count, size, EXPRESS_SIZE)
        origin = Address(origin)
        nbytes = count * size
        self.run = Data(at, start, origin, first, low, sent_at, run_flags, payloads, nbytes, size)
        return True
