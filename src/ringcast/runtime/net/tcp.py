"""TCP: one port for everything, a connection per pair of members, for networks without multicast.

- A member that has something to send connects; only the queue of that one peer waits for it, and
  that is bounded.
- When both sides call at the same time, the call of the lower address stays. The other call is
  still read, and ends when its queue has been sent: nothing is lost in the change.
- A peer that cannot be reached is called again when there is something for it, after a pause that
  doubles.
- Connections of strangers are limited (`stranger_limits`).
"""

from __future__ import annotations

import errno
import logging
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.layout import MAGIC
from ringcast.core.wire.outbox import MTU, TRAIN_MAX, Datagram
from ringcast.runtime.net.connection import (
    CHUNK_SIZE,
    SOURCE,
    Connection,
    ConnectionState,
    ReadBuffer,
    chunks,
    connect,
    listen,
    tune,
)
from ringcast.runtime.net.endpoints import (
    ELSEWHERE,
    Resolver,
    advertised_host,
    bind_host,
    join_endpoint,
)
from ringcast.runtime.net.stranger_limits import StrangerLimits, connections_allowed
from ringcast.runtime.net.stream.broken import BROKEN_TEXT, Broken
from ringcast.runtime.net.stream.connections import ConnectionTable, RetrySchedule
from ringcast.runtime.net.stream.tls import TlsContexts, tls_contexts
from ringcast.runtime.net.transport import Guard
from ringcast.runtime.system.poller import READ, WRITE, Poller, make_poller
from ringcast.transports import Tcp

ACCEPT_PAUSE, TURN_PAUSE = 0.5, 0.1
"""Seconds without new connections when there are as many as allowed, or when too many call."""

log = logging.getLogger("ringcast.tcp")


class TcpTransport:
    """Datagrams over TCP connections."""

    shrunk = 0
    train_bytes = TRAIN_MAX

    def __init__(self, spec: Tcp) -> None:
        self.spec = spec
        self.counters: Counter[str] = Counter()
        self.endpoint, self.mtu, self.hints = "", MTU, list[str]()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._poller: Poller | None = None
        self._buffer = ReadBuffer()
        self._chunk_size = min(CHUNK_SIZE, spec.queue_bytes // 8)
        self._limits = StrangerLimits()
        self._guard: Guard | None = None
        self._tls: TlsContexts | None = None
        self._nonces: dict[bytes, None] = {}
        self._accept_at = self._due = float("inf")
        self._complained: set[str] = set()

    # Opening --------------------------------------------------------------------------------------

    def secure(self, guard: Guard, /) -> None:
        """Let callers prove that they have a key."""
        self._guard = guard

    def open(self, me: Address, group: int) -> None:
        """Listen. Raises ConfigError with what to change."""
        spec = self.spec
        reach = ELSEWHERE[6 if ":" in spec.bind else 4]
        host = bind_host(spec.bind, reach)
        self._me, self._group = me, group
        self._tls = tls_contexts(spec)
        self._connections_max = connections_allowed(spec.connections_max)
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._resolver, self._claimed = Resolver(self._family), Resolver(self._family)
        self._table = ConnectionTable(me)
        self._retries = RetrySchedule(spec.retry_max)
        self._listener = listener = listen(self._family, host, spec.port)
        port = int(listener.getsockname()[1])
        self.endpoint = join_endpoint(spec.advertise or advertised_host(host, reach), port)
        try:
            self._poller = make_poller()
        except OSError:
            self.close()
            raise
        self._poller.register(listener.fileno(), READ)

    def close(self) -> None:
        """Close everything."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        if self._poller is not None:
            for connection in self._table:
                connection.sock.close()
            self._poller.close()
            self._poller = None

    def forbid_fragments(self) -> None:
        """Nothing: a stream has no packets."""

    def offers(self) -> dict[str, bool]:
        """Nothing that matters here."""
        return {}

    def filenos(self) -> tuple[int, ...]:
        """The descriptor that is readable when something has arrived."""
        assert self._poller is not None
        return (self._poller.fileno(),)

    # Sending --------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        return dict(self.counters)

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is."""
        with self._lock:
            self._table.learn(peer, is_claim)

    def use(self, placement: object, /) -> None:
        """Nothing: datagrams of this transport are copied from a buffer of its own."""

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Queue for each target, then send what the network takes at once."""
        with self._lock:
            if members is not self._limits.members and members:
                self._limits.view(members, time.monotonic())
                self._remind()
            for target, group in groupby(datagrams, attrgetter("target")):
                run = list(group)
                self._send(run, self._connections(target, members, len(run)))

    def _send(self, datagrams: Sequence[Datagram], connections: Sequence[Connection]) -> None:
        # Chunk by chunk and not connection by connection: a chunk is made once, is in the cache
        # for the next member, and its memory is reused for the next chunk. Many chunks alive at a
        # time would make the kernel hand out new pages for each call.
        for chunk in chunks(datagrams, self._chunk_size):
            for connection in connections:
                queued = connection.queued  # Where nothing waits, a chunk of any size may.
                if queued and not self._may_wait(connection, chunk.nbytes):
                    self.counters["dropped_queue_full"] += chunk.datagrams
                    continue
                connection.queue(chunk.buffers, chunk.nbytes)
                self._flush(connection)
                self.counters["sent_datagrams"] += chunk.datagrams
                self.counters["sent_bytes"] += chunk.nbytes
            del chunk

    def _may_wait(self, connection: Connection, nbytes: int) -> bool:
        fits = connection.queued + nbytes <= self.spec.queue_bytes
        return fits and self._limits.may_wait(connection, nbytes, self._table)

    def _connections(
        self, target: Address | str | None, members: Sequence[Address], datagrams: int
    ) -> Sequence[Connection]:
        """The connections for this many datagrams; datagrams without one are counted."""
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
        now = time.monotonic()
        if endpoint is None or self._table.is_taken(endpoint):
            self.counters["dropped_unknown_target"] += datagrams
        elif not (self._retries.may(endpoint, now) and self._limits.may_call(target, now)):
            self.counters["dropped_unreachable"] += datagrams
        else:
            is_own = isinstance(target, str) or target in self._limits.members
            resolver = self._resolver if is_own else self._claimed
            return self._call(endpoint, resolver, datagrams, now)
        return None

    def _call(
        self, endpoint: str, resolver: Resolver, datagrams: int, now: float
    ) -> Connection | None:
        sock: socket.socket | int = 0
        addresses = resolver.lookup(endpoint)
        if addresses and len(self._table) < self._connections_max:
            attempt = self._retries.failures(endpoint)
            sock = connect(self._family, addresses[attempt % len(addresses)])
            if isinstance(sock, int):
                self._retries.failed(endpoint, now)
        if isinstance(sock, int):
            if sock == errno.ECONNREFUSED:
                self.hints.append(endpoint)
            self.counters["dropped_unreachable"] += datagrams
            return None
        self.counters["calls"] += 1
        return self._begin(Connection(sock, endpoint, now + self.spec.connect_timeout, self._tls))

    def _begin(self, connection: Connection) -> Connection:
        assert self._poller is not None
        tune(connection.sock, self.spec.stall_timeout)
        connection.greet(self._group, self._me, self._guard, self._nonces)
        connection.waits_to_write = True
        self._table.add(connection)
        self._remind()
        self._poller.register(connection.fd, READ | WRITE)
        return connection

    def _flush(self, connection: Connection) -> None:
        if connection.state is ConnectionState.CONNECTING:
            return
        try:
            connection.flush()
        except OSError:
            self.counters["dropped_bytes"] += connection.drop_queue()
            return  # The next `receive` finds it broken, and closes it.
        waits = connection.has_to_write
        if waits != connection.waits_to_write:
            connection.waits_to_write = waits
            assert self._poller is not None
            self._poller.modify(connection.fd, self._interest(connection))

    def _interest(self, connection: Connection) -> int:
        """The events to wait for."""
        read = 0 if connection in self._limits.throttled else READ
        return read | WRITE if connection.waits_to_write else read

    # Receiving ------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """When a silent connection is given up, or new ones are accepted again."""
        return self._due

    def receive(self, limit: int) -> Iterator[memoryview]:
        """A read of each connection that is ready; new ones are accepted, silent ones given up."""
        assert self._listener is not None
        assert self._poller is not None
        for fd, events in self._poller.poll(0):
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
            if connection.state is ConnectionState.CONNECTING:
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
        connection.state = ConnectionState.OPEN

    def _read(self, connection: Connection) -> Sequence[memoryview]:
        buffer, limits, now = self._buffer, self._limits, time.monotonic()
        nbytes = buffer.read(connection, limits.read_size(connection))
        connection.heard_at = now
        if connection.state is not ConnectionState.KNOWN:
            address = connection.read_hello(buffer, self._group)
            with self._lock:
                self._flush(connection)
                if address is None:
                    return ()
                self._introduce(connection, address)
        is_stranger = limits.is_stranger(connection)
        if is_stranger and limits.spend(connection, nbytes, now):
            self._throttle(connection)
        datagrams = buffer.cut()
        if is_stranger and not limits.may_begin(connection, len(buffer), self._table):
            raise Broken("dropped_unfinished")
        source = connection.source
        for datagram in datagrams:
            if datagram[SOURCE] != source:
                if datagram[:2] == MAGIC:
                    raise Broken("dropped_wrong_source")
                if is_stranger:
                    raise Broken("dropped_malformed")
        return datagrams

    def _throttle(self, connection: Connection) -> None:
        """Leave what a stranger sends in the kernel for a while."""
        assert self._poller is not None
        self.counters["throttled_reads"] += 1
        with self._lock:
            self._poller.modify(connection.fd, self._interest(connection))
            self._remind()

    def _introduce(self, connection: Connection, address: Address) -> None:
        if address == self._me:
            raise Broken("dropped_own_call")
        connection.state = ConnectionState.KNOWN
        if connection.endpoint is not None:
            self._retries.succeeded(connection.endpoint)
        retired = self._table.introduce(connection, address, time.monotonic())
        self._remind()
        if retired is not None and not retired.queued:
            self._flush(retired)

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            if not self._limits.may_accept(time.monotonic()):
                self.counters["throttled_accepts"] += 1
                self._pause_accepting(TURN_PAUSE)
                return
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # Out of descriptors, or the caller has gone.
                self.counters["refused_connections"] += 1
                self._pause_accepting(ACCEPT_PAUSE)
                return
            if not self._make_room():
                sock.close()
                self.counters["refused_connections"] += 1
                self._pause_accepting(ACCEPT_PAUSE)
                return
            sock.setblocking(False)
            until = time.monotonic() + self.spec.connect_timeout
            with self._lock:
                self._begin(Connection(sock, None, until, self._tls))

    def _make_room(self) -> bool:
        """End a stranger's connection if there are as many as allowed; False when there is none."""
        if len(self._table) < self._connections_max - 1:
            return True
        silent = self._limits.most_silent(self._table)
        if silent is not None:
            self._end(silent, "ended_for_another")
        return len(self._table) < self._connections_max

    def _pause_accepting(self, seconds: float) -> None:
        assert self._listener is not None
        assert self._poller is not None
        self._poller.unregister(self._listener.fileno())
        self._accept_at = time.monotonic() + seconds
        with self._lock:
            self._remind()

    def _give_up(self, now: float) -> None:
        assert self._poller is not None
        if now >= self._accept_at:
            self._accept_at = float("inf")
            assert self._listener is not None
            self._poller.register(self._listener.fileno(), READ)
        limits = self._limits
        with self._lock:
            silent = self._table.silent(now)
            for connection in limits.resumed() if now >= limits.resume_at else ():
                self._poller.modify(connection.fd, self._interest(connection))
            idle = limits.sweep(list(self._table), now) if now >= limits.sweep_at else []
            self._remind()
        for connection in silent:
            self._end(connection, "ended_silent")
        for connection in idle:
            self._end(connection, "ended_idle")

    def _remind(self) -> None:
        """Set when `receive` is due if nothing arrives. The caller holds the lock."""
        limits = self._limits
        sweep_at = limits.sweep_at if len(self._table) else float("inf")
        self._due = min(self._table.deadline, self._accept_at, limits.resume_at, sweep_at)

    def _end(self, connection: Connection, reason: str) -> None:
        """Close, forget, and remember when to call again."""
        endpoint = connection.endpoint
        self._buffer.forget(connection)
        with self._lock:
            self.counters[reason] += 1
            self.counters["dropped_bytes"] += connection.drop_queue()
            self._table.remove(connection)
            self._limits.throttled.discard(connection)
            self._remind()
            self.hints += self._table.crash_hints(connection, reason)
            if endpoint is not None and not connection.retiring:
                self._retries.failed(endpoint, time.monotonic(), random.uniform(0.75, 1.25))
            assert self._poller is not None
            self._poller.unregister(connection.fd)
            connection.sock.close()
        if reason in BROKEN_TEXT and reason not in self._complained:
            self._complained.add(reason)
            text = "ended the connection with %s: %s; said once, counted as %s"
            log.warning(text, endpoint or "a caller", BROKEN_TEXT[reason], reason)
