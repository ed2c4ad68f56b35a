"""Cutting the payloads of a run out of a datagram, without a step of Python a message."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE, Payload

CUT_MAX = 1_024
"""The most messages that are cut in one step, so that a cutter stays small."""


def cut_uniform(datagram: bytes | memoryview, count: int, size: int, at: int) -> list[Payload]:
    """`count` messages of one size. A struct cuts them two to five times as fast as slices do."""
    if size >= VIEW_PAYLOAD_SIZE:
        view = _own(datagram, at, at + count * size)
        return [view[i : i + size] for i in range(0, count * size, size)]
    if size == 0:
        return [b""] * count
    if count <= CUT_MAX:
        return list(cutter(count, size).unpack_from(datagram, at))
    payloads: list[Payload] = []
    while count:
        step = min(count, CUT_MAX)
        payloads += cutter(step, size).unpack_from(datagram, at)
        count -= step
        at += step * size
    return payloads


def cut_varied(datagram: bytes | memoryview, sizes: Sequence[int], at: int) -> list[Payload]:
    """Messages of these sizes, one after the other."""
    ends = list(accumulate(sizes, initial=0))
    view = _own(datagram, at, at + ends[-1])
    if max(sizes) < VIEW_PAYLOAD_SIZE:
        return list(map(bytes(view).__getitem__, map(slice, ends, ends[1:])))
    return [
        view[begin:end] if end - begin >= VIEW_PAYLOAD_SIZE else bytes(view[begin:end])
        for begin, end in pairwise(ends)
    ]


def _own(datagram: bytes | memoryview, begin: int, end: int) -> memoryview:
    """A piece of a datagram that stays what it is: of a view of borrowed memory, a copy."""
    if isinstance(datagram, bytes):
        return memoryview(datagram)[begin:end]
    return memoryview(bytes(datagram[begin:end]))


@lru_cache(64)
def cutter(count: int, size: int) -> struct.Struct:
    """A struct that cuts `count` messages of one size, at most `CUT_MAX` of them."""
    return struct.Struct(f"{size}s" * count)
