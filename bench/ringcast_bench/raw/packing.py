"""Messages to datagrams and back, as every bare pair does it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ringcast_bench.messages import Buffer, Messages

DATAGRAM = 60_000
WINDOW = 1_800_000
"""Bytes that a sender may have on their way."""
ACK_EVERY = 600
"""Messages after which a receiver says how far it is, and never more than a third of a window."""
GATHER_SIZE = 1_000
"""Buffers of this size are handed to the kernel one by one, smaller ones are joined first."""

HEADER = struct.Struct("!QII")
"""The number of the first message, how many there are, and the size of each."""
ACK = struct.Struct("!IQ")
"""Who acks, and how many messages it has."""


class Packet(NamedTuple):
    """A datagram to be."""

    buffers: Sequence[Buffer]
    high: int
    """Messages up to its end, counted from the first of all."""
    nbytes: int


def packets(messages: Messages) -> Iterator[Packet]:
    """All messages of a run in as few datagrams as there can be."""
    size, pool = messages.size, messages.pool
    most = max(1, min(DATAGRAM // size, len(pool)))
    first, at = 0, 0
    while first < messages.count:
        count = min(most, messages.count - first)
        payloads = pool[at : at + count]
        if len(payloads) < count:
            payloads = payloads + pool[: count - len(payloads)]
        at = (at + count) % len(pool)
        head = HEADER.pack(first, count, size)
        buffers = (head, *payloads) if size >= GATHER_SIZE else (b"".join((head, *payloads)),)
        yield Packet(buffers, first + count, count * size)
        first += count


def cut(data: bytearray, at: int = 0) -> Sequence[Buffer]:
    """The messages of a datagram that begins here, each as bytes of its own, by a slice each."""
    _, count, size = HEADER.unpack_from(data, at)
    begin, end = at + HEADER.size, at + HEADER.size + count * size
    whole = bytes(memoryview(data)[begin:end])
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def cut_by_struct(data: bytearray, at: int = 0) -> Sequence[Buffer]:
    """The same by a struct, as in a member's codec: up to five times as fast."""
    _, count, size = HEADER.unpack_from(data, at)
    return _cutter(count, size).unpack_from(data, at + HEADER.size)


@lru_cache(64)
def _cutter(count: int, size: int) -> struct.Struct:
    return struct.Struct(f"{size}s" * count)


def ack_every(size: int, window: int) -> int:
    """After how many messages a receiver acks."""
    return max(1, min(ACK_EVERY, window // 3 // size))
