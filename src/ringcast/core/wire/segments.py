"""Segments: datagrams of one sender that the kernel received as one buffer (UDP_GRO)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache


class Segments:
    """Datagrams one after the other, all of one size but the last, which may be shorter."""

    __slots__ = ("data", "size")

    def __init__(self, data: bytes, size: int) -> None:
        assert 0 < size < len(data)
        self.data = data
        self.size = size

    def __len__(self) -> int:
        return (len(self.data) + self.size - 1) // self.size

    def __iter__(self) -> Iterator[bytes]:
        data, size = self.data, self.size
        for at in range(0, len(data), size):
            yield data[at : at + size]


Received = bytes | memoryview | Segments
"""What a transport receives: a datagram, `PLACED`, or several datagrams in one buffer."""


def one_by_one(received: Iterable[Received]) -> Iterator[bytes | memoryview]:
    """The datagrams, each by itself."""
    for some in received:
        if isinstance(some, Segments):
            yield from some
        else:
            yield some


@lru_cache(64)
def head_cutter(segments: int, head: int, size: int) -> struct.Struct:
    """Cuts the heads out of segments of this size."""
    return struct.Struct(f"{head}s{size - head}x" * segments)


@lru_cache(64)
def payload_cutter(segments: int, head: int, count: int, size: int) -> struct.Struct:
    """Cuts the messages out of segments that have a head and `count` messages of this size each."""
    return struct.Struct((f"{head}x" + f"{size}s" * count) * segments)
