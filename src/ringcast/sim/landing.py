"""How datagrams of the simulated network land in large messages, as the kernel would have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringcast.core.landing import Landing

ROOM_MIN = 200_000
"""Messages from this size on have memory of their own, in bytes."""


def land(datagrams: Iterable[bytes], landing: Landing) -> Iterator[bytes | memoryview]:
    """Datagrams as a member reads them: each written to where the next is expected, if it is."""
    for datagram in datagrams:
        if landing.offer is None:
            yield datagram
        else:
            rest = memoryview(datagram)
            for buffer in landing.offer:
                size = min(len(buffer), len(rest))
                buffer[:size] = rest[:size]
                rest = rest[size:]
            yield landing.landed(len(datagram))


class PlainRooms:
    """Memory of the usual kind."""

    def room(self, size: int) -> PlainRoom | None:
        """Memory for a message, if it is a large one."""
        return PlainRoom(size) if size >= ROOM_MIN else None

    def tidy(self) -> bool:
        """Nothing is kept."""
        return False


class PlainRoom:
    """Memory for one message."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(bytearray(size))

    def prepare(self, up_to: int) -> None:
        """Nothing to do."""
