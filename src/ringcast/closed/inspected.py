"""A seal whose sealed datagrams a simulated world can look into."""

from __future__ import annotations

from collections.abc import Sequence

from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.seal import Seal


class InspectedSeal:
    """A member's seal, and what the datagrams held that it sealed last."""

    def __init__(self, seal: Seal) -> None:
        self.sealer = seal
        self.overhead = seal.overhead
        self.inner: list[bytes] = []
        """The datagrams of the last call, before they were sealed."""

    def seal(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
        """The datagrams sealed."""
        self.inner = [b"".join(buffers) for _, buffers, *_ in datagrams]
        return self.sealer.seal(datagrams)

    def open(self, datagram: bytes | memoryview) -> memoryview:
        """The datagram as it was before it was sealed. Raises RemoteError."""
        return self.sealer.open(datagram)
