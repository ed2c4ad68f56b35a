"""What a member asks of a network, whatever it is made of.

A transport moves datagrams, may lose them, and never blocks for long: what it cannot send it drops
and counts, since the protocols above repair. Who may call what:

    send, learn     any thread, one at a time: the member holds its lock
    receive         any thread, one at a time: the member holds its helm; beside `send`
    open, close     once, with nobody else inside
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ringcast.core.address import Address, Peer
from ringcast.core.outbox import Datagram
from ringcast.core.part import Spec
from ringcast.errors import ConfigError
from ringcast.runtime.memory import MemoryTransport
from ringcast.runtime.tcp import TcpTransport
from ringcast.runtime.udp import UdpTransport
from ringcast.transports import Memory, Tcp, Udp


class Transport(Protocol):
    """How a member's datagrams travel."""

    @property
    def endpoint(self) -> str:
        """Where others reach this member, known once it is open."""
        ...

    @property
    def deadline(self) -> float:
        """When `receive` is to be called even if nothing comes, on the clock of time.monotonic."""
        ...

    def open(self, me: Address, group: int) -> None:
        """Take hold of the network. Raises ConfigError with what to change."""
        ...

    def close(self) -> None:
        """Let go of everything; may be called twice."""
        ...

    def filenos(self) -> tuple[int, ...]:
        """Descriptors of which one is readable while there is something for `receive`."""
        ...

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        ...

    def learn(self, peer: Peer) -> None:
        """Remember where a member is."""
        ...

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Send, in order; `members` are those of the view, for what is meant for everybody."""
        ...

    def receive(self, limit: int) -> Iterable[bytes | memoryview]:
        """What has come, about `limit` datagrams at the most; empty when there is nothing.

        Each may be read from the network only when it is asked for; a memoryview is good until the
        next one is.
        """
        ...


def make_transport(spec: Spec | None) -> Transport:
    """The transport with these settings. Raises ConfigError when there are none."""
    match spec:
        case Udp():
            return UdpTransport(spec)
        case Tcp():
            return TcpTransport(spec)
        case Memory():
            return MemoryTransport()
        case None:
            raise ConfigError("the stack has no transport: insert Udp(), Tcp() or Memory()")
        case _:
            name = type(spec).__name__
            raise ConfigError(f"{name} is no transport: use Udp(), Tcp() or Memory()")
