"""What a member asks of a network, whatever it is made of.

A transport moves datagrams, may lose them, and never blocks for long: what it cannot send it drops
and counts, since the protocols above repair. Who may call what:

    send, learn     any thread, one at a time: the member holds its lock
    receive         any thread, one at a time: the member holds its receive lock; beside `send`
    open, close     once, with nobody else inside
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.placement import Placement
from ringcast.core.wire.segments import Received


class Guard(Protocol):
    """What a transport needs to know of a closed group."""

    tags: tuple[int, ...]
    """What stands in the place of the group's number, for each key."""

    def prove(self, tag: int, transcript: bytes) -> bytes:
        """Proof that this side has the key with this tag; empty when it has not."""
        ...


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

    @property
    def mtu(self) -> int:
        """The largest datagram that travels whole, in bytes, known once it is open."""
        ...

    shrunk: int
    """Set when the kernel has refused datagrams as too large: the largest that it takes now. The
    member sets it back to 0."""

    train_bytes: int
    """The most that may leave at once; the member sets it."""

    hints: list[str]
    """Endpoints whose member may have crashed, as the network says; the member empties it."""

    def secure(self, guard: Guard, /) -> None:
        """The group is closed: called before `open`, and again when its keys have changed."""
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

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is; a claim is what a process outside the view says of itself,
        and where its datagrams come from counts more."""
        ...

    def forbid_fragments(self) -> None:
        """Send each datagram in one packet or not at all; called once, after `open`."""
        ...

    def offers(self) -> dict[str, bool]:
        """What the kernel offers of that which saves system calls and packets, by name."""
        ...

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Send, in order; `members` are those of the view, for what is meant for all members."""
        ...

    def use(self, placement: Placement, /) -> None:
        """Write the next datagrams where they belong, if the transport can; else do nothing."""
        ...

    def receive(self, limit: int) -> Iterable[Received]:
        """The datagrams that have arrived, up to about `limit`; empty when there are none.

        Each may be read from the network only when it is asked for; a memoryview is good until the
        next one is.
        """
        ...
