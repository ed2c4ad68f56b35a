"""A network inside one process, for tests: every open transport hears every other one."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.outbox import MTU, TRAIN_MAX, Datagram
from ringcast.runtime.system.bell import Bell, make_bell

QUEUE_MAX = 4_096
"""Datagrams that wait at one member; more are dropped, as a socket's buffer drops them."""

_registry: dict[str, MemoryTransport] = {}
_registry_lock = threading.Lock()
_numbers = itertools.count(1)


class MemoryTransport:
    """A member's place in the process-wide network."""

    deadline = float("inf")
    mtu = MTU
    shrunk = 0
    train_bytes = TRAIN_MAX

    def __init__(self) -> None:
        self.hints: list[str] = []
        self.counters: Counter[str] = Counter()
        self.endpoint = ""
        self._endpoints: dict[Address, str] = {}
        self._queue: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._bell: Bell | None = None

    def secure(self, guard: object, /) -> None:
        """Nothing: this transport learns nothing from datagrams."""

    def open(self, me: Address, group: int) -> None:
        """Take a place."""
        self._bell = make_bell()
        with _registry_lock:
            self.endpoint = f"memory-{next(_numbers)}"
            _registry[self.endpoint] = self

    def close(self) -> None:
        """Give the place up."""
        with _registry_lock:
            _registry.pop(self.endpoint, None)
        with self._lock:
            bell, self._bell = self._bell, None
            if bell is not None:
                bell.close()

    def forbid_fragments(self) -> None:
        """Nothing: there are no packets."""

    def offers(self) -> dict[str, bool]:
        """Nothing: there are no system calls."""
        return {}

    def filenos(self) -> tuple[int, ...]:
        """The descriptor that is readable when something has arrived."""
        return () if self._bell is None else (self._bell.fd,)

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        return dict(self.counters)

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is."""
        self._endpoints[peer.address] = peer.endpoint

    def use(self, placement: object, /) -> None:
        """Nothing: datagrams of this transport are copied from a buffer of its own."""

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Put copies into the queues of those they are for."""
        for datagram in datagrams:
            data = b"".join(datagram.buffers)
            for transport in self._targets(datagram.target):
                transport.put(data)
        self.counters["sent_datagrams"] += len(datagrams)

    def put(self, data: bytes) -> None:
        """Another member sends a datagram here."""
        with self._lock:
            if self._bell is None or len(self._queue) >= QUEUE_MAX:
                self.counters["dropped_queue_full"] += 1
                return
            self._queue.append(data)
            self._bell.ring()

    def receive(self, limit: int) -> Sequence[bytes]:
        """The datagrams that have arrived."""
        queue = self._queue
        with self._lock:
            taken = [queue.popleft() for _ in range(min(limit, len(queue)))]
            if not queue and self._bell is not None:
                self._bell.clear()
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
