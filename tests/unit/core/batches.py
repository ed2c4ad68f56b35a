"""Batches whose messages tell their seqnos, for the tests of whatever stores and orders them."""

from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.windows import Hole

A = Address(1)


def run(first: int, count: int = 1, size: int = 1) -> Batch:
    """Messages of this many bytes each, which tell their seqno by their last byte."""
    payloads = [bytes(size - 1) + bytes([seqno % 256]) for seqno in range(first, first + count)]
    return Batch(A, payloads, size * count, first=first)


def spans(runs: Sequence[Batch | Hole]) -> list[tuple[int, int] | Hole]:
    """What was handed up or found, after a look that every message is in its place."""
    for found in runs:
        if isinstance(found, Batch):
            assert all(message.payload[-1] == message.seqno % 256 for message in found)
            assert found.nbytes == sum(map(len, found.payloads))
    return [(found.first, found.last) if isinstance(found, Batch) else found for found in runs]


def whole(first: int, last: int) -> RangeSet:
    return RangeSet([(first, last)])
