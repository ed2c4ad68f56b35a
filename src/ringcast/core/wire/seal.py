"""The port of closed groups: a seal, which the owner of a stack hands in.

A sealed datagram keeps its header readable, and everything behind it is encrypted:

    magic 2 | version 1 | flags 1 | group tag 8 | source 8 | target 8 | control length 4
    key id 1 | counter 8 | encrypted: crc32 4, control, payloads | authentication tag 16

Everything before the encrypted part is authenticated as well. The group tag stands in the place of
the group's number. The core imports no cryptography: `ringcast.closed` implements the port.

A cipher of your own is a `BodySeal`, and a protocol whose settings have `make_seal`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ringcast.core.model.address import Address
from ringcast.core.wire.layout import FLAG_SEALED, HEADER, HEADER_SIZE, MAGIC
from ringcast.core.wire.outbox import Datagram
from ringcast.errors import Malformed, Unsealed

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


@runtime_checkable
class SealMaker(Protocol):
    """The settings of a protocol that seals every datagram."""

    def make_seal(self, group: str, me: Address) -> Seal:
        """The seal of one life of a member. Raises ConfigError."""
        ...


_FLAGS_AT = 3


class BodySeal:
    """A seal that leaves the header readable, and has `encrypt` and `decrypt` change what follows.

    A subclass sets `overhead` and overrides both. A member without the seal drops such datagrams as
    sealed ones, and this one drops what is not sealed.
    """

    overhead = 0
    """Bytes that `encrypt` adds."""

    def encrypt(self, head: bytes, body: bytes) -> bytes:
        """What stands behind the header of a datagram, sealed; `head` is to be authenticated."""
        raise NotImplementedError

    def decrypt(self, head: bytes, body: bytes) -> bytes:
        """The same as it was. Raises WrongKey, or Replayed for what was opened before."""
        raise NotImplementedError

    def seal(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
        """The datagrams, each with its body encrypted."""
        sealed: list[Datagram] = []
        for target, buffers, nbytes, _ in datagrams:
            whole = bytearray().join(buffers)
            whole[_FLAGS_AT] |= FLAG_SEALED
            head = bytes(whole[: HEADER.size])
            body = self.encrypt(head, bytes(whole[HEADER.size :]))
            assert len(head) + len(body) <= nbytes + self.overhead
            sealed.append(Datagram(target, [head, body], len(head) + len(body)))
        return sealed

    def open(self, datagram: bytes | memoryview) -> memoryview:
        """The datagram as it was before it was sealed. Raises Malformed, Unsealed, and what
        `decrypt` raises."""
        head = bytearray(datagram[: HEADER.size])
        if len(head) < HEADER.size or not head.startswith(MAGIC):
            raise Malformed("not a Ringcast datagram")
        if not head[_FLAGS_AT] & FLAG_SEALED:
            raise Unsealed("not sealed, and this group is closed")
        body = self.decrypt(bytes(head), bytes(datagram[HEADER.size :]))
        head[_FLAGS_AT] &= ~FLAG_SEALED
        return memoryview(bytes(head) + body)
