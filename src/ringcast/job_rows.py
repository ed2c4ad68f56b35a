"""Rows that a job publishes to a group: the format of their messages, and dropping repeats.

A job that fails repeats its work: a task is retried, two attempts at it run side by side, a query
is killed and replays its last epoch. So a row carries its position, (query, epoch, partition,
index), and a receiver drops a position that it has seen. That is exact as long as every attempt at
a partition has the same rows in the same order. A checksum over all rows so far is included, so
that a receiver notices when that was not the case.

A receiver remembers little. Epochs of a query follow each other: no row of the next is sent before
all of the last were delivered. So a row of an earlier epoch is a repeat, and for the current one a
range of indices per partition is enough, since each attempt sends in order from 0.

    magic 4s · query 16s · epoch i64 · partition u32 · index u64 · checksum u32 · the value

All little-endian, one message per row.
"""

from __future__ import annotations

import logging
import struct
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, repeat
from operator import itemgetter
from typing import TYPE_CHECKING
from uuid import UUID
from zlib import crc32

from ringcast.core.model.batch import Payload
from ringcast.core.model.ranges import RangeSet

if TYPE_CHECKING:
    from ringcast.runtime.api.aio import Group

PARTITIONS_MAX = 65_536
"""Partitions whose indices are remembered; the longest inactive one is forgotten first."""
QUERIES_MAX = 16_384
"""Queries whose running epoch is remembered."""
RANGES_MAX = 64
"""Ranges of indices of one partition. Only messages that this receiver lost make more than one;
beyond this bound the lowest hole counts as seen."""

log = logging.getLogger("ringcast.job_rows")


@dataclass(slots=True)
class Row:
    """A row, and its position."""

    value: bytes
    query: UUID
    epoch: int
    partition: int
    index: int


class RowDeduplicator:
    """Drops rows that this receiver has seen, of all jobs that write to its group.

    Not for several threads.
    """

    def __init__(self) -> None:
        self.repeats = 0
        """Rows that were dropped because they had been received before."""
        self.changed = 0
        """Partitions that a later attempt filled with other rows, or in another order. Their rows
        may be missing or doubled."""
        self.forgotten = 0
        """Partitions and queries that were forgotten because of the bounds."""
        self._epochs: OrderedDict[bytes, int] = OrderedDict()
        self._partitions: OrderedDict[bytes, _Partition] = OrderedDict()
        self._head = b""
        self._partition: _Partition | None = None

    @staticmethod
    def is_row(payload: Payload) -> bool:
        """Whether a message is a row of a job, and not one of an application."""
        return len(payload) >= SIZE and payload[:4] == MAGIC

    def accept(self, payload: Payload) -> Row | None:
        """The row in a message; None for a repeat, and for a message that is not a row."""
        if not self.is_row(payload):
            return None
        partition = self._partition_of(payload)
        index, checksum = TAIL.unpack_from(payload, HEAD_SIZE)
        if partition is None or not partition.add(index):
            self.repeats += 1
            return None
        value = bytes(payload[SIZE:])
        if index == partition.follows and crc32(value, partition.checksum) != checksum:
            self._warn(partition)
        partition.follows, partition.checksum = index + 1, checksum
        return Row(value, partition.query, partition.epoch, partition.number, index)

    def accept_each(self, payloads: Sequence[Payload]) -> Iterator[Row]:
        """The rows among messages of one sender, without repeats: `accept` for each, and faster
        where they are new rows of one partition that follow each other.

        A row counts as received when it is handed out: what a loop that ends early has not seen,
        a repeat brings again.
        """
        for run in _runs(payloads):
            partition = self._partition_of(run[0]) if self.is_row(run[0]) else None
            if partition is not None and (values := _continued(partition, run)) is not None:
                yield from self._each(partition, run, values)
            else:
                yield from filter(None, map(self.accept, run))

    def accept_all(self, payloads: Sequence[Payload]) -> list[Row]:
        """The same as a list: all of them count as received."""
        return list(self.accept_each(payloads))

    def _each(
        self, partition: _Partition, run: Sequence[Payload], values: Sequence[bytes]
    ) -> Iterator[Row]:
        """The rows of a run that continues its partition."""
        query, epoch, number = partition.query, partition.epoch, partition.number
        first = index = partition.follows
        places = repeat(query), repeat(epoch), repeat(number), count(first)
        try:
            for row in map(Row, values, *places):
                if partition.last != index - 1:  # Another loop went on with it meanwhile.
                    yield from filter(None, map(self.accept, run[index - first :]))
                    return
                partition.last = index
                index += 1
                yield row
        finally:
            if partition.last == index - 1 >= first:
                _, partition.checksum = TAIL.unpack_from(run[index - 1 - first], HEAD_SIZE)
                partition.follows = index

    def _partition_of(self, payload: Payload) -> _Partition | None:
        """The record of a row's partition; None when its epoch is over."""
        head = payload[:HEAD_SIZE]
        if head != self._head:
            self._head = bytes(head)
            self._partition = self._find(self._head)
        return self._partition

    def _find(self, head: bytes) -> _Partition | None:
        """The partition's record; None when its epoch is over."""
        _, query, epoch, number = HEAD.unpack(head)
        running = self._epochs.get(query)
        if running is not None and epoch < running:
            return None
        self._epochs[query] = epoch
        self._epochs.move_to_end(query)
        key = query + number.to_bytes(4, "little")
        partition = self._partitions.get(key)
        if partition is None or partition.epoch != epoch:
            partition = self._partitions[key] = _Partition(UUID(bytes=query), epoch, number)
        self._partitions.move_to_end(key)
        self.forgotten += _bound(self._epochs, QUERIES_MAX)
        self.forgotten += _bound(self._partitions, PARTITIONS_MAX)
        return partition

    def _warn(self, partition: _Partition) -> None:
        if partition.is_changed:
            return
        partition.is_changed = True
        self.changed += 1
        log.error(
            "partition %d of epoch %d of the query %s has other rows, or another order, than an "
            "earlier attempt: rows may be missing or doubled; set the sink option sort to true, or "
            "make the job produce its rows in a fixed order",
            *(partition.number, partition.epoch, partition.query),
        )


class _Partition:
    """The received indices of one partition: the range that grows, and earlier ranges."""

    __slots__ = (
        *("query", "epoch", "number", "follows", "checksum", "is_changed"),
        *("last", "_first", "_older"),
    )

    def __init__(self, query: UUID, epoch: int, number: int) -> None:
        self.query = query
        self.epoch = epoch
        self.number = number
        self.follows = 0
        """The index behind the newest row, whose checksum is kept."""
        self.checksum = 0
        self.is_changed = False
        self.last = -1
        """The end of the range that grows."""
        self._first = 0
        self._older = RangeSet()

    def add(self, index: int) -> bool:
        """Record a received index; whether it is new."""
        if index == self.last + 1:
            self.last = index
        elif index > self.last:
            if self._first <= self.last:
                self._keep(self._first, self.last)
            self._first = self.last = index
        elif index >= self._first or index in self._older:
            return False
        else:
            self._keep(index, index)
        return True

    def _keep(self, first: int, last: int) -> None:
        self._older.add(first, last)
        if self._older.count_ranges > RANGES_MAX:
            (start, _), (_, end), *_ = self._older.ranges()
            self._older.add(start, end)


class Stamp:
    """Gives the rows of one attempt at a partition their positions, from 0 on."""

    def __init__(self, query: UUID, epoch: int, partition: int) -> None:
        self._head = HEAD.pack(MAGIC, query.bytes, epoch, partition)
        self.count = 0
        """How many rows have their position."""
        self._checksum = 0

    def messages(self, values: Iterable[bytes]) -> list[bytes]:
        """The messages for the next rows."""
        head, index, checksum, pack = self._head, self.count, self._checksum, TAIL.pack
        messages = []
        for value in values:
            checksum = crc32(value, checksum)
            messages.append(b"".join((head, pack(index, checksum), value)))
            index += 1
        self.count, self._checksum = index, checksum
        return messages


async def rows(group: Group, deduplicator: RowDeduplicator | None = None) -> AsyncIterator[Row]:
    """The rows that jobs write to a group, each once; other messages are skipped.

    Give a restarted loop the same `deduplicator`. Raises what `group.batches` raises.
    """
    accept_each = (RowDeduplicator() if deduplicator is None else deduplicator).accept_each
    async for batch in group.batches():
        for row in accept_each(batch.payloads):
            yield row


def _runs(payloads: Sequence[Payload]) -> Iterator[Sequence[Payload]]:
    """Messages in pieces that begin with the same head: rows of one partition."""
    heads = list(map(HEAD_OF, payloads))
    if not heads or heads.count(heads[0]) == len(heads):
        return iter((payloads,) if heads else ())
    starts = [at for at, (one, other) in enumerate(pairwise(heads), 1) if one != other]
    return (payloads[a:b] for a, b in pairwise((0, *starts, len(heads))))


def _continued(partition: _Partition, run: Sequence[Payload]) -> list[bytes] | None:
    """The values of rows that continue their partition; None if that is not what they do.

    A checksum is over all rows so far, so the last row's is enough.
    """
    if min(map(len, run)) < SIZE:
        return None
    first, size = partition.last + 1, len(run)
    indices = struct.pack(f"<{size}Q", *range(first, first + size))
    if first != partition.follows or b"".join(map(INDEX_OF, run)) != indices:
        return None
    _, checksum = TAIL.unpack_from(run[-1], HEAD_SIZE)
    values = list(map(bytes, map(VALUE_OF, run)))
    return values if crc32(b"".join(values), partition.checksum) == checksum else None


def _bound(remembered: OrderedDict[bytes, int] | OrderedDict[bytes, _Partition], most: int) -> int:
    """Forget the longest inactive entries; how many."""
    surplus = max(0, len(remembered) - most)
    for _ in range(surplus):
        remembered.popitem(last=False)
    return surplus


MAGIC = b"\xf5row"
HEAD = struct.Struct("<4s16sqI")
TAIL = struct.Struct("<QI")
HEAD_SIZE = HEAD.size
SIZE = HEAD_SIZE + TAIL.size
HEAD_OF: Callable[[Payload], Payload] = itemgetter(slice(HEAD_SIZE))
INDEX_OF: Callable[[Payload], Payload] = itemgetter(slice(HEAD_SIZE, HEAD_SIZE + 8))
VALUE_OF: Callable[[Payload], Payload] = itemgetter(slice(SIZE, None))
