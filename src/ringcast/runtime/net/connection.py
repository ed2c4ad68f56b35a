"""One TCP connection: datagrams with their lengths, and a hello with the sender's address.

Any thread may queue and flush while it holds the transport's lock. The receiving thread reads
without that lock, and closes with it; so no connection is closed while another thread sends.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from ringcast.closed.handshake import Handshake
from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.wire.layout import EVERYBODY
from ringcast.core.wire.outbox import Datagram
from ringcast.errors import ConfigError, RemoteError
from ringcast.runtime.net.endpoints import SocketAddress, bind_failed
from ringcast.runtime.net.stream.broken import Broken
from ringcast.runtime.net.stream.tls import TlsContexts, TlsStream
from ringcast.runtime.net.transport import Guard

BACKLOG = 128
LENGTH_MAX = 1 << 20
"""The largest datagram that a peer may announce, in bytes; larger ones end the connection."""
READ_SIZE = 1 << 20
"""Bytes that one read takes at the most."""
CHUNK_SIZE = 1 << 21
"""Datagrams are sent in chunks of up to this many bytes: each chunk wakes its receiver once."""
GATHER_SIZE = 8_192
"""Buffers larger than this on average are sent by scatter/gather; smaller ones are joined first."""
GATHER_MAX = 512
"""The most buffers for one system call; the kernel takes 1,024."""
VERSION = 1

LOW_MARK = 32_768
"""Of a datagram that arrives in pieces while others are read, at least this many bytes are read at
a time; or two senders of single bytes would have its beginning copied for each byte."""
SOURCE = slice(12, 20)
"""Where the header of a datagram (core.wire.codec) has its source."""

LENGTH = struct.Struct("!I")
_HELLO = struct.Struct("!4sB3xQQ")
_MAGIC, _CLOSED_MAGIC = b"RCtc", b"RCts"
_TLS_MAGIC = b"\x16\x03"


RESEND_OPTION, RESEND_PAUSE_MS_MAX = 44, 1_000
"""TCP_RTO_MAX_MS: the longest pause of the kernel before it sends again. By default it is minutes,
and a connection would sleep through the end of a partition."""


def connect(family: int, address: SocketAddress) -> socket.socket | int:
    """A socket that connects; the number of the error when that fails at once."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        return error.errno or errno.EMFILE
    sock.setblocking(False)
    code = sock.connect_ex(address)
    if code in (0, errno.EINPROGRESS):
        return sock
    sock.close()
    return code


def listen(family: int, host: str, port: int) -> socket.socket:
    """A socket that takes calls. Raises ConfigError with what to change."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(bind_failed(error, host, port)) from None
    listener.setblocking(False)
    return listener


def tune(sock: socket.socket, stall_timeout: float) -> None:
    """Send small datagrams at once, and end a connection that the network has forgotten."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(stall_timeout * 1000))
    with contextlib.suppress(OSError):  # A kernel before 6.15.
        sock.setsockopt(socket.IPPROTO_TCP, RESEND_OPTION, RESEND_PAUSE_MS_MAX)


class ConnectionState(Enum):
    """How far a connection is."""

    CONNECTING = "connecting"
    """This side has called, and the network has not answered."""
    OPEN = "open"
    """The network is ready, and the other side has not said hello."""
    KNOWN = "known"
    """The other side has said hello."""


class StreamChunk(NamedTuple):
    """Datagrams with their lengths, as the network gets them."""

    buffers: Sequence[Payload]
    nbytes: int
    datagrams: int
    """How many there are."""


def chunks(datagrams: Iterable[Datagram], size: int) -> Iterator[StreamChunk]:
    """Datagrams in chunks of about this many bytes; a larger one is a chunk by itself."""
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


def _chunk(buffers: list[Payload], nbytes: int, count: int) -> StreamChunk:
    if nbytes < GATHER_SIZE * len(buffers):
        return StreamChunk((b"".join(buffers),), nbytes, count)
    return StreamChunk(buffers, nbytes, count)


class Connection:
    """A connection and what waits to be sent over it."""

    def __init__(
        self,
        sock: socket.socket,
        endpoint: str | None,
        until: float,
        tls: TlsContexts | None = None,
    ) -> None:
        self.sock = sock
        self._tls = None if tls is None else TlsStream(sock, tls, endpoint is not None)
        self.stream: socket.socket | TlsStream = sock if self._tls is None else self._tls
        """What is written and read: the socket, or what encrypts for it."""
        self.fd = sock.fileno()
        self.endpoint = endpoint
        """Where we called; None when the other side did."""
        self.until = until
        """When it is given up if the other side has not said who it is by then."""
        self.state = ConnectionState.OPEN if endpoint is None else ConnectionState.CONNECTING
        self.address: Address | None = None
        self.retiring = False
        """Set when the pair's other connection is used: this one ends when its queue is empty."""
        self.waits_to_write = False
        """Whether the transport asked to be told when there is room."""
        self._queue: deque[Payload] = deque()
        self._queued = 0
        self.rest = b""
        """The beginning of a datagram, while another connection uses the buffer."""
        self.heard_at = until
        """When something was read last."""
        self.known_at = 0.0
        """When the other side said who it is."""
        self.source = b""
        """The address of the other side as headers have it."""
        self._low_mark = 1
        self.handshake: Handshake | None = None
        """The hello of a closed group, until it is over: what is queued waits for it."""
        self.greeting = b""
        """What is left to be said of it."""

    def set_low_mark(self, size: int) -> None:
        """Be told of arriving bytes only when there are this many, or the stream ends."""
        if size != self._low_mark and self._tls is None:  # TLS may have read a part already.
            self._low_mark = size
            with contextlib.suppress(OSError):  # It is over, which the next read finds.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def probe(self) -> None:
        """Have the kernel find out within seconds whether the other side is still there."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
                self.sock.setsockopt(socket.IPPROTO_TCP, option, 1)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)

    # The hello ------------------------------------------------------------------------------------

    def greet(
        self, group: int, me: Address, guard: Guard | None, nonces: dict[bytes, None]
    ) -> None:
        """Begin the hello: of an open group, or with the guard of a closed one."""
        if guard is None:
            self.queue([encode_hello(group, me)], HELLO_SIZE)
        else:
            self.handshake = Handshake(guard, me, self.endpoint is not None, nonces)
            self.greeting = self.handshake.first

    def read_hello(self, buffer: ReadBuffer, group: int) -> Address | None:
        """Who speaks, once that is known; flush afterwards. Raises Broken."""
        handshake = self.handshake
        if handshake is None:
            if buffer.begins_with(_TLS_MAGIC):
                raise Broken("dropped_tls")
            is_there = len(buffer) >= HELLO_SIZE
            return decode_hello(buffer.take(HELLO_SIZE), group) if is_there else None
        if buffer.begins_with(_TLS_MAGIC):
            raise Broken("dropped_tls")
        if buffer.begins_with(_MAGIC):  # It is shorter than the hello that is expected here.
            raise Broken("dropped_unsealed")
        try:
            while handshake.address is None and len(buffer) >= handshake.size:
                self.greeting += handshake.feed(bytes(buffer.take(handshake.size)))
        except RemoteError as error:
            raise Broken(f"dropped_{error.reason}") from None
        if handshake.address is not None:
            self.handshake = None
        return handshake.address

    # Sending --------------------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Bytes that wait."""
        return self._queued

    @property
    def has_to_write(self) -> bool:
        """Whether something could leave if the network took it."""
        tls = self._tls
        if tls is not None and (tls.has_to_write or not tls.is_ready):
            return tls.has_to_write
        return bool(self.greeting) or (self._queued > 0 and self.handshake is None)

    def queue(self, buffers: Sequence[Payload], nbytes: int) -> None:
        """Queue buffers with `nbytes` in all."""
        self._queue.extend(buffers)
        self._queued += nbytes

    def flush(self) -> None:
        """Send what the network takes now. Raises OSError when the connection is over."""
        tls = self._tls
        if tls is not None:
            tls.flush()
        if self.greeting:
            with contextlib.suppress(BlockingIOError, InterruptedError):
                self.greeting = self.greeting[self.stream.send(self.greeting) :]
        if self.greeting or self.handshake is not None:
            return
        queue = self._queue
        while queue:
            try:
                if tls is not None:
                    sent = tls.send(queue[0])
                elif len(queue) == 1:
                    sent = self.sock.send(queue[0])
                else:
                    sent = self.sock.sendmsg(list(islice(queue, GATHER_MAX)))
            except (BlockingIOError, InterruptedError):
                return
            self._queued -= sent
            self._advance(sent)
        if self.retiring and (tls is None or not tls.has_to_write):
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

    def read(self, connection: Connection, limit: int = READ_SIZE) -> int:
        """Read up to `limit` bytes behind the rest of the last read; how many there were.

        Views that `cut` returned before are no longer valid.

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
            count = connection.stream.recv_into(view[self._end : self._end + limit])
        except (BlockingIOError, InterruptedError):
            return 0
        if count == 0:
            raise Broken("closed_by_peer")
        self._end += count
        return count

    def _change(self, reader: Connection) -> None:
        if self._reader is not None:
            self._reader.rest = rest = bytes(self._view[self._begin : self._end])
            if len(rest) >= LOW_MARK:
                missing = LENGTH.size + LENGTH.unpack_from(rest)[0] - len(rest)
                self._reader.set_low_mark(max(1, min(missing, LOW_MARK)))
        reader.set_low_mark(1)
        self._begin, self._end = 0, len(reader.rest)
        self._view[: self._end] = reader.rest
        self._reader, reader.rest = reader, b""

    def forget(self, connection: Connection) -> None:
        """A connection is over: nothing is kept for it."""
        if self._reader is connection:
            self._reader = None

    def begins_with(self, prefix: bytes) -> bool:
        """Whether what was read and not taken yet begins so."""
        return self._view[self._begin : self._end][: len(prefix)] == prefix

    def take(self, size: int) -> memoryview:
        """The first `count` bytes, which must have arrived."""
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
    if magic == _CLOSED_MAGIC:
        raise Broken("dropped_sealed")
    if magic != _MAGIC:
        raise Broken("dropped_no_hello")
    if version != VERSION:
        raise Broken("dropped_wrong_version")
    if its_group != group:
        raise Broken("dropped_wrong_group")
    if address == EVERYBODY:
        raise Broken("dropped_no_hello")
    return Address(address)
