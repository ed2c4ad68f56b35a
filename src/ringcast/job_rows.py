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
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
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
        head = payload[:HEAD_SIZE]
        if head != self._head:
            if not self.is_row(payload):
                return None
            self._head = bytes(head)
            self._partition = self._find(self._head)
        elif len(payload) < SIZE:
            return None
        partition = self._partition
        index, checksum = TAIL.unpack_from(payload, HEAD_SIZE)
        if partition is None or not partition.add(index):
            self.repeats += 1
            return None
        value = bytes(payload[SIZE:])
        if index == partition.follows and crc32(value, partition.checksum) != checksum:
            self._warn(partition)
        partition.follows, partition.checksum = index + 1, checksum
        return Row(value, partition.query, partition.epoch, partition.number, index)

    def accept_all(self, payloads: Sequence[Payload]) -> list[Row]:
        """The rows among messages of one sender, without repeats: `accept` for each, and faster
        where they are new rows of one partition that follow each other."""
        rows = self._accept_run(payloads) if len(payloads) > 1 else None
        return rows if rows is not None else [r for p in payloads if (r := self.accept(p))]

    def _accept_run(self, payloads: Sequence[Payload]) -> list[Row] | None:
        """The same for rows that continue their partition; None, and nothing done, if they don't.

        A checksum is over all rows so far. So the last row's tells that all of them are there, each
        once and in order; of the others only the partition is looked at.
        """
        head, count = bytes(payloads[0][:HEAD_SIZE]), len(payloads)
        if min(map(len, payloads)) < SIZE or head != self._head or self._partition is None:
            return None
        partition = self._partition
        first, _ = TAIL.unpack_from(payloads[0], HEAD_SIZE)
        last, checksum = TAIL.unpack_from(payloads[-1], HEAD_SIZE)
        if first != partition.follows or last != first + count - 1:
            return None
        if [payload[:HEAD_SIZE] for payload in payloads].count(head) != count:
            return None
        values = [bytes(payload[SIZE:]) for payload in payloads]
        if crc32(b"".join(values), partition.checksum) != checksum:
            return None
        if not partition.extend(first, last):
            return None
        partition.follows, partition.checksum = last + 1, checksum
        query, epoch, number = partition.query, partition.epoch, partition.number
        return [Row(value, query, epoch, number, first + at) for at, value in enumerate(values)]

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
        *("_first", "_last", "_older"),
    )

    def __init__(self, query: UUID, epoch: int, number: int) -> None:
        self.query = query
        self.epoch = epoch
        self.number = number
        self.follows = 0
        """The index behind the newest row, whose checksum is kept."""
        self.checksum = 0
        self.is_changed = False
        self._first, self._last = 0, -1
        self._older = RangeSet()

    def add(self, index: int) -> bool:
        """Record a received index; whether it is new."""
        if index == self._last + 1:
            self._last = index
        elif index > self._last:
            if self._first <= self._last:
                self._keep(self._first, self._last)
            self._first = self._last = index
        elif index >= self._first or index in self._older:
            return False
        else:
            self._keep(index, index)
        return True

    def extend(self, first: int, last: int) -> bool:
        """Record indices that follow the last one; False, and nothing recorded, if they don't."""
        if first != self._last + 1:
            return False
        self._last = last
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
    accept = (RowDeduplicator() if deduplicator is None else deduplicator).accept
    async for batch in group.batches():
        # One by one: a loop that breaks off has not seen the rest, and a repeat must bring it.
        for payload in batch.payloads:
            row = accept(payload)
            if row is not None:
                yield row


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
