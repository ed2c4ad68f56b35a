"""One TCP connection: datagrams with their lengths, and a hello that says who speaks.

Any thread may queue and flush, one at a time: it holds the transport's lock. Whoever receives reads
without that lock, and closes with it; so nothing is closed under the feet of a sender.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import islice

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.errors import RingcastError

LENGTH_MAX = 1 << 20
"""The largest datagram that a peer may announce, in bytes; larger ones end the connection."""
READ_SIZE = 1 << 20
"""Bytes that one read takes at the most."""
GATHER_MAX = 512
"""The most buffers for one system call; the kernel takes 1,024."""
VERSION = 1

LENGTH = struct.Struct("!I")
_HELLO = struct.Struct("!4sB3xQQ")
_MAGIC = b"RCtc"


class Broken(RingcastError):
    """The connection is over; `reason` is the name of a counter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class State(Enum):
    """How far a connection is."""

    CONNECTING = "connecting"
    """We have called, and the network has not answered."""
    OPEN = "open"
    """The network is ready, and the other side has not said who it is."""
    KNOWN = "known"
    """The other side has said who it is."""


class ReadBuffer:
    """Where connections read into, one after the other."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(LENGTH_MAX + LENGTH.size + READ_SIZE))


class Connection:
    """A connection and what waits to be sent over it."""

    def __init__(self, sock: socket.socket, endpoint: str | None, until: float) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.endpoint = endpoint
        """Where we called; None when the other side did."""
        self.until = until
        """When it is given up if the other side has not said who it is by then."""
        self.state = State.OPEN if endpoint is None else State.CONNECTING
        self.address: Address | None = None
        self.retiring = False
        """Set when the pair's other connection is used: this one ends when its queue is empty."""
        self.waits_to_write = False
        """Whether the transport asked to be told when there is room."""
        self._queue: deque[Payload] = deque()
        self._queued = 0
        self._rest = b""

    # Sending --------------------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Bytes that wait."""
        return self._queued

    def queue(self, buffers: Sequence[Payload], nbytes: int) -> None:
        """Queue buffers with `nbytes` in all."""
        self._queue.extend(buffers)
        self._queued += nbytes

    def flush(self) -> None:
        """Send what the network takes now. Raises OSError when the connection is over."""
        queue = self._queue
        while queue:
            batch = list(islice(queue, GATHER_MAX))
            try:
                sent = self.sock.sendmsg(batch)
            except (BlockingIOError, InterruptedError):
                return
            self._queued -= sent
            self._advance(sent)
        if self.retiring:
            self.sock.shutdown(socket.SHUT_WR)

    def _advance(self, sent: int) -> None:
        queue = self._queue
        while sent:
            size = len(queue[0])
            if size > sent:
                queue[0] = memoryview(queue[0])[sent:]
                return
            sent -= size
            queue.popleft()

    def drop_queue(self) -> int:
        """Forget what waits; how many bytes that was."""
        dropped, self._queued = self._queued, 0
        self._queue.clear()
        return dropped

    # Receiving ------------------------------------------------------------------------------------

    def read(self, buffer: ReadBuffer) -> tuple[memoryview, int]:
        """Read what is there behind what was left over; the buffer and how much of it is filled.

        Raises Broken at the end of the stream, OSError when the connection is over.
        """
        view, rest = buffer.view, len(self._rest)
        view[:rest] = self._rest
        try:
            count = self.sock.recv_into(view[rest : rest + READ_SIZE])
        except (BlockingIOError, InterruptedError):
            return view, rest
        if count == 0:
            raise Broken("closed_by_peer")
        return view, rest + count

    def cut(self, view: memoryview, filled: int, at: int) -> list[memoryview]:
        """The whole datagrams in a buffer, as views of it; the rest is kept for the next read.

        Raises Broken.
        """
        datagrams: list[memoryview] = []
        while filled - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(view, at)
            if size > LENGTH_MAX:
                raise Broken("dropped_oversized")
            end = at + LENGTH.size + size
            if end > filled:
                break
            datagrams.append(view[at + LENGTH.size : end])
            at = end
        self._rest = bytes(view[at:filled])
        return datagrams

    def keep(self, view: memoryview, filled: int) -> None:
        """Keep everything for the next read."""
        self._rest = bytes(view[:filled])


# The hello ----------------------------------------------------------------------------------------

HELLO_SIZE = _HELLO.size


def encode_hello(group: int, me: Address) -> bytes:
    """What each side says first."""
    return _HELLO.pack(_MAGIC, VERSION, group, me)


def decode_hello(view: memoryview, group: int) -> Address:
    """Who speaks. Raises Broken when it is nobody for us."""
    magic, version, its_group, address = _HELLO.unpack_from(view)
    if magic != _MAGIC:
        raise Broken("dropped_no_hello")
    if version != VERSION:
        raise Broken("dropped_wrong_version")
    if its_group != group:
        raise Broken("dropped_wrong_group")
    return Address(address)
