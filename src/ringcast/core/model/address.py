"""Identities: a process that joins gets a new 64-bit number, so that its former life is never
mistaken for it."""

from __future__ import annotations

from typing import NamedTuple

ADDRESS_MAX = 2**64 - 1


class Address(int):
    """The identity of a member; an int, since it is the key of every table on the data path."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Address({self:#x})"

    def __str__(self) -> str:
        return f"{int(self):x}"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


class Peer(NamedTuple):
    """A member as others meet it: who it is, what people call it, where it is reached."""

    address: Address
    name: str
    endpoint: str
    """What the transport needs to reach it (say "10.0.0.7:7800"); the core never reads it."""
    mtu: int = 0
    """Bytes of the largest datagram that it takes; 0 when it does not say."""
