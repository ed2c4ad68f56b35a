"""Limits for strangers: connections whose address is not in the view.

Any process may connect to a member, say hello and send. Members of the view come first:

- strangers together are read at `RATE` bytes per second at most, in small reads; beyond it their
  bytes wait in the kernel, and TCP stops them;
- what waits for strangers that do not read, and what they have begun to send, stays below
  `WAITING_MAX` bytes each for all of them together;
- a stranger that is silent for `IDLE_SECONDS` is ended;
- callers are accepted at `ACCEPTS` per second at most, since each costs CPU, most of all with TLS;
  the others wait in the kernel;
- endpoints that strangers have named are called `CALLS` times per second at most, so that nobody
  can use a member to connect to others;
- where there are as many connections as allowed, the stranger that was silent for the longest is
  ended for a new connection.

A member without a view cannot tell strangers from members, and limits none of them.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.stack.timers import NEVER
from ringcast.runtime.net.connection import READ_SIZE, Connection

RATE = 250_000
"""Bytes per second that are read from all strangers together."""
BURST = 1_000_000
"""Bytes that they may send on top of that after a pause."""
STRANGER_READ_SIZE = 65_536
"""Bytes of one read from a stranger."""
WAITING_FREE, STRANGER_WAITING_MAX = 16_384, 1 << 19
"""Bytes that may wait for a stranger whatever waits for others, and at the most: the largest view
with its frames has half of that."""
WAITING_MAX = 16_000_000
"""Bytes that may wait for all strangers beyond what is free; and bytes of datagrams that they have
begun."""
CALLS = 20
"""Calls per second to members that are not in the view."""
ACCEPTS, ACCEPTS_BURST = 200, 512
"""Callers per second that are accepted, and how many at once after a pause."""
IDLE_SECONDS = 30.0
"""Seconds of silence after which a stranger is ended."""


def connections_allowed(wanted: int) -> int:
    """How many connections to allow: at most half of the descriptors that the process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(2, min(wanted, soft // 2))


class StrangerLimits:
    """Who is a stranger, and what strangers have used."""

    def __init__(self) -> None:
        self.members: Sequence[Address] = ()
        """Those of the view."""
        self._known: frozenset[Address] = frozenset()
        self._tokens = float(BURST)
        self._counted_at = 0.0
        self._calls, self._called_at = float(CALLS), 0.0
        self._accepts, self._accepted_at = float(ACCEPTS_BURST), 0.0
        self.throttled: set[Connection] = set()
        """Connections that are not read until `resume_at`."""
        self.resume_at = NEVER
        self.sweep_at = NEVER
        """When to look for silent strangers."""

    def view(self, members: Sequence[Address], now: float) -> None:
        """These are the members of the view."""
        self.members, self._known = members, frozenset(members)
        self.sweep_at = min(self.sweep_at, now + IDLE_SECONDS)
        if self.throttled:
            self.resume_at = now

    def is_stranger(self, connection: Connection) -> bool:
        """Whether a connection reaches nobody in the view."""
        return bool(self._known) and connection.address not in self._known

    def read_size(self, connection: Connection) -> int:
        """How many bytes to read at once."""
        return STRANGER_READ_SIZE if self.is_stranger(connection) else READ_SIZE

    def spend(self, connection: Connection, nbytes: int, now: float) -> bool:
        """A stranger has sent bytes; True when it is not to be read for a while."""
        self._tokens = min(self._tokens + (now - self._counted_at) * RATE, BURST) - nbytes
        self._counted_at = now
        if self._tokens > 0:
            return False
        self.throttled.add(connection)
        self.resume_at = now - self._tokens / RATE
        return True

    def may_wait(
        self, connection: Connection, nbytes: int, connections: Iterable[Connection]
    ) -> bool:
        """Whether this much more may wait until the other side reads; always where this member
        has called, and the other side has not said yet who it is."""
        queued = connection.queued + nbytes
        is_known = connection.address is not None
        if queued <= WAITING_FREE or not (is_known and self.is_stranger(connection)):
            return True
        waiting = sum(other.queued for other in connections if self.is_stranger(other))
        return queued <= STRANGER_WAITING_MAX and waiting + nbytes <= WAITING_MAX

    def may_begin(
        self, connection: Connection, nbytes: int, connections: Iterable[Connection]
    ) -> bool:
        """Whether so much of a stranger's datagram may wait here for the rest of it."""
        if nbytes <= WAITING_FREE:
            return True
        others = (other for other in connections if other is not connection)
        begun = sum(len(other.rest) for other in others if self.is_stranger(other))
        return begun + nbytes <= WAITING_MAX

    def may_call(self, target: Address | str, now: float) -> bool:
        """Whether to call; always for members of the view, and for configured endpoints."""
        if isinstance(target, str) or not self._known or target in self._known:
            return True
        self._calls = min(self._calls + (now - self._called_at) * CALLS, CALLS)
        self._called_at = now
        if self._calls < 1.0:
            return False
        self._calls -= 1.0
        return True

    def may_accept(self, now: float) -> bool:
        """Whether to accept another caller now."""
        if not self._known:
            return True
        tokens = self._accepts + (now - self._accepted_at) * ACCEPTS
        self._accepts, self._accepted_at = min(tokens, ACCEPTS_BURST), now
        if self._accepts < 1.0:
            return False
        self._accepts -= 1.0
        return True

    def resumed(self) -> list[Connection]:
        """The time is over: those to read again."""
        resumed, self.throttled, self.resume_at = list(self.throttled), set(), NEVER
        return resumed

    def sweep(self, connections: Iterable[Connection], now: float) -> list[Connection]:
        """The strangers that were silent for too long."""
        self.sweep_at = now + IDLE_SECONDS / 2 if self._known else NEVER
        silent_since = now - IDLE_SECONDS
        return [
            connection
            for connection in connections
            if connection.heard_at < silent_since and self.is_stranger(connection)
        ]

    def most_silent(self, connections: Iterable[Connection]) -> Connection | None:
        """The stranger to end for a new connection; of those who called, while there is no view."""
        found = (
            connection
            for connection in connections
            if connection.endpoint is None and (not self._known or self.is_stranger(connection))
        )
        return min(found, key=lambda connection: connection.heard_at, default=None)
