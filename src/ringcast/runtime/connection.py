"""One TCP connection: datagrams with their lengths, and a hello that says who speaks.

Any thread may queue and flush, one at a time: it holds the transport's lock. Whoever receives reads
without that lock, and closes with it; so nothing is closed under the feet of a sender.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.outbox import Datagram
from ringcast.errors import RingcastError

LENGTH_MAX = 1 << 20
"""The largest datagram that a peer may announce, in bytes; larger ones end the connection."""
READ_SIZE = 1 << 20
"""Bytes that one read takes at the most."""
CHUNK_SIZE = 1 << 21
"""Datagrams are sent in chunks of up to so many bytes: each chunk wakes its receiver once."""
GATHER_SIZE = 8_192
"""Buffers larger than this on average are sent by scatter/gather; smaller ones are joined first."""
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


class Chunk(NamedTuple):
    """Datagrams with their lengths, as the network gets them."""

    buffers: Sequence[Payload]
    nbytes: int
    datagrams: int
    """How many there are."""


def chunks(datagrams: Iterable[Datagram], size: int) -> Iterator[Chunk]:
    """Datagrams in chunks of about so many bytes; one that is larger is a chunk by itself."""
    buffers: list[Payload] = []
    nbytes = count = 0
    for datagram in datagrams:
        framed = LENGTH.size + datagram.nbytes
        if count and nbytes + framed > size:
            yield _chunk(buffers, nbytes, count)
            buffers, nbytes, count = [], 0, 0
        buffers.append(LENGTH.pack(datagram.nbytes))
        buffers += datagram.buffers
        nbytes += framed
        count += 1
    if count:
        yield _chunk(buffers, nbytes, count)


def _chunk(buffers: list[Payload], nbytes: int, count: int) -> Chunk:
    if nbytes < GATHER_SIZE * len(buffers):
        return Chunk((b"".join(buffers),), nbytes, count)
    return Chunk(buffers, nbytes, count)


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
        self.rest = b""
        """The beginning of a datagram, while another connection uses the buffer."""

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
            try:
                if len(queue) == 1:
                    sent = self.sock.send(queue[0])
                else:
                    sent = self.sock.sendmsg(list(islice(queue, GATHER_MAX)))
            except (BlockingIOError, InterruptedError):
                return
            self._queued -= sent
            self._advance(sent)
        if self.retiring:
            self.sock.shutdown(socket.SHUT_WR)

    def _advance(self, sent: int) -> None:
        queue = self._queue
        while queue and len(queue[0]) <= sent:  # An empty one goes with the one before it.
            sent -= len(queue.popleft())
        if sent:
            queue[0] = memoryview(queue[0])[sent:]

    def drop_queue(self) -> int:
        """Forget what waits; how many bytes that was."""
        dropped, self._queued = self._queued, 0
        self._queue.clear()
        return dropped


class ReadBuffer:
    """Where connections read into, one after the other.

    What is left of a datagram stays here until the rest of it comes, or until another connection
    reads: then it is put aside.
    """

    def __init__(self) -> None:
        self._view = memoryview(bytearray(LENGTH_MAX + LENGTH.size + READ_SIZE))
        self._begin = self._end = 0
        """What was read and not cut yet; after `cut`, the beginning of a datagram at the most."""
        self._reader: Connection | None = None

    def __len__(self) -> int:
        return self._end - self._begin

    def read(self, connection: Connection) -> None:
        """Read what is there behind what was left over. What was cut before is no longer good.

        Raises Broken at the end of the stream, OSError when the connection is over.
        """
        view = self._view
        if self._reader is not connection:
            self._change(connection)
        elif self._begin:  # To the front, where the memory is in the cache.
            rest = self._end - self._begin
            view[:rest] = view[self._begin : self._end]
            self._begin, self._end = 0, rest
        try:
            count = connection.sock.recv_into(view[self._end : self._end + READ_SIZE])
        except (BlockingIOError, InterruptedError):
            return
        if count == 0:
            raise Broken("closed_by_peer")
        self._end += count

    def _change(self, reader: Connection) -> None:
        if self._reader is not None:
            self._reader.rest = bytes(self._view[self._begin : self._end])
        self._begin, self._end = 0, len(reader.rest)
        self._view[: self._end] = reader.rest
        self._reader, reader.rest = reader, b""

    def forget(self, connection: Connection) -> None:
        """A connection is over: nothing is kept for it."""
        if self._reader is connection:
            self._reader = None

    def take(self, size: int) -> memoryview:
        """The first so many bytes, which have to be there."""
        begin, self._begin = self._begin, self._begin + size
        return self._view[begin : self._begin]

    def cut(self) -> list[memoryview]:
        """The whole datagrams that are there, as views that are good until the next `read`.

        Raises Broken.
        """
        view, at, end = self._view, self._begin, self._end
        datagrams: list[memoryview] = []
        while end - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(view, at)
            if size > LENGTH_MAX:
                raise Broken("dropped_oversized")
            behind = at + LENGTH.size + size
            if behind > end:
                break
            datagrams.append(view[at + LENGTH.size : behind])
            at = behind
        self._begin = at
        return datagrams


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
