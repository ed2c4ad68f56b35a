"""The express lane of the codec: datagrams that hold one run, and nothing else.

Under load nearly every datagram is a run to the group, and where members talk to each other, a run
to one of them. The bytes are those that `codec` would write and read, with the same checks, in
fewer steps: the head is one struct, and what the datagrams of one batch have in common is compared
as bytes. Runs that continue each other become one frame again, so that everything above works by
the batch and not by the datagram. Whatever is not of this kind is left to `codec`, which also says
what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from zlib import crc32

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT, Payload
from ringcast.core.codec import (
    CHECKSUM,
    DATA,
    DATA_SIZE,
    EVERYBODY,
    FRAME_SIZE,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    SEQNO_MAX,
    VARIED,
    VERSION,
)
from ringcast.core.fragments import Fragments, read_header
from ringcast.core.frames import Data, UnicastData
from ringcast.core.outbox import Datagram
from ringcast.core.slices import CUT_MAX, VIEW_PAYLOAD_SIZE, cut_uniform, cutter
from ringcast.core.view import ViewId

EXPRESS_SIZE = HEADER_SIZE + DATA_SIZE
"""What such a datagram has besides its payloads."""

MANY = 64
"""Fragments of a message for which it is worth while to have them land."""

_WHOLE = struct.Struct("!2sBBQQQIIBIQQQQQIIQQI")
"""The header, its checksum and the frame."""
_COMMON = struct.Struct("!BIQQQQQII")
_PLACE = struct.Struct("!QQI")
"""The end of the frame, in which the datagrams of a batch differ: first, low and count. What comes
before it is common to them, and is packed and summed up once."""
_PLACE_AT = EXPRESS_SIZE - _PLACE.size
_PAIR = struct.Struct("!BIQQIIQQI")
_WHOLE_PAIR = struct.Struct("!2sBBQQQIIBIQQIIQQI")
PAIR_SIZE = _PAIR.size
_PAYLOADS_AT = HEADER_SIZE + PAIR_SIZE


def encode_run(group: int, source: Address, run: Data, step: int) -> Iterator[Datagram]:
    """Datagrams with so many messages of a run each; all have one size."""
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, EVERYBODY, DATA_SIZE)
    payloads, size, low = run.payloads, run.size, run.low
    common = _COMMON.pack(
        Data.code, DATA.size, *run.view, run.start, run.origin, run.sent_at, run.flags, size
    )
    common_checksum = crc32(common, crc32(head))
    if isinstance(payloads, Fragments) and step == 1:
        for seqno, (header, piece) in enumerate(payloads.parts(), run.first):
            place = _PLACE.pack(seqno, low, 1)
            checksum = CHECKSUM.pack(crc32(place, common_checksum))
            yield Datagram(
                None,
                [b"".join((head, checksum, common, place, header)), piece],
                EXPRESS_SIZE + size,
            )
        return
    for begin in range(0, len(payloads), step):
        buffers = list(payloads[begin : begin + step])
        count = len(buffers)
        place = _PLACE.pack(run.first + begin, low, count)
        checksum = CHECKSUM.pack(crc32(place, common_checksum))
        buffers.insert(0, b"".join((head, checksum, common, place)))
        yield Datagram(None, buffers, EXPRESS_SIZE + count * size)


def encode_pair(group: int, source: Address, target: Address, run: UnicastData) -> Datagram:
    """A run to one member that fits one datagram; all messages have one size."""
    payloads = run.payloads
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, target, PAIR_SIZE)
    frame = _PAIR.pack(
        run.code,
        PAIR_SIZE - FRAME_SIZE,
        run.conn,
        run.sent_at,
        run.flags,
        run.size,
        run.first,
        run.low,
        len(payloads),
    )
    checksum = CHECKSUM.pack(crc32(frame, crc32(head)))
    buffers = [b"".join((head, checksum, frame)), *payloads]
    return Datagram(target, buffers, HEADER_SIZE + PAIR_SIZE + run.nbytes)


def read_pair(
    datagram: bytes | memoryview, group: int, me: Address
) -> tuple[Address, UnicastData] | None:
    """Who sent a datagram that holds nothing but a run for this member, and the run; else None."""
    if len(datagram) <= _PAYLOADS_AT:
        return None
    (
        magic, version, flags, its_group, source, target, control_size, checksum, code, _,
        conn, sent_at, run_flags, size, first, low, count,
    ) = _WHOLE_PAIR.unpack_from(datagram)  # fmt: skip
    if (
        code != UnicastData.code
        or control_size != PAIR_SIZE
        or magic != MAGIC
        or version != VERSION
        or its_group != group
        or flags
        or target != me
        or not 0 < size < VARIED
        or not 0 < count <= SEQNO_MAX - first
        or first == 0
        or len(datagram) != _PAYLOADS_AT + count * size
        or crc32(datagram[HEADER_SIZE:_PAYLOADS_AT], crc32(datagram[: HEADER.size])) != checksum
    ):
        return None
    payloads = cut_uniform(datagram, count, size, _PAYLOADS_AT)
    nbytes = count * size
    run = UnicastData(conn, first, low, sent_at, run_flags, payloads, nbytes, size)
    return Address(source), run


class RunReader:
    """Reads such datagrams one after the other, and joins those that continue each other."""

    __slots__ = ("_common", "_common_checksum", "_count", "_cut", "_group", "_head", "run")

    def __init__(self, group: int) -> None:
        self.run: Data | None = None
        """The run that was begun last; whoever takes it sets this to None."""
        self._group = group
        self._head = self._common = b""
        self._common_checksum = 0
        self._count = 0
        """How many messages the datagrams of the batch have, but for the last."""
        self._cut: Callable[[bytes | memoryview, int], tuple[Payload, ...]] | None = None
        """Cuts so many messages out of a datagram, where a struct can do that."""

    @property
    def begins_message(self) -> bool:
        """Whether the open run is the first fragment of many."""
        run = self.run
        if run is None or not run.flags & FRAGMENT:
            return False
        header = read_header(run.payloads[0])
        return header is not None and header.index == 0 and header.count >= MANY

    def goes_on(self, datagram: bytes | memoryview) -> bool:
        """Whether a datagram goes on where the open run ends, in its batch: then it is joined."""
        run = self.run
        if run is None or not isinstance(run.payloads, list):
            return False  # There is none, or its fragments have landed.
        count, size, payloads = self._count, run.size, run.payloads
        if datagram[:EXPRESS_SIZE] != self._expected(run, count):
            if len(datagram) <= EXPRESS_SIZE:
                return False
            # The last one of a batch has fewer messages.
            count = _PLACE.unpack_from(datagram, _PLACE_AT)[2]
            if datagram[:EXPRESS_SIZE] != self._expected(run, count):
                return False
        nbytes = count * size
        if len(datagram) != EXPRESS_SIZE + nbytes or not count:
            return False
        if count == self._count and self._cut is not None:
            payloads += self._cut(datagram, EXPRESS_SIZE)
        else:
            payloads += cut_uniform(datagram, count, size, EXPRESS_SIZE)
        run.nbytes += nbytes
        return True

    def _expected(self, run: Data, count: int) -> bytes:
        """How a datagram begins that goes on with a run; with nothing, when no seqno is left."""
        first = run.first + len(run.payloads)
        if first > SEQNO_MAX - count:
            return b""
        place = _PLACE.pack(first, run.low, count)
        checksum = CHECKSUM.pack(crc32(place, self._common_checksum))
        return b"".join((self._head, checksum, self._common, place))

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
        head, common = bytes(datagram[: HEADER.size]), bytes(datagram[HEADER_SIZE:_PLACE_AT])
        common_checksum = crc32(common, crc32(head))
        if crc32(datagram[_PLACE_AT:EXPRESS_SIZE], common_checksum) != checksum:
            return False
        if number != at.number or coordinator != at.coordinator:
            at = ViewId(number, Address(coordinator))
        payloads = cut_uniform(datagram, count, size, EXPRESS_SIZE)
        origin = Address(origin)
        nbytes = count * size
        run = Data(at, start, origin, first, low, sent_at, run_flags, payloads, nbytes, size)
        self._head, self._common, self._common_checksum = head, common, common_checksum
        is_simple = size < VIEW_PAYLOAD_SIZE and count <= CUT_MAX
        self._cut = cutter(count, size).unpack_from if is_simple else None
        self._count = count
        self.run = run
        return True
