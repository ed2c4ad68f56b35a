"""The fast path of the codec: datagrams that hold one run or one ack, and nothing else.

Under load nearly every datagram is a run to the group or its ack, and where members talk to each
other, a run to one of them. The bytes are those that `codec` would write and read, with the same
checks, in fewer steps: the head is one struct, and what the datagrams of one batch have in common
is compared as bytes. Runs that continue each other become one frame again, so that everything above
works by the batch and not by the datagram. Every other datagram is left to `codec`, which also says
what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from zlib import crc32

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, VIEW_PAYLOAD_SIZE, Payload
from ringcast.core.model.view import ViewId
from ringcast.core.wire.fragments import Fragments, read_header
from ringcast.core.wire.frames import Ack, Data, UnicastData
from ringcast.core.wire.layout import (
    ACK_BEGIN,
    ACK_PARTS,
    ACK_TARGET,
    CHECKSUM,
    COMMON,
    DATA,
    DATA_PAYLOADS_AT,
    DATA_SIZE,
    DATAGRAM_OF_DATA,
    DATAGRAM_OF_PAIR,
    EVERYBODY,
    FRAME,
    FRAME_SIZE,
    FRAMED_PAIR,
    HEADER,
    HEADER_SIZE,
    INT_MAX,
    MAGIC,
    PAIR,
    PAIR_PAYLOADS_AT,
    PAIR_SIZE,
    PLACE,
    PLACE_AT,
    SEQNO_MAX,
    VERSION,
    is_run_in_bounds,
    is_stream_in_bounds,
)
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.segments import head_cutter, payload_cutter
from ringcast.core.wire.slices import CUT_MAX, cut_uniform, cutter

ACK_DATAGRAM_SIZE = ACK_PARTS.size

PLACEMENT_FRAGMENTS_MIN = 64
"""Fragments of a message for which direct placement is worth while."""


def encode_run(
    group: int, source: Address, run: Data, step: int, target: Address | None = None
) -> Iterator[Datagram]:
    """Datagrams with up to `step` messages of a run each, to the group or to one member; all
    messages have one size."""
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, target or EVERYBODY, DATA_SIZE)
    payloads, size, first, low = run.payloads, run.size, run.first, run.low
    common = COMMON.pack(
        Data.code, DATA.size, *run.view, run.start, run.origin, run.sent_at, run.flags, size
    )
    common_checksum = crc32(common, crc32(head))
    if isinstance(payloads, Fragments) and step == 1:
        for seqno, (header, piece) in enumerate(payloads.parts(), first):
            place = PLACE.pack(seqno, low, 1)
            checksum = CHECKSUM.pack(crc32(place, common_checksum))
            yield Datagram(
                target,
                [b"".join((head, checksum, common, place, header)), piece],
                DATA_PAYLOADS_AT + size,
            )
        return
    for begin in range(0, len(payloads), step):
        part = payloads[begin : begin + step]
        count = len(part)
        place = PLACE.pack(first + begin, low, count)
        checksum = CHECKSUM.pack(crc32(place, common_checksum))
        buffers = [b"".join((head, checksum, common, place)), *part]
        yield Datagram(target, buffers, DATA_PAYLOADS_AT + count * size)


def encode_pair(group: int, source: Address, target: Address, run: UnicastData) -> Datagram:
    """A run to one member that fits one datagram; all messages have one size."""
    payloads = run.payloads
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, target, PAIR_SIZE)
    frame = FRAMED_PAIR.pack(
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
    return Datagram(target, buffers, PAIR_PAYLOADS_AT + run.nbytes)


def read_pair(
    datagram: bytes | memoryview, group: int, me: Address
) -> tuple[Address, UnicastData] | None:
    """The sender and the run of a datagram that holds one run for this member; else None."""
    if len(datagram) <= PAIR_PAYLOADS_AT:
        return None
    (
        magic, version, flags, its_group, source, target, control_size, checksum, code, length,
        conn, sent_at, run_flags, size, first, low, count,
    ) = DATAGRAM_OF_PAIR.unpack_from(datagram)  # fmt: skip
    if (
        (magic, version, flags, its_group) != (MAGIC, VERSION, 0, group)
        or (target, control_size, code, length) != (me, PAIR_SIZE, UnicastData.code, PAIR.size)
        or conn > INT_MAX
        or source == EVERYBODY
        or not 0 < size * count == len(datagram) - PAIR_PAYLOADS_AT
        or not is_run_in_bounds(first, low, count, sent_at, run_flags)
        or crc32(datagram[HEADER_SIZE:PAIR_PAYLOADS_AT], crc32(datagram[: HEADER.size])) != checksum
    ):
        return None
    payloads = cut_uniform(datagram, count, size, PAIR_PAYLOADS_AT)
    nbytes = count * size
    run = UnicastData(conn, first, low, sent_at, run_flags, payloads, nbytes, size)
    return Address(source), run


class AckReader:
    """Reads datagrams that hold one ack for this member, and nothing else."""

    __slots__ = ("_begin", "_frame", "_target")

    def __init__(self, group: int, me: Address) -> None:
        size = ACK_DATAGRAM_SIZE - HEADER_SIZE
        # What all of them have in common, as bytes.
        self._begin = ACK_BEGIN.pack(MAGIC, VERSION, 0, group)
        self._target = ACK_TARGET.pack(me, size)
        self._frame = FRAME.pack(Ack.code, size - FRAME_SIZE)

    def read(self, datagram: bytes | memoryview) -> tuple[Address, Ack] | None:
        """The sender and the ack of a datagram of ACK_DATAGRAM_SIZE; None if it is another one."""
        begin, source, target, checksum, frame, delivered, ahead = ACK_PARTS.unpack(datagram)
        if (
            begin != self._begin
            or frame != self._frame
            or target != self._target
            or not source
            or delivered > INT_MAX
            or ahead > INT_MAX
            or crc32(datagram[HEADER_SIZE:], crc32(datagram[: HEADER.size])) != checksum
        ):
            return None
        return Address(source), Ack(delivered, ahead)


class RunReader:
    """Reads such datagrams one after the other, and joins those that continue each other."""

    __slots__ = ("_common", "_common_checksum", "_count", "_cut", "_group", "_head", "_me", "run")

    def __init__(self, group: int, me: Address = EVERYBODY) -> None:
        """me: the member whose own runs are read as well, besides those to the group."""
        self.run: Data | None = None
        """The open run; the receiver that takes it sets this to None."""
        self._group, self._me = group, me
        self._head = self._common = b""
        self._common_checksum = 0
        self._count = 0
        """How many messages the datagrams of the batch have, but for the last."""
        self._cut: Callable[[bytes | memoryview, int], tuple[Payload, ...]] | None = None
        """Cuts that many messages out of a datagram, where a struct can do it."""

    @property
    def begins_message(self) -> bool:
        """Whether the open run is the first fragment of many."""
        run = self.run
        if run is None or not run.flags & FRAGMENT:
            return False
        header = read_header(run.payloads[0])
        return header is not None and header.index == 0 and header.count >= PLACEMENT_FRAGMENTS_MIN

    def extend(self, datagram: bytes | memoryview) -> bool:
        """Join a datagram to the open run if it continues that in its batch; False if it does
        not."""
        run = self.run
        if run is None or not isinstance(run.payloads, list):
            return False  # There is none, or its fragments were placed.
        count, size, payloads = self._count, run.size, run.payloads
        first = run.first + len(payloads)
        if first > SEQNO_MAX - count:
            return False
        # As `_expected` does, which costs a call more.
        place = PLACE.pack(first, run.low, count)
        checksum = CHECKSUM.pack(crc32(place, self._common_checksum))
        head = self._head + checksum + self._common + place
        if datagram[:DATA_PAYLOADS_AT] != head:
            if len(datagram) <= DATA_PAYLOADS_AT:
                return False
            # The last one of a batch has fewer messages.
            count = PLACE.unpack_from(datagram, PLACE_AT)[2]
            if datagram[:DATA_PAYLOADS_AT] != self._expected(first, run.low, count):
                return False
        nbytes = count * size
        if len(datagram) != DATA_PAYLOADS_AT + nbytes or not count:
            return False
        if count == self._count and self._cut is not None:
            payloads += self._cut(datagram, DATA_PAYLOADS_AT)
        else:
            payloads += cut_uniform(datagram, count, size, DATA_PAYLOADS_AT)
        run.nbytes += nbytes
        return True

    def extend_by(self, data: bytes, at: int, segment: int) -> int:
        """Join the datagrams of one size from here on that continue the open run in its batch, as
        far as all before them do; how many there are."""
        run, count = self.run, self._count
        segments = (len(data) - at) // segment
        if (
            run is None
            or self._cut is None
            or not isinstance(run.payloads, list)
            or not segments
            or segment != DATA_PAYLOADS_AT + count * run.size
        ):
            return 0
        joined, first = 0, run.first + len(run.payloads)
        for head in head_cutter(segments, DATA_PAYLOADS_AT, segment).unpack_from(data, at):
            if head != self._expected(first, run.low, count):
                break
            joined += 1
            first += count
        if joined:
            cut = payload_cutter(joined, DATA_PAYLOADS_AT, count, run.size)
            run.payloads += cut.unpack_from(data, at)
            run.nbytes += joined * count * run.size
        assert len(run.payloads) * run.size == run.nbytes
        return joined

    def _expected(self, first: int, low: int, count: int) -> bytes:
        """The head of a datagram that continues a run; empty when no seqno is left."""
        if first > SEQNO_MAX - count:
            return b""
        place = PLACE.pack(first, low, count)
        checksum = CHECKSUM.pack(crc32(place, self._common_checksum))
        return b"".join((self._head, checksum, self._common, place))

    def start(self, datagram: bytes | memoryview, at: ViewId) -> bool:
        """Make a datagram of this kind the open run; False for every other datagram.

        `at` is the view that is expected, for which no new id is made.
        """
        if len(datagram) < DATA_PAYLOADS_AT or datagram[HEADER_SIZE] != Data.code:
            return False
        (
            magic, version, flags, group, source, target, control_size, checksum, _, length,
            number, coordinator, start, origin, sent_at, run_flags, size, first, low, count,
        ) = DATAGRAM_OF_DATA.unpack_from(datagram)  # fmt: skip
        if (
            (magic, version, flags, group) != (MAGIC, VERSION, 0, self._group)
            or (control_size, length) != (DATA_SIZE, DATA.size)
            or target not in (EVERYBODY, self._me)
            or source != origin
            or source == EVERYBODY
            or not 0 < size * count == len(datagram) - DATA_PAYLOADS_AT
            or not is_stream_in_bounds(number, start)
            or not is_run_in_bounds(first, low, count, sent_at, run_flags)
        ):
            return False
        head, common = bytes(datagram[: HEADER.size]), bytes(datagram[HEADER_SIZE:PLACE_AT])
        common_checksum = crc32(common, crc32(head))
        if crc32(datagram[PLACE_AT:DATA_PAYLOADS_AT], common_checksum) != checksum:
            return False
        if number != at.number or coordinator != at.coordinator:
            at = ViewId(number, Address(coordinator))
        payloads = cut_uniform(datagram, count, size, DATA_PAYLOADS_AT)
        origin = Address(origin)
        nbytes = count * size
        run = Data(at, start, origin, first, low, sent_at, run_flags, payloads, nbytes, size)
        self._head, self._common, self._common_checksum = head, common, common_checksum
        is_simple = size < VIEW_PAYLOAD_SIZE and count <= CUT_MAX
        self._cut = cutter(count, size).unpack_from if is_simple else None
        self._count = count
        self.run = run
        return True
