"""Segmentation offload: many datagrams of one size in one system call (Linux, udp(7)).

With UDP_SEGMENT a send takes up to 64 datagrams as one buffer, which the device or the kernel cuts;
with UDP_GRO a receive returns such datagrams as one buffer, with their size as ancillary data.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ringcast.core.wire.outbox import TRAIN_MAX, TRAIN_SEGMENTS_MAX, Datagram, Target

_UDP_SEGMENT = 103
_UDP_GRO = 104
SEGMENT_SIZE_MAX = TRAIN_MAX // 2
UNSUPPORTED = frozenset(
    (errno.EINVAL, errno.EIO, errno.EOPNOTSUPP, errno.ENOPROTOOPT, errno.EMSGSIZE)
)
"""Errors with which a kernel or a device says that it cannot cut these datagrams."""
ANCILLARY_SIZE = socket.CMSG_SPACE(4)
_COALESCED = struct.Struct("@Niii")

Ancillary = list[tuple[int, int, bytes]]


def can_segment(sock: socket.socket) -> bool:
    """Whether the kernel knows UDP_SEGMENT."""
    with suppress(OSError):
        sock.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
        return True
    return False


def coalesce(sock: socket.socket) -> bool:
    """Have datagrams that arrive together received as one buffer; whether the kernel can."""
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
        return True
    return False


def segment_size(ancillary: Ancillary) -> int:
    """The size of the datagrams in a buffer that was received; 0 when it is one datagram."""
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_UDP and kind == _UDP_GRO:
            (size,) = struct.unpack_from("@i", data)
            return int(size)
    return 0


def segment_size_in(header: bytes) -> int:
    """The same, of ancillary data as the kernel writes it: a struct cmsghdr, and an int."""
    if len(header) < _COALESCED.size:
        return 0
    _, level, kind, size = _COALESCED.unpack_from(header)
    return int(size) if (level, kind) == (socket.IPPROTO_UDP, _UDP_GRO) else 0


def segment_request(size: int) -> Ancillary:
    """What asks the kernel to cut a buffer into datagrams of this size."""
    return [(socket.IPPROTO_UDP, _UDP_SEGMENT, struct.pack("@H", size))]


def grouped(
    datagrams: Sequence[Datagram], train_bytes: int = TRAIN_MAX
) -> Iterator[tuple[Target, Sequence[Datagram]]]:
    """Neighbours with one target that can leave in one call, `train_bytes` at the most: all of one
    size but the last, which may be smaller."""
    begin = 0
    while begin < len(datagrams):
        target, _, size, segment = datagrams[begin]
        if segment:  # It is a train already.
            yield target, datagrams[begin : begin + 1]
            begin += 1
            continue
        end, last = begin + 1, begin + min(TRAIN_SEGMENTS_MAX, max(1, train_bytes // size))
        while end < len(datagrams) and end < last:
            following = datagrams[end]
            if following.target != target or following.nbytes > size or following.segment:
                break
            end += 1
            if following.nbytes < size:
                break
        yield target, datagrams[begin:end]
        begin = end
