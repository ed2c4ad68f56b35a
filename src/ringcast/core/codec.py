"""The wire format: datagrams to bytes and back. The only file that knows how a field looks in
bytes.

A datagram is a header, a control section and a payload section:

    magic 2 | version 1 | flags 1 | group 8 | source 8 | target 8 | control length 4 | crc32 4
    control:  per frame  code 1 | length 4 | fields …
    payloads: the messages of the DATA frames, one after the other, in the order of the frames

All heads stand before all payloads, so that a run is sent by scatter/gather and cut by slices, and
so that one checksum over the head covers everything that steers the protocol. Payload bytes are
covered by the transport's own checksum (UDP, TCP), or by ours too when the sender asks for it
(FLAG_FULL_CHECKSUM).

Whatever comes from the network is parsed within bounds: no length that a peer announces takes
memory before it was compared with what is really there. Everything that is not right raises a
RemoteError, which the stack counts and drops.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import get_type_hints
from zlib import crc32

from ringcast.core import frames
from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.fields import Cursor, Field, field_of
from ringcast.core.frames import RUNS, Data, Frame, UnicastData
from ringcast.core.slices import cut_uniform, cut_varied
from ringcast.core.view import ViewId
from ringcast.errors import Malformed, NotForMe, WrongGroup, WrongVersion

VERSION = 1
FLAG_FULL_CHECKSUM = 1

MAGIC = b"RC"
HEADER = struct.Struct("!2sBBQQQI")
CHECKSUM = struct.Struct("!I")
_HEAD = struct.Struct(HEADER.format + "I")
FRAME = struct.Struct("!BI")
DATA = struct.Struct("!QQQQQIIQQI")
_FRAMED_DATA = struct.Struct("!BIQQQQQIIQQI")
_UNICAST_DATA = struct.Struct("!QQIIQQI")
_FRAMED_UNICAST_DATA = struct.Struct("!BIQQIIQQI")
VARIED = 0xFFFFFFFF
"""In the place of the common size of a run's messages: each has a size of its own, and they
follow."""

SEQNO_MAX = 2**64 - 1

EVERYBODY = Address(0)
"""The target of datagrams that are for whoever gets them."""

HEADER_SIZE = HEADER.size + CHECKSUM.size
FRAME_SIZE = FRAME.size
DATA_SIZE = FRAME_SIZE + DATA.size
"""What a run costs on the wire besides its payloads, when they are of one size (else 4 more a
message)."""


def group_id(name: str) -> int:
    """The number that stands for a group's name on the wire."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def encode(
    group: int,
    source: Address,
    content: Sequence[Frame],
    full_checksum: bool = False,
    target: Address = EVERYBODY,
) -> list[Payload]:
    """The buffers of one datagram, to be sent by scatter/gather: the head, then the payloads as
    they are."""
    heads: list[bytes] = []
    payloads: list[Payload] = []
    for frame in content:
        if isinstance(frame, RUNS):
            heads.append(_encode_run(frame))
            payloads.extend(frame.payloads)
        else:
            heads.append(_encode_control(frame))
    control = heads[0] if len(heads) == 1 else b"".join(heads)
    flags = FLAG_FULL_CHECKSUM if full_checksum else 0
    head = HEADER.pack(MAGIC, VERSION, flags, group, source, target, len(control))
    checksum = crc32(control, crc32(head))
    if full_checksum:
        for payload in payloads:
            checksum = crc32(payload, checksum)
    return [b"".join((head, CHECKSUM.pack(checksum), control)), *payloads]


def decode(
    datagram: bytes | memoryview, group: int, me: Address | None = None
) -> tuple[Address, list[Frame]]:
    """Who sent a datagram, and its frames; with `me`, only if it is for this member.

    Raises Malformed, WrongVersion, WrongGroup or NotForMe, and changes nothing.
    """
    if len(datagram) < HEADER_SIZE:
        raise Malformed("shorter than a header")
    magic, version, flags, its_group, source, target, control_size, checksum = _HEAD.unpack_from(
        datagram
    )
    if magic != MAGIC:
        raise Malformed("not a Ringcast datagram")
    if version != VERSION:
        raise WrongVersion(f"version {version}, this is {VERSION}")
    if its_group != group:
        raise WrongGroup("another group")
    if target and me is not None and target != me:
        raise NotForMe("for another member, perhaps the former life of this one")
    end = HEADER_SIZE + control_size
    if end > len(datagram):
        raise Malformed("the control section is cut off")
    view = memoryview(datagram)
    covered = len(datagram) if flags & FLAG_FULL_CHECKSUM else end
    if crc32(view[HEADER_SIZE:covered], crc32(view[: HEADER.size])) != checksum:
        raise Malformed("the checksum does not match")
    content, used = _decode_frames(datagram, view, end)
    if used != len(datagram):
        raise Malformed("bytes left over behind the payloads")
    return Address(source), content


def source_of(datagram: bytes | bytearray | memoryview) -> Address | None:
    """Who a datagram says it is from, without looking further; None when it is none of ours."""
    if len(datagram) < HEADER_SIZE or bytes(datagram[:2]) != MAGIC:
        return None
    return Address(HEADER.unpack_from(datagram)[4])


# Runs --------------------------------------------------------------------------------------------


def _encode_run(frame: Data | UnicastData) -> bytes:
    payloads = frame.payloads
    count, size, sizes = len(payloads), frame.size, b""
    if not size:
        lengths = list(map(len, payloads))
        size = lengths[0] if len(set(lengths)) == 1 else VARIED
        if size == VARIED:
            sizes = struct.pack(f"!{count}I", *lengths)
    place = (frame.sent_at, frame.flags, size, frame.first, frame.low, count)
    if isinstance(frame, Data):
        head = _FRAMED_DATA.pack(
            frame.code,
            DATA.size + len(sizes),
            *frame.view,
            frame.start,
            frame.origin,
            *place,
        )
    else:
        length = _UNICAST_DATA.size + len(sizes)
        head = _FRAMED_UNICAST_DATA.pack(frame.code, length, frame.conn, *place)
    return head + sizes if sizes else head


_RUN_CODES = frozenset((Data.code, UnicastData.code))


def _decode_frames(
    datagram: bytes | memoryview, view: memoryview, end: int
) -> tuple[list[Frame], int]:
    """All frames of the control section, and where the last payload ends."""
    content: list[Frame] = []
    at, payload_at = HEADER_SIZE, end
    while at < end:
        if end - at < FRAME_SIZE:
            raise Malformed("a frame's head is cut off")
        code, size = FRAME.unpack_from(view, at)
        at += FRAME_SIZE
        if size > end - at:
            raise Malformed("a frame is cut off")
        if code in _RUN_CODES:
            frame, payload_at = _decode_run(datagram, view, code, at, size, payload_at)
        else:
            frame = _decode_control(view, code, at, size)
        content.append(frame)
        at += size
    return content, payload_at


def _decode_run(
    datagram: bytes | memoryview, view: memoryview, code: int, at: int, size: int, payload_at: int
) -> tuple[Frame, int]:
    layout = DATA if code == Data.code else _UNICAST_DATA
    if size < layout.size:
        raise Malformed("a run's head is cut off")
    fields = layout.unpack_from(view, at)
    sent_at, run_flags, common, first, low, count = fields[-6:]
    varied = common == VARIED
    if count == 0 or size != layout.size + (4 * count if varied else 0):
        raise Malformed("a run's head has the wrong size")
    sizes = struct.unpack_from(f"!{count}I", view, at + layout.size) if varied else ()
    nbytes = sum(sizes) if varied else count * common
    if nbytes > len(datagram) - payload_at or (common == 0 and count > 65536):
        raise Malformed("a run promises more than there is")
    if varied:
        payloads = cut_varied(datagram, sizes, payload_at)
    else:
        payloads = cut_uniform(datagram, count, common, payload_at)
    uniform = 0 if varied else common
    if code == Data.code:
        number, coordinator, start, origin = fields[:4]
        view_id = ViewId(number, Address(coordinator))
        origin = Address(origin)
        run: Frame = Data(
            view_id, start, origin, first, low, sent_at, run_flags, payloads, nbytes, uniform
        )
    else:
        run = UnicastData(fields[0], first, low, sent_at, run_flags, payloads, nbytes, uniform)
    if not 0 < first <= SEQNO_MAX - count:
        raise Malformed("seqnos out of range")
    return run, payload_at + nbytes


# Control frames ----------------------------------------------------------------------------------


def _layout(frame: type[Frame]) -> list[tuple[str, Field]]:
    hints = get_type_hints(frame)
    names: tuple[str, ...] = tuple(frame.__slots__)
    return [(name, field_of(hints[name])) for name in names]


FRAME_TYPES: dict[int, type[Frame]] = {
    frame.code: frame
    for frame in vars(frames).values()
    if isinstance(frame, type) and issubclass(frame, Frame) and frame is not Frame
}
_LAYOUTS = {
    frame: _layout(frame) for frame in FRAME_TYPES.values() if frame not in (Data, UnicastData)
}


def _numbers(frame: type[Frame]) -> tuple[struct.Struct, Callable[[Frame], tuple[int, ...]]] | None:
    """For a frame that carries nothing but numbers: how all of it is written, and what they are."""
    names = [name for name, field in _LAYOUTS[frame] if field is field_of(int)]
    if len(names) < 2 or len(names) < len(_LAYOUTS[frame]):
        return None
    return struct.Struct(f"!BI{len(names)}Q"), attrgetter(*names)


_NUMBERS = {frame: numbers for frame in _LAYOUTS if (numbers := _numbers(frame)) is not None}


def _encode_control(frame: Frame) -> bytes:
    numbers = _NUMBERS.get(type(frame))
    if numbers is not None:
        layout, values = numbers
        return layout.pack(frame.code, layout.size - FRAME_SIZE, *values(frame))
    body = b"".join([field.write(getattr(frame, name)) for name, field in _LAYOUTS[type(frame)]])
    return FRAME.pack(frame.code, len(body)) + body


def _decode_control(view: memoryview, code: int, at: int, size: int) -> Frame:
    frame = FRAME_TYPES.get(code)
    if frame is None:
        raise Malformed(f"no frame has the code {code}")
    numbers = _NUMBERS.get(frame)
    if numbers is not None and numbers[0].size - FRAME_SIZE == size:
        return frame(*numbers[0].unpack_from(view, at - FRAME_SIZE)[2:])
    cursor = Cursor(view[at : at + size])
    values = [field.read(cursor) for _, field in _LAYOUTS[frame]]
    if cursor.at != size:
        raise Malformed("bytes left over in a frame")
    return frame(*values)
