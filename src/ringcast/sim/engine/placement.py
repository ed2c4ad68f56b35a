"""Direct placement of the simulated network's datagrams in large messages, as a kernel does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringcast.core.wire.placement import Placement

BUFFER_MIN = 200_000
"""Messages from this size on have memory of their own, in bytes."""


def place(datagrams: Iterable[bytes], placement: Placement) -> Iterator[bytes | memoryview]:
    """Datagrams as a member reads them: each written to where the next is expected, if it is."""
    for datagram in datagrams:
        if placement.advertised is None:
            yield datagram
        else:
            rest = memoryview(datagram)
            for buffer in placement.advertised:
                size = min(len(buffer), len(rest))
                buffer[:size] = rest[:size]
                rest = rest[size:]
            yield placement.placed(len(datagram))


class PlainBuffers:
    """Memory of the usual kind."""

    def lend(self, size: int) -> PlainBuffer | None:
        """Memory for a message, if it is a large one."""
        return PlainBuffer(size) if size >= BUFFER_MIN else None

    def tidy(self) -> bool:
        """Nothing is kept."""
        return False


class PlainBuffer:
    """Memory for one message."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(bytearray(size))

    def prepare(self, up_to: int) -> None:
        """Nothing to do."""
