"""The codec: frames to the bytes of a datagram and back, in the layout of `layout`.

Payload bytes are covered by the transport's own checksum (UDP, TCP), or by ours too when the sender
asks for it (FLAG_FULL_CHECKSUM).

Bytes from the network are parsed within bounds: no length that a peer announces takes memory before
it was compared with the bytes that follow. Everything that is not right raises a RemoteError,
which the receiver counts and drops.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import get_type_hints
from zlib import crc32

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.model.view import ViewId
from ringcast.core.wire import frames
from ringcast.core.wire.fields import Cursor, Field, field_of
from ringcast.core.wire.frames import RUNS, Data, Frame, FramePiece, UnicastData
from ringcast.core.wire.layout import (
    CHECKSUM,
    DATA,
    EMPTY_MAX,
    EVERYBODY,
    FLAG_FULL_CHECKSUM,
    FLAG_SEALED,
    FRAME,
    FRAME_SIZE,
    FRAMED_DATA,
    FRAMED_PAIR,
    FRAMES_MAX,
    HEAD,
    HEADER,
    HEADER_SIZE,
    INT_MAX,
    MAGIC,
    PAIR,
    VARIED,
    VERSION,
    is_run_in_bounds,
    is_stream_in_bounds,
)
from ringcast.core.wire.slices import cut_uniform, cut_varied
from ringcast.errors import Malformed, NotForMe, Sealed, WrongGroup, WrongVersion


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
    payloads = [
        payload for frame in content if isinstance(frame, RUNS) for payload in frame.payloads
    ]
    heads = list(map(encode_frame, content))
    return assemble(group, source, heads, payloads, full_checksum, target)


def encode_frame(frame: Frame) -> bytes:
    """A frame as it stands in the control section; the payloads of a run stand elsewhere."""
    return _encode_run(frame) if isinstance(frame, RUNS) else _encode_control(frame)


def assemble(
    group: int,
    source: Address,
    heads: Sequence[bytes],
    payloads: Sequence[Payload],
    full_checksum: bool,
    target: Address,
) -> list[Payload]:
    """The buffers of one datagram, from frames that are encoded and the payloads of their runs."""
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
    """The sender of a datagram, and its frames; with `me`, only if it is for this member.

    Raises Malformed, WrongVersion, Sealed, WrongGroup or NotForMe, and changes nothing.
    """
    if len(datagram) < HEADER_SIZE:
        raise Malformed("shorter than a header")
    magic, version, flags, its_group, source, target, control_size, checksum = HEAD.unpack_from(
        datagram
    )
    if magic != MAGIC:
        raise Malformed("not a Ringcast datagram")
    if version != VERSION:
        raise WrongVersion(f"version {version}, this is {VERSION}")
    if flags & FLAG_SEALED:
        raise Sealed("of a closed group, and this member has no key")
    if flags & ~FLAG_FULL_CHECKSUM:
        raise Malformed("flags that this version does not know")
    if its_group != group:
        raise WrongGroup("another group")
    if source == EVERYBODY:
        raise Malformed("from the address that stands for all")
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


def decode_frame(encoded: bytes) -> Frame:
    """A frame by itself, as `encode_frame` wrote it, with the payloads of a run behind it. Raises
    Malformed."""
    if len(encoded) < FRAME_SIZE:
        raise Malformed("a frame's head is cut off")
    code, size = FRAME.unpack_from(encoded)
    end = FRAME_SIZE + size
    if code in _RUN_CODES and end <= len(encoded):
        run = _decode_run(encoded, memoryview(encoded), code, FRAME_SIZE, size, end, EMPTY_MAX)
        if end + run.nbytes == len(encoded):
            return run
    if end != len(encoded) or code in _RUN_CODES or code == FramePiece.code:
        raise Malformed("not one frame")
    return _decode_control(memoryview(encoded), code, FRAME_SIZE, size, 0)[0]


def source_of(datagram: bytes | bytearray | memoryview) -> Address | None:
    """The sender that a datagram names, without looking further; None when it is not of ours."""
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
        head = FRAMED_DATA.pack(
            frame.code,
            DATA.size + len(sizes),
            *frame.view,
            frame.start,
            frame.origin,
            *place,
        )
    else:
        length = PAIR.size + len(sizes)
        head = FRAMED_PAIR.pack(frame.code, length, frame.conn, *place)
    return head + sizes if sizes else head


_RUN_CODES = frozenset((Data.code, UnicastData.code))


def _decode_frames(
    datagram: bytes | memoryview, view: memoryview, end: int
) -> tuple[list[Frame], int]:
    """All frames of the control section, and where the last payload ends."""
    content: list[Frame] = []
    at, payload_at, empty, items = HEADER_SIZE, end, 0, 0
    while at < end:
        if end - at < FRAME_SIZE:
            raise Malformed("a frame's head is cut off")
        code, size = FRAME.unpack_from(view, at)
        at += FRAME_SIZE
        if size > end - at:
            raise Malformed("a frame is cut off")
        if code in _RUN_CODES:
            run = _decode_run(datagram, view, code, at, size, payload_at, EMPTY_MAX - empty)
            payload_at += run.nbytes
            empty += 0 if run.nbytes else len(run.payloads)
            frame: Frame = run
        else:
            frame, items = _decode_control(view, code, at, size, items)
        content.append(frame)
        at += size
        if len(content) > FRAMES_MAX:
            raise Malformed("more frames than a datagram may have")
    assert at == end
    assert end <= payload_at <= len(datagram)
    return content, payload_at


def _decode_run(
    datagram: bytes | memoryview,
    view: memoryview,
    code: int,
    at: int,
    size: int,
    payload_at: int,
    empty_max: int,
) -> Data | UnicastData:
    layout = DATA if code == Data.code else PAIR
    if size < layout.size:
        raise Malformed("a run's head is cut off")
    *stream, sent_at, flags, common, first, low, count = layout.unpack_from(view, at)
    varied = common == VARIED
    if count == 0 or size != layout.size + (4 * count if varied else 0):
        raise Malformed("a run's head has the wrong size")
    sizes = struct.unpack_from(f"!{count}I", view, at + layout.size) if varied else ()
    nbytes = sum(sizes) if varied else count * common
    if nbytes > len(datagram) - payload_at or (common == 0 and count > empty_max):
        raise Malformed("a run promises more than there is")
    if not is_run_in_bounds(first, low, count, sent_at, flags):
        raise Malformed("numbers out of range, or flags that this version does not know")
    if varied:
        payloads = cut_varied(datagram, sizes, payload_at)
    else:
        payloads = cut_uniform(datagram, count, common, payload_at)
    place = (first, low, sent_at, flags, payloads, nbytes, 0 if varied else common)
    if code != Data.code:
        (conn,) = stream
        if conn > INT_MAX:
            raise Malformed("numbers out of range")
        return UnicastData(conn, *place)
    number, coordinator, start, origin = stream
    if not is_stream_in_bounds(number, start):
        raise Malformed("numbers out of range")
    return Data(ViewId(number, Address(coordinator)), start, Address(origin), *place)


# Control frames ----------------------------------------------------------------------------------


def _layout(frame: type[Frame]) -> list[tuple[str, Field]]:
    hints = get_type_hints(frame)
    names: tuple[str, ...] = tuple(frame.__slots__)
    return [(name, field_of(hints[name])) for name in names]


def register(found: Iterable[object]) -> dict[int, type[Frame]]:
    """The frames among these, by their codes. Raises TypeError for two with one code or kind."""
    types: dict[int, type[Frame]] = {}
    for frame in found:
        if isinstance(frame, type) and issubclass(frame, Frame) and frame is not Frame:
            for other in types.values():
                if frame.code == other.code or frame.kind == other.kind:
                    raise TypeError(f"{frame.__name__} has the code or kind of {other.__name__}")
            types[frame.code] = frame
    return types


FRAME_TYPES = register(vars(frames).values())
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


_SCALAR_FIELDS = frozenset(map(field_of, (int, Address, ViewId)))
FIXED_SIZE = frozenset(
    frame for frame, layout in _LAYOUTS.items() if _SCALAR_FIELDS.issuperset(f for _, f in layout)
)
"""Frames of one size, far below that of a datagram."""


def _encode_control(frame: Frame) -> bytes:
    numbers = _NUMBERS.get(type(frame))
    if numbers is not None:
        layout, values = numbers
        return layout.pack(frame.code, layout.size - FRAME_SIZE, *values(frame))
    body = b"".join([field.write(getattr(frame, name)) for name, field in _LAYOUTS[type(frame)]])
    return FRAME.pack(frame.code, len(body)) + body


def _decode_control(
    view: memoryview, code: int, at: int, size: int, items: int
) -> tuple[Frame, int]:
    """A frame; and how many items of lists were read, to which its own are added."""
    frame = FRAME_TYPES.get(code)
    if frame is None:
        raise Malformed(f"no frame has the code {code}")
    numbers = _NUMBERS.get(frame)
    if numbers is not None and numbers[0].size - FRAME_SIZE == size:
        values = numbers[0].unpack_from(view, at - FRAME_SIZE)[2:]
        if max(values) > INT_MAX:
            raise Malformed("a number out of range")
        return frame(*values), items
    cursor = Cursor(view[at : at + size], items)
    fields = [field.read(cursor) for _, field in _LAYOUTS[frame]]
    if cursor.at != size:
        raise Malformed("bytes left over in a frame")
    return frame(*fields), cursor.items
