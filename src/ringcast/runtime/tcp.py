"""TCP: one port for everything, a connection per pair of members, for networks without multicast.

- Whoever has something to send connects; nothing waits for it but the queue of that one member,
  which is bounded.
- When both sides call at the same time, the call of the lower address stays. The other side's is
  still read, and ends when what was queued on it has been sent: nothing is lost in the change.
- A member that cannot be reached is called again when there is something for it, after a pause that
  doubles.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import random
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from ringcast.core.address import Address, Peer
from ringcast.core.outbox import Datagram
from ringcast.errors import ConfigError
from ringcast.runtime.connection import (
    CHUNK_SIZE,
    HELLO_SIZE,
    Broken,
    Connection,
    ReadBuffer,
    State,
    chunks,
    decode_hello,
    encode_hello,
)
from ringcast.runtime.endpoints import Resolver, advertised_host, bind_host, join_endpoint
from ringcast.runtime.table import Calls, Table
from ringcast.transports import Tcp

BACKLOG = 128
READ = select.EPOLLIN
WRITE = select.EPOLLOUT
RESEND_OPTION, RESEND_PAUSE_MS_MAX = 44, 1_000
"""TCP_RTO_MAX_MS: how long the kernel pauses at the most before it tries again. Left to itself it
goes on for minutes, and a connection would sleep through the end of a partition."""
ACCEPT_PAUSE = 0.5
"""Seconds without new connections when there are as many as allowed."""

_target = attrgetter("target")
_ELSEWHERE = {4: "192.0.2.1", 6: "2001:db8::1"}
_HELP = {
    "dropped_wrong_group": "it belongs to another group",
    "dropped_wrong_version": "it speaks another version of the protocol: update one of the two",
    "dropped_no_hello": "it is no member of a group",
}

log = logging.getLogger("ringcast.tcp")


class TcpTransport:
    """Datagrams over TCP connections."""

    def __init__(self, spec: Tcp) -> None:
        self.spec = spec
        self.counters: Counter[str] = Counter()
        self.endpoint = ""
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._epoll: select.epoll | None = None
        self._buffer = ReadBuffer()
        self._chunk_size = min(CHUNK_SIZE, spec.queue_bytes // 8)
        self._accept_at = self._due = float("inf")
        self._complained: set[str] = set()

    # Opening --------------------------------------------------------------------------------------

    def open(self, me: Address, group: int) -> None:
        """Listen. Raises ConfigError with what to change."""
        spec = self.spec
        reach = _ELSEWHERE[6 if ":" in spec.bind else 4]
        host = bind_host(spec.bind, reach)
        self._me, self._group = me, group
        self._hello = encode_hello(group, me)
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._resolver = Resolver(self._family)
        self._table = Table(me)
        self._calls = Calls(spec.retry_max)
        self._listener = listener = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, spec.port))
            listener.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise ConfigError(_bind_failed(error, host, spec.port)) from None
        listener.setblocking(False)
        port = int(listener.getsockname()[1])
        self.endpoint = join_endpoint(spec.advertise or advertised_host(host, reach), port)
        try:
            self._epoll = select.epoll()
        except OSError:
            self.close()
            raise
        self._epoll.register(listener.fileno(), READ)

    def close(self) -> None:
        """Close everything."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        if self._epoll is not None:
            for connection in self._table:
                connection.sock.close()
            self._epoll.close()
            self._epoll = None

    def filenos(self) -> tuple[int, ...]:
        """The descriptor that says when something has come."""
        assert self._epoll is not None
        return (self._epoll.fileno(),)

    # Sending --------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        return dict(self.counters)

    def learn(self, peer: Peer) -> None:
        """Remember where a member is."""
        with self._lock:
            self._table.learn(peer)

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Queue for each target, then send what the network takes at once."""
        with self._lock:
            for target, group in groupby(datagrams, _target):
                run = list(group)
                self._send(run, self._connections(target, members, len(run)))

    def _send(self, datagrams: Sequence[Datagram], connections: Sequence[Connection]) -> None:
        # Chunk by chunk and not connection by connection: a chunk is made once, is in the cache
        # when the next member gets it, and its memory is there for the next chunk. Many that are
        # alive at a time would have the kernel hand out new pages for each call.
        for chunk in chunks(datagrams, self._chunk_size):
            for connection in connections:
                queued = connection.queued  # Where nothing waits, a chunk of any size may.
                if queued and queued + chunk.nbytes > self.spec.queue_bytes:
                    self.counters["dropped_queue_full"] += chunk.datagrams
                    continue
                connection.queue(chunk.buffers, chunk.nbytes)
                self._flush(connection)
                self.counters["sent_datagrams"] += chunk.datagrams
                self.counters["sent_bytes"] += chunk.nbytes
            del chunk

    def _connections(
        self, target: Address | str | None, members: Sequence[Address], datagrams: int
    ) -> Sequence[Connection]:
        """Where so many datagrams go; those that go nowhere are counted."""
        if target is None:
            found = [self._connection(to, datagrams) for to in members if to != self._me]
        else:
            found = [self._connection(target, datagrams)]
        return [connection for connection in found if connection is not None]

    def _connection(self, target: Address | str, datagrams: int) -> Connection | None:
        """The connection to a member or endpoint; made when there is none and it is time to try."""
        connection = self._table.find(target)
        if connection is not None:
            return connection
        endpoint = target if isinstance(target, str) else self._table.endpoint(target)
        if endpoint is None or self._table.is_taken(endpoint):
            self.counters["dropped_unknown_target"] += datagrams
        elif not self._calls.may(endpoint, time.monotonic()):
            self.counters["dropped_unreachable"] += datagrams
        else:
            return self._call(endpoint, datagrams)
        return None

    def _call(self, endpoint: str, datagrams: int) -> Connection | None:
        now = time.monotonic()
        addresses = self._resolver.lookup(endpoint)
        if not addresses or len(self._table) >= self.spec.connections_max:
            self.counters["dropped_unreachable"] += datagrams
            return None
        sock = socket.socket(self._family, socket.SOCK_STREAM)
        sock.setblocking(False)
        code = sock.connect_ex(addresses[self._calls.failures(endpoint) % len(addresses)])
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            self._calls.failed(endpoint, now)
            self.counters["dropped_unreachable"] += datagrams
            return None
        self.counters["calls"] += 1
        return self._begin(Connection(sock, endpoint, now + self.spec.connect_timeout))

    def _begin(self, connection: Connection) -> Connection:
        sock = connection.sock
        assert self._epoll is not None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        milliseconds = int(self.spec.stall_timeout * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        with contextlib.suppress(OSError):  # A kernel before 6.15.
            sock.setsockopt(socket.IPPROTO_TCP, RESEND_OPTION, RESEND_PAUSE_MS_MAX)
        connection.queue([self._hello], HELLO_SIZE)
        connection.waits_to_write = True
        self._table.add(connection)
        self._remind()
        self._epoll.register(connection.fd, READ | WRITE)
        return connection

    def _flush(self, connection: Connection) -> None:
        if connection.state is State.CONNECTING:
            return
        try:
            connection.flush()
        except OSError:
            self.counters["dropped_bytes"] += connection.drop_queue()
            return  # The next `receive` finds it broken, and closes it.
        waits = connection.queued > 0
        if waits != connection.waits_to_write:
            connection.waits_to_write = waits
            assert self._epoll is not None
            self._epoll.modify(connection.fd, READ | WRITE if waits else READ)

    # Receiving ------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """When a silent connection is given up, or new ones are accepted again."""
        return self._due

    def receive(self, limit: int) -> Iterator[memoryview]:
        """A read of each connection that is ready; new ones are accepted, silent ones given up."""
        assert self._listener is not None
        assert self._epoll is not None
        for fd, events in self._epoll.poll(0):
            if fd == self._listener.fileno():
                self._accept()
            elif (connection := self._table.by_fd(fd)) is not None:
                received = self._serve(connection, events)
                self.counters["received_datagrams"] += len(received)
                self.counters["received_bytes"] += sum(map(len, received))
                yield from received
        if (now := time.monotonic()) >= self._due:
            self._give_up(now)

    def _serve(self, connection: Connection, events: int) -> Sequence[memoryview]:
        try:
            if connection.state is State.CONNECTING:
                self._connected(connection)
            if events & WRITE:
                with self._lock:
                    self._flush(connection)
            return self._read(connection) if events & ~WRITE else ()
        except Broken as error:
            self._end(connection, error.reason)
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "error").lower()
            self._end(connection, f"ended_{name}")
        return ()

    def _connected(self, connection: Connection) -> None:
        code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, "cannot connect")
        connection.state = State.OPEN

    def _read(self, connection: Connection) -> Sequence[memoryview]:
        buffer = self._buffer
        buffer.read(connection)
        if connection.state is not State.KNOWN:
            if len(buffer) < HELLO_SIZE:
                return ()
            address = decode_hello(buffer.take(HELLO_SIZE), self._group)
            with self._lock:
                self._introduce(connection, address)
        return buffer.cut()

    def _introduce(self, connection: Connection, address: Address) -> None:
        if address == self._me:
            raise Broken("dropped_own_call")
        connection.state = State.KNOWN
        if connection.endpoint is not None:
            self._calls.succeeded(connection.endpoint)
        retired = self._table.introduce(connection, address)
        self._remind()
        if retired is not None and not retired.queued:
            self._flush(retired)

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # Out of descriptors, or the caller has gone.
                self._pause_accepting()
                return
            if len(self._table) >= self.spec.connections_max:
                sock.close()
                self._pause_accepting()
                return
            sock.setblocking(False)
            until = time.monotonic() + self.spec.connect_timeout
            with self._lock:
                self._begin(Connection(sock, None, until))

    def _pause_accepting(self) -> None:
        assert self._listener is not None
        assert self._epoll is not None
        self.counters["refused_connections"] += 1
        self._epoll.unregister(self._listener.fileno())
        self._accept_at = time.monotonic() + ACCEPT_PAUSE
        with self._lock:
            self._remind()

    def _give_up(self, now: float) -> None:
        if now >= self._accept_at:
            self._accept_at = float("inf")
            assert self._listener is not None
            assert self._epoll is not None
            self._epoll.register(self._listener.fileno(), READ)
        with self._lock:
            silent = self._table.silent(now)
            self._remind()
        for connection in silent:
            self._end(connection, "ended_silent")

    def _remind(self) -> None:
        """Note when `receive` is due if nothing comes. Whoever changes that holds the lock."""
        self._due = min(self._table.deadline, self._accept_at)

    def _end(self, connection: Connection, reason: str) -> None:
        """Close, forget, and remember when to call again."""
        endpoint = connection.endpoint
        self._buffer.forget(connection)
        with self._lock:
            self.counters[reason] += 1
            self.counters["dropped_bytes"] += connection.drop_queue()
            self._table.remove(connection)
            self._remind()
            if endpoint is not None and not connection.retiring:
                self._calls.failed(endpoint, time.monotonic(), random.uniform(0.75, 1.25))
            assert self._epoll is not None
            self._epoll.unregister(connection.fd)
            connection.sock.close()
        if reason in _HELP and reason not in self._complained:
            self._complained.add(reason)
            who = endpoint or "a caller"
            log.warning(
                "ended the connection with %s: %s; said once, counted as %s",
                who,
                _HELP[reason],
                reason,
            )


def _bind_failed(error: OSError, host: str, port: int) -> str:
    endpoint = join_endpoint(host, port)
    if error.errno == errno.EADDRINUSE:
        return f"{endpoint} is in use by another program: choose another port, or 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{endpoint} is not an address of this machine: `ip address` lists those for bind"
    return f"cannot listen at {endpoint} ({error.strerror}): choose another address or port"
