"""Frames by themselves, the sender of a datagram, and datagrams cut off in the middle."""

from zlib import crc32

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, decode_frame, encode, encode_frame, source_of
from ringcast.core.wire.frames import Ack, Data, Frame, Leave
from ringcast.core.wire.layout import (
    CHECKSUM,
    EMPTY_MAX,
    FRAME,
    FRAME_SIZE,
    HEADER,
    HEADER_SIZE,
)
from ringcast.errors import Malformed

GROUP, SOURCE = 7, Address(0x1234)
VIEW = ViewId(3, SOURCE)


def a_run(*payloads: bytes) -> Data:
    nbytes = sum(map(len, payloads))
    sizes = set(map(len, payloads))
    size = sizes.pop() if len(sizes) == 1 else 0
    return Data(VIEW, 0, SOURCE, 1, 0, 5, 0, list(payloads), nbytes, size)


def datagram(*frames: Frame) -> bytes:
    return b"".join(encode(GROUP, SOURCE, list(frames)))


def test_the_source_is_read_from_a_whole_head_only() -> None:
    whole = datagram(Leave(VIEW))
    assert source_of(whole) == SOURCE
    assert source_of(whole[:HEADER_SIZE]) == SOURCE
    assert source_of(whole[: HEADER_SIZE - 1]) is None
    assert source_of(b"XX" + whole[2:]) is None


@pytest.mark.parametrize("frame", [Leave(VIEW), a_run(b"one", b"two"), a_run(b"", b"three")])
def test_a_frame_by_itself_is_read_whole_or_not_at_all(frame: Frame) -> None:
    payloads = frame.payloads if isinstance(frame, Data) else ()
    encoded = b"".join((encode_frame(frame), *payloads))
    assert decode_frame(encoded) == frame
    for size in range(len(encoded)):
        with pytest.raises(Malformed):
            decode_frame(encoded[:size])
    with pytest.raises(Malformed):
        decode_frame(encoded + b"!")


def test_as_many_empty_messages_as_a_datagram_may_have_are_read() -> None:
    half = EMPTY_MAX // 2
    content = [a_run(*[b""] * half), a_run(*[b""] * (EMPTY_MAX - half))]
    assert decode(datagram(*content), GROUP) == (SOURCE, content)
    with pytest.raises(Malformed, match="promises more"):
        decode(datagram(*content, a_run(b"")), GROUP)


def test_messages_that_are_not_empty_do_not_use_up_the_empty_ones() -> None:
    content = [a_run(b"a", b"b"), a_run(*[b""] * EMPTY_MAX)]
    assert decode(datagram(*content), GROUP) == (SOURCE, content)


def test_frames_keep_their_order_around_runs() -> None:
    content = [Ack(9), a_run(b"a"), Leave(VIEW), a_run(b"bc", b"d")]
    assert decode(datagram(*content), GROUP) == (SOURCE, content)


def with_sizes(data: bytes, control: int, frame: int) -> bytes:
    """The datagram with other sizes of its control section and its first frame, and the checksum
    that fits."""
    fields = [*HEADER.unpack_from(data)[:-1], control]
    head = HEADER.pack(*fields)
    code, _ = FRAME.unpack_from(data, HEADER_SIZE)
    content = FRAME.pack(code, frame) + data[HEADER_SIZE + FRAME_SIZE :]
    return head + CHECKSUM.pack(crc32(content, crc32(head))) + content


def test_a_frame_with_a_wrong_size_is_malformed() -> None:
    data = datagram(Leave(VIEW))
    control = len(data) - HEADER_SIZE
    size = control - FRAME_SIZE
    assert decode(with_sizes(data, control, size), GROUP) == (SOURCE, [Leave(VIEW)])
    with pytest.raises(Malformed, match="a frame is cut off"):
        decode(with_sizes(data, control, size + 1), GROUP)
    with pytest.raises(Malformed, match="bytes left over in a frame"):
        decode(with_sizes(data + b"!", control + 1, size + 1), GROUP)
    with pytest.raises(Malformed, match="head is cut off"):
        decode(with_sizes(data + b"!", control + 1, size), GROUP)
