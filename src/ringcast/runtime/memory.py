"""A network inside one process, for tests: every open transport hears every other one."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ringcast.core.address import Address, Peer
from ringcast.core.outbox import Datagram

QUEUE_MAX = 4_096
"""Datagrams that wait at one member; more are dropped, as a socket's buffer drops them."""

_registry: dict[str, MemoryTransport] = {}
_registry_lock = threading.Lock()
_numbers = itertools.count(1)


class MemoryTransport:
    """A member's place in the process-wide network."""

    deadline = float("inf")

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.endpoint = ""
        self._endpoints: dict[Address, str] = {}
        self._queue: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._bell = -1

    def open(self, me: Address, group: int) -> None:
        """Take a place."""
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        with _registry_lock:
            self.endpoint = f"memory-{next(_numbers)}"
            _registry[self.endpoint] = self

    def close(self) -> None:
        """Give the place up."""
        with _registry_lock:
            _registry.pop(self.endpoint, None)
        with self._lock:
            bell, self._bell = self._bell, -1
            if bell >= 0:
                os.close(bell)

    def filenos(self) -> tuple[int, ...]:
        """The descriptor that says when something has come."""
        return (self._bell,)

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        return dict(self.counters)

    def learn(self, peer: Peer) -> None:
        """Remember where a member is."""
        self._endpoints[peer.address] = peer.endpoint

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Put copies into the queues of those they are for."""
        for datagram in datagrams:
            data = b"".join(datagram.buffers)
            for transport in self._targets(datagram.target):
                transport.put(data)
        self.counters["sent_datagrams"] += len(datagrams)

    def put(self, data: bytes) -> None:
        """Somebody sends a datagram here."""
        with self._lock:
            if self._bell < 0 or len(self._queue) >= QUEUE_MAX:
                self.counters["dropped_queue_full"] += 1
                return
            self._queue.append(data)
            os.eventfd_write(self._bell, 1)

    def receive(self, limit: int) -> Sequence[bytes]:
        """What has come."""
        queue = self._queue
        with self._lock:
            taken = [queue.popleft() for _ in range(min(limit, len(queue)))]
            if not queue:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
        self.counters["received_datagrams"] += len(taken)
        return taken

    def _targets(self, target: Address | str | None) -> Iterable[MemoryTransport]:
        with _registry_lock:
            if target is None:
                return [other for other in _registry.values() if other is not self]
            endpoint = self._endpoints.get(target) if isinstance(target, Address) else target
            found = _registry.get(endpoint or "")
        if found is None:
            self.counters["dropped_unknown_target"] += 1
            return ()
        return (found,)
