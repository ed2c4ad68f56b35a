"""Many datagrams in one system call, where the device does not join them (Linux, recvmmsg(2)).

Python's `socket` reads one datagram a call. The C library's `recvmmsg` writes up to 32 of them one
after the other here, each to a slot of the size that is expected of all. So what it reads looks
like what UDP_GRO returns, datagrams of one size in one buffer, and is read as fast. What does not
fit its slot goes on in memory of its own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
import sys
from functools import lru_cache
from typing import Literal

from ringcast.core.wire.segments import Segments
from ringcast.runtime.net.datagram.offload import ANCILLARY_SIZE, SEGMENT_SIZE_MAX, segment_size_in
from ringcast.runtime.net.endpoints import SocketAddress

SLOTS = 32
DATAGRAM_MAX = 65_536
LEARN = 4
"""After this many datagrams of one size, not joined, the next ones are expected to be like them."""
FEW = 2
"""When a call finds no more than this, reading them one by one costs no more."""

_NAME_SIZE = 28
"""sockaddr_in6, the longer one."""
_PORT = struct.Struct("!H")
_FLOW = struct.Struct("!I")
_SCOPE = struct.Struct("@I")

Read = tuple[bytes | Segments, SocketAddress]


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint32),
        ("pieces", ctypes.c_void_p),
        ("pieces_count", ctypes.c_size_t),
        ("ancillary", ctypes.c_void_p),
        ("ancillary_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Slot(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (("header", _Header), ("received", ctypes.c_uint))


_Headers = _Slot * SLOTS
_Pieces = _Piece * (2 * SLOTS)
_recvmmsg = getattr(ctypes.CDLL(None, use_errno=True), "recvmmsg", None)


def has_recvmmsg() -> bool:
    """Whether the C library has it."""
    return _recvmmsg is not None


class ManyReader:
    """Reads what has arrived at one socket, as long as the datagrams are of one size."""

    def __init__(self) -> None:
        self.size = 0
        """The size that is expected; 0 when they are to be read one by one."""
        self._last = self._alike = 0
        self._slots = mmap.mmap(-1, SLOTS * SEGMENT_SIZE_MAX)
        self._rest = mmap.mmap(-1, SLOTS * DATAGRAM_MAX)
        self._names = mmap.mmap(-1, SLOTS * _NAME_SIZE)
        self._ancillary = mmap.mmap(-1, SLOTS * ANCILLARY_SIZE)
        self._pieces, self._headers = _Pieces(), _Headers()
        names, ancillary = _address(self._names), _address(self._ancillary)
        for at in range(SLOTS):
            header = self._headers[at].header
            header.name, header.name_size = names + at * _NAME_SIZE, _NAME_SIZE
            header.pieces = ctypes.addressof(self._pieces) + 2 * at * ctypes.sizeof(_Piece)
            header.pieces_count = 2
            header.ancillary = ancillary + at * ANCILLARY_SIZE
            header.ancillary_size = ANCILLARY_SIZE
        memory = memoryview(self._headers).cast("B")
        self._memory, self._fresh = memory, bytes(memory)
        """What the kernel has written to the headers is written over before each call."""
        self._received = _column(memory, "I", _Slot.received.offset)
        self._ancillary_sizes = _column(memory, "P", _Header.ancillary_size.offset)

    def learn(self, size: int) -> None:
        """A datagram was read by itself."""
        if size != self._last:
            self._last, self._alike = size, 1
        elif self._alike < LEARN:
            self._alike += 1
        elif 0 < size <= SEGMENT_SIZE_MAX:
            self._expect(size)

    def _expect(self, size: int) -> None:
        self.size, self._alike = size, 0
        slots, rest = _address(self._slots), _address(self._rest)
        for at in range(SLOTS):
            slot, more = self._pieces[2 * at], self._pieces[2 * at + 1]
            slot.base, slot.size = slots + at * size, size
            more.base, more.size = rest + at * DATAGRAM_MAX, DATAGRAM_MAX

    def read(self, sock: socket.socket) -> tuple[int, list[Read]]:
        """How many buffers there were, `SLOTS` if there may be more; and the datagrams, joined.

        Raises OSError as `recvmsg` does.
        """
        assert _recvmmsg is not None
        self._memory[:] = self._fresh
        count = _recvmmsg(sock.fileno(), self._headers, SLOTS, socket.MSG_DONTWAIT, None)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        sizes = self._received[:count].tolist()
        expected = sizes.count(self.size)
        names = self._names[: count * _NAME_SIZE]
        is_joined = any(self._ancillary_sizes[:count].tolist())
        if count <= FEW or 2 * expected < count or is_joined:
            read = self._runs(sizes)
            self.size = 0
            return count, read
        if expected == count and names == names[:_NAME_SIZE] * count:
            data = self._slots[: count * self.size]
            return count, [(Segments(data, self.size), _source(names[:_NAME_SIZE]))]
        return count, self._runs(sizes)

    def _runs(self, sizes: list[int]) -> list[Read]:
        """Neighbours of one source are joined: all of the expected size but the last, which may be
        smaller."""
        read: list[Read] = []
        size, begin, count = self.size, 0, len(sizes)
        while begin < count:
            name, end = self._name(begin), begin + 1
            joined = self._joined(begin)
            if joined or sizes[begin] > size:
                read.append((self._one(begin, sizes[begin], joined), _source(name)))
                begin = end
                continue
            while (
                end < count
                and sizes[end - 1] == size >= sizes[end] > 0
                and not self._joined(end)
                and self._name(end) == name
            ):
                end += 1
            length = (end - 1 - begin) * size + sizes[end - 1]
            data = self._slots[begin * size : begin * size + length]
            read.append((Segments(data, size) if length > size else data, _source(name)))
            begin = end
        return read

    def _one(self, at: int, nbytes: int, joined: int) -> bytes | Segments:
        size = self.size
        data = self._slots[at * size : at * size + min(nbytes, size)]
        if nbytes > size:
            data += self._rest[at * DATAGRAM_MAX : at * DATAGRAM_MAX + nbytes - size]
        return Segments(data, joined) if 0 < joined < nbytes else data

    def _joined(self, at: int) -> int:
        """The size of the datagrams that the kernel has joined in a slot; 0 when it is one."""
        nbytes = self._ancillary_sizes[at]
        if not nbytes:
            return 0
        return segment_size_in(self._ancillary[at * ANCILLARY_SIZE : at * ANCILLARY_SIZE + nbytes])

    def _name(self, at: int) -> bytes:
        return self._names[at * _NAME_SIZE : (at + 1) * _NAME_SIZE]


@lru_cache(64)
def _source(name: bytes) -> SocketAddress:
    """What `recvmsg` returns for a sockaddr."""
    (port,) = _PORT.unpack_from(name, 2)
    if int.from_bytes(name[:2], sys.byteorder) == socket.AF_INET:
        return socket.inet_ntoa(name[4:8]), port
    (flow,), (scope,) = _FLOW.unpack_from(name, 4), _SCOPE.unpack_from(name, 24)
    return socket.inet_ntop(socket.AF_INET6, name[8:24]), port, flow, scope


def _column(memory: memoryview, kind: Literal["I", "P"], offset: int) -> memoryview[int]:
    """The field at this offset of all headers; a size_t is as long as a pointer."""
    size = struct.calcsize(f"@{kind}")
    return memory.cast(kind)[offset // size :: ctypes.sizeof(_Slot) // size]


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
