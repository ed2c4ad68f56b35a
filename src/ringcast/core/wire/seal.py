"""The port of closed groups: a seal, which the owner of a stack hands in.

A sealed datagram keeps its header readable, and everything behind it is encrypted:

    magic 2 | version 1 | flags 1 | group tag 8 | source 8 | target 8 | control length 4
    key id 1 | counter 8 | encrypted: crc32 4, control, payloads | authentication tag 16

Everything before the encrypted part is authenticated as well. The group tag stands in the place of
the group's number. The core imports no cryptography: `ringcast.closed` implements the port.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from ringcast.core.wire.layout import HEADER, HEADER_SIZE
from ringcast.core.wire.outbox import Datagram

FLAG_CHACHA = 4
"""Sealed by ChaCha20-Poly1305; without it by AES-256-GCM."""

COUNTER = struct.Struct("!Q")
KEY_ID_AT = HEADER.size
COUNTER_AT = KEY_ID_AT + 1
SEALED_AT = COUNTER_AT + COUNTER.size
"""Where the encrypted part begins."""
TAG_SIZE = 16
OVERHEAD = SEALED_AT - HEADER.size + TAG_SIZE
"""Bytes that sealing adds to a datagram."""
SEALED_MIN = HEADER_SIZE + OVERHEAD


class Seal(Protocol):
    """Seals the datagrams of one member's life, and opens those of others."""

    overhead: int
    """Bytes that sealing adds to a datagram."""

    def seal(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
        """The datagrams sealed, each with a counter of its own; none when the key was dropped."""
        ...

    def open(self, datagram: bytes | memoryview) -> memoryview:
        """The datagram as it was before it was sealed; good until the next call.

        Raises RemoteError, and has changed nothing then.
        """
        ...
