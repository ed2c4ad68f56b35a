"""The connections of one member: which peer each reaches, and when to call an endpoint again."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.core.model.address import Address, Peer
from ringcast.runtime.net.connection import Connection
from ringcast.runtime.net.endpoints import KnownPlaces

FAILED_MAX = 4_096
"""Endpoints whose calls failed that are remembered."""
CROSSING_SECONDS = 2.0
"""Two calls, one from each side, cross each other if they are made within this time."""
RETRY_MIN = 0.05
"""The first pause after a call that failed, in seconds; it doubles."""
CRASH_HINTS = {"closed_by_peer", "ended_econnreset", "ended_econnrefused", "ended_epipe"}
"""Ends of a connection after which its member may have crashed: its system says so itself."""


class ConnectionTable:
    """Every connection by its descriptor, by the peer it reaches, and by the called endpoint."""

    def __init__(self, me: Address) -> None:
        self._me = me
        self._by_fd: dict[int, Connection] = {}
        self._by_address: dict[Address, Connection] = {}
        self._by_endpoint: dict[str, Connection] = {}
        self._endpoints = KnownPlaces[str]()
        self._unknown: dict[Connection, float] = {}

    def __len__(self) -> int:
        return len(self._by_fd)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._by_fd.values())

    def add(self, connection: Connection) -> None:
        """A new connection, before the hello of the other side."""
        self._by_fd[connection.fd] = connection
        self._unknown[connection] = connection.until
        if connection.endpoint is not None:
            self._by_endpoint[connection.endpoint] = connection

    def remove(self, connection: Connection) -> None:
        """A connection is over."""
        self._by_fd.pop(connection.fd, None)
        self._unknown.pop(connection, None)
        for endpoint in [e for e, known in self._by_endpoint.items() if known is connection]:
            del self._by_endpoint[endpoint]
        address = connection.address
        if address is not None and self._by_address.get(address) is connection:
            del self._by_address[address]
            spare = next((c for c in self if c.address == address and not c.retiring), None)
            if spare is not None:
                self._by_address[address] = spare

    def introduce(
        self, connection: Connection, address: Address, now: float = 0.0
    ) -> Connection | None:
        """The other side has said hello; returns the connection to retire, if there is one.

        Any process can say hello in the name of another. So a connection in use stays in use while
        it is alive, and the kernel probes it; then the next one takes its place.
        """
        connection.address, connection.known_at = address, now
        connection.source = address.to_bytes(8, "big")
        self._unknown.pop(connection, None)
        known = self._by_address.get(address)
        if known is None:
            self._by_address[address] = connection
            return None
        is_same_side = (known.endpoint is None) == (connection.endpoint is None)
        if is_same_side or now - known.known_at > CROSSING_SECONDS:
            known.probe()
            return None
        ours, theirs = (known, connection) if connection.endpoint is None else (connection, known)
        stays, goes = (ours, theirs) if self._me < address else (theirs, ours)
        self._by_address[address] = stays
        if ours.endpoint is not None:
            self._by_endpoint[ours.endpoint] = stays
        if goes is not ours:
            return None  # The other side ends its call itself, when it has sent what waits.
        goes.retiring = True
        return goes

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is reached; `is_claim` for a process outside the view, whose
        connection is not the one to an endpoint just because it says so."""
        self._endpoints.put(peer.address, peer.endpoint, is_claim)
        known = self._by_address.get(peer.address)
        if known is not None and not is_claim:
            self._by_endpoint.setdefault(peer.endpoint, known)

    def endpoint(self, address: Address) -> str | None:
        """Where a member is reached."""
        return self._endpoints.get(address)

    def find(self, target: Address | str) -> Connection | None:
        """The connection that reaches a member or an endpoint."""
        if isinstance(target, str):
            return self._by_endpoint.get(target)
        known = self._by_address.get(target)
        if known is not None:
            return known
        called = self._by_endpoint.get(self._endpoints.get(target) or "")
        return called if called is not None and called.address is None else None

    def crash_hints(self, connection: Connection, reason: str) -> list[str]:
        """The endpoint of a member that may have crashed, since its connection ended so."""
        endpoint = connection.endpoint
        if endpoint is None and connection.address is not None:
            endpoint = self._endpoints.get(connection.address)
        is_hint = reason in CRASH_HINTS and not connection.retiring
        return [endpoint] if is_hint and endpoint is not None else []

    def is_taken(self, endpoint: str) -> bool:
        """Whether another member than expected answers at an endpoint."""
        return endpoint in self._by_endpoint

    def by_fd(self, fd: int) -> Connection | None:
        """The connection with this descriptor."""
        return self._by_fd.get(fd)

    @property
    def deadline(self) -> float:
        """When the first connection without a hello is given up."""
        return min(self._unknown.values(), default=float("inf"))

    def silent(self, now: float) -> list[Connection]:
        """Connections that have not said hello in time."""
        return [connection for connection, until in self._unknown.items() if until <= now]


class RetrySchedule:
    """When each endpoint may be called again, after calls that failed."""

    def __init__(self, retry_max: float) -> None:
        self._retry_max = retry_max
        self._failed: dict[str, tuple[int, float]] = {}

    def may(self, endpoint: str, now: float) -> bool:
        """Whether it is time to call."""
        return now >= self._failed.get(endpoint, (0, 0.0))[1]

    def failures(self, endpoint: str) -> int:
        """How many calls in a row have failed."""
        return self._failed.get(endpoint, (0, 0.0))[0]

    def failed(self, endpoint: str, now: float, spread: float = 1.0) -> None:
        """A call has failed; `spread` keeps many callers apart."""
        count = min(self.failures(endpoint) + 1, 16)
        pause = min(RETRY_MIN * 2.0 ** (count - 1), self._retry_max) * spread
        self._failed.pop(endpoint, None)
        if len(self._failed) >= FAILED_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[endpoint] = (count, now + pause)

    def succeeded(self, endpoint: str) -> None:
        """The endpoint has answered."""
        self._failed.pop(endpoint, None)
