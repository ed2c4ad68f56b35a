"""Packed runs: the messages of a run as one stream of bytes that fills datagrams to their end.

A message of 1,000 bytes leaves a quarter of an Ethernet packet empty. Here the messages of a run,
all of one size, follow each other without a gap, and a datagram ends where it is full. Each
datagram has the head of its run and the position of its bytes in the stream, so it stands alone
when its neighbours are lost: the messages that are whole in it count. A message is not larger than
the bytes of a datagram, so it lies in two of them at most, and its halves wait for each other.

A lost datagram spoils up to three messages and more, of which it held one and a half. Receivers
keep the halves that have arrived, so the datagram is all that they lack. They request messages;
which datagrams were lost follows from that: those whose messages are all missing. They are sent
again as they were (`SentRuns`). A receiver that kept no halves requests the same messages once
more, so after a few tries messages are sent whole.

Only the position differs between the datagrams of a run. The checksum covers what they have in
common, and the position stands there twice. So one struct writes a whole train of datagrams, and
one reads it: a head, the position, and bytes, again and again.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from zlib import crc32

from ringcast.core.model.address import Address
from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE, Payload
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.fragments import Fragments
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import (
    CHECKSUM,
    DATA_PAYLOADS_AT,
    EVERYBODY,
    FLAG_PACKED,
    MAGIC,
    PACKED_AT,
    PACKED_HEAD_SIZE,
    PACKED_RUN,
    POSITION,
    PREFIX,
    VERSION,
    is_run_in_bounds,
    is_stream_in_bounds,
)
from ringcast.core.wire.outbox import (
    TRAIN_MAX,
    TRAIN_SEGMENTS_MAX,
    Datagram,
    PackedPart,
    Target,
)
from ringcast.core.wire.slices import cut_uniform

WASTE_MIN = 1 / 8
"""The share of a datagram that whole messages would leave empty, from which on runs are packed."""
STREAMS_MAX = 256
"""Runs whose heads are remembered."""
HALVES_BYTES_MAX = 2_000_000
"""Bytes of the halves of messages that wait for the other half; beyond it the oldest are dropped,
and their messages are requested again."""
MESSAGES_MAX = 1 << 20
"""Messages in one run."""
PACKET_TRIES = 3
"""How often a datagram is sent again to one target, before its messages are sent whole."""
GAINED = DATA_PAYLOADS_AT - PACKED_AT
"""Bytes that the head is shorter than that of a datagram with whole messages."""
_TWICE = (1 << 32) + 1
"""A position times this is the position in each half of its field."""
_FIELDS = 3
"""Fields of a datagram in a train: head, position twice, bytes."""


def may_be_worth_packing(room: int) -> bool:
    """Whether any run is worth packing in datagrams of this room: in large ones, whole messages
    leave little empty."""
    return WASTE_MIN * room < VIEW_PAYLOAD_SIZE


def is_worth_packing(run: Data, room: int) -> bool:
    """Whether a run of messages of one size leaves too much of datagrams empty that hold up to
    `room` bytes of whole messages."""
    size = run.size
    return (
        0 < size <= room
        and size < VIEW_PAYLOAD_SIZE
        and run.nbytes > room
        and room % size > WASTE_MIN * room
        and len(run.payloads) <= MESSAGES_MAX
        and not isinstance(run.payloads, Fragments)
    )


def pack(group: int, source: Address, run: Data, room: int) -> PackedPart:
    """A run as full datagrams, where those with whole messages have `room` bytes for them."""
    assert len(run.payloads) * run.size == run.nbytes
    prefix = PREFIX.pack(MAGIC, VERSION, FLAG_PACKED, group, source)
    described = PACKED_RUN.pack(
        run.view.number,
        len(run.payloads),
        run.size,
        run.flags,
        run.view.coordinator,
        run.start,
        run.sent_at,
        run.first,
        run.low,
    )
    head = b"".join((prefix, CHECKSUM.pack(crc32(described, crc32(prefix))), described))
    return PackedPart(head, run.payloads, 0, run.nbytes, run.size, room + GAINED)


def encode_packed(
    part: PackedPart, target: Target = None, train_bytes: int = TRAIN_MAX
) -> Iterator[Datagram]:
    """Trains of datagrams, each of up to `train_bytes`, to the group or to one member."""
    head, payloads, size, step = part.head, part.payloads, part.size, part.step
    begun = part.position // size  # The number of the first message.
    segment = PACKED_AT + step
    most = max(1, min(TRAIN_SEGMENTS_MAX, train_bytes // segment))
    stop = part.position + part.nbytes
    for at in range(part.position, stop, most * step):
        end = min(stop, at + most * step)
        count, rest = divmod(end - at, step)
        stream = b"".join(payloads[at // size - begun : -(-end // size) - begun])
        begin, train = at % size, b""
        if count:
            fields: list[object] = [head, 0, b""] * count
            fields[1::_FIELDS] = _positions(at, step, count)
            fields[2::_FIELDS] = _bytes_cutter(count, step).unpack_from(stream, begin)
            train = _train(count, step).pack(*fields)
        if rest:
            position = POSITION.pack((end - rest) * _TWICE)
            begin += count * step
            train = b"".join((train, head, position, stream[begin : begin + rest]))
        yield Datagram(target, [train], len(train), segment if len(train) > segment else 0)


def _positions(at: int, step: int, count: int) -> range:
    """The fields with the positions of datagrams that follow each other."""
    return range(at * _TWICE, (at + count * step) * _TWICE, step * _TWICE)


@lru_cache(64)
def _train(count: int, step: int) -> struct.Struct:
    """Datagrams one after the other, as their fields."""
    return struct.Struct("!" + f"{PACKED_HEAD_SIZE}sQ{step}s" * count)


@lru_cache(64)
def _bytes_cutter(count: int, step: int) -> struct.Struct:
    return struct.Struct(f"{step}s" * count)


class _Stream:
    """The run that a sender sent last, as the heads of its datagrams describe it."""

    __slots__ = ("at", "end", "head", "run", "tail")

    def __init__(self, head: bytes, run: Data, count: int) -> None:
        self.head = head
        """What all its datagrams begin with."""
        self.run = run
        """The run without its messages."""
        self.end = count * run.size
        """Bytes of all messages."""
        self.at = -1
        """Where the datagram that continues the last one begins."""
        self.tail = b""
        """The beginning of a message whose end is in that datagram."""


class PackedReader:
    """Reads datagrams of packed runs, and puts halves of messages together."""

    __slots__ = ("_group", "_halves", "_halves_bytes", "_latest", "_streams", "runs")

    def __init__(self, group: int) -> None:
        self._group = group
        self._streams: dict[bytes, _Stream] = {}
        """By the heads of their datagrams."""
        self._latest: _Stream | None = None
        """The run of the last datagram."""
        self._halves: dict[tuple[ViewId, Address, int], tuple[bool, bytes]] = {}
        """Whether it is the beginning, and the bytes, by the message."""
        self._halves_bytes = 0
        self.runs: list[Data] = []
        """What was read; the receiver that takes it makes the list empty."""

    def read(self, datagram: bytes | memoryview, view: ViewId) -> bool:
        """Read one datagram; False if it is not one of a packed run. `view` is the one that is
        expected, for which no new id is made."""
        if len(datagram) <= PACKED_AT or datagram[3] != FLAG_PACKED:
            return False
        (twice,) = POSITION.unpack_from(datagram, PACKED_HEAD_SIZE)
        position, rest = divmod(twice, _TWICE)
        stream = None if rest else self._stream(bytes(datagram[:PACKED_HEAD_SIZE]), view)
        nbytes = len(datagram) - PACKED_AT
        if stream is None or position + nbytes > stream.end:
            return False
        self._add(stream, position, (bytes(datagram[PACKED_AT:]),), nbytes)
        return True

    def read_train(self, data: bytes, size: int, view: ViewId) -> int:
        """Read datagrams of one size at once if all of them follow each other in one run; how many
        bytes were read, 0 if they do not."""
        count, step = len(data) // size, size - PACKED_AT
        if step <= 0 or data[3] != FLAG_PACKED:
            return 0
        fields = _train(count, step).unpack_from(data)
        position, head = fields[1] // _TWICE, fields[0]
        if fields[0::_FIELDS] != (head,) * count:
            return 0
        if fields[1::_FIELDS] != tuple(_positions(position, step, count)):
            return 0
        stream = self._stream(head, view)
        if stream is None or position + count * step > stream.end:
            return 0
        self._add(stream, position, fields[2::_FIELDS], count * step)
        return count * size

    def _stream(self, head: bytes, view: ViewId) -> _Stream | None:
        """The run that a datagram with this head is of; None if the head is not right."""
        latest = self._latest
        if latest is not None and latest.head == head:
            return latest
        streams = self._streams
        stream = streams.get(head)
        if stream is None:
            stream = _parse(head, self._group, view)
            if stream is None:
                return None
            if len(streams) >= STREAMS_MAX:
                self._keep_tail(streams.pop(next(iter(streams))))
            streams[head] = stream
        self._latest = stream
        return stream

    def _add(self, stream: _Stream, position: int, contents: Sequence[bytes], nbytes: int) -> None:
        """Take bytes of a run, `nbytes` in all, from this position on."""
        size, end = stream.run.size, position + nbytes
        if position == stream.at:
            content = b"".join((stream.tail, *contents))
        else:
            self._keep_tail(stream)
            content, missing = b"".join(contents), -position % size
            if missing > len(content):
                return  # The middle of a message, which no sender makes.
            if missing:
                self._join(stream, position // size, False, content[:missing])
                content = content[missing:]
        count, rest = divmod(len(content), size)
        stream.at, stream.tail = end, content[count * size :] if rest else b""
        if count:
            self._emit(stream, (end - len(content)) // size, cut_uniform(content, count, size, 0))
        if self._halves and rest and self._key(stream.run, end // size) in self._halves:
            self._keep_tail(stream)

    def _keep_tail(self, stream: _Stream) -> None:
        """Have the beginning of a message wait for its end, or put it to the end that waits."""
        if stream.tail:
            self._join(stream, stream.at // stream.run.size, True, stream.tail)
            stream.at, stream.tail = -1, b""

    def _join(self, stream: _Stream, index: int, is_beginning: bool, half: bytes) -> None:
        """Put a half of a message to the other one, or have it wait."""
        run, halves = stream.run, self._halves
        key = self._key(run, index)
        other = halves.pop(key, None)
        self._halves_bytes -= 0 if other is None else len(other[1])
        if other is not None and other[0] != is_beginning and len(other[1]) + len(half) == run.size:
            self._emit(stream, index, [half + other[1] if is_beginning else other[1] + half])
            return
        halves[key] = is_beginning, half
        self._halves_bytes += len(half)
        while self._halves_bytes > HALVES_BYTES_MAX:
            self._halves_bytes -= len(halves.pop(next(iter(halves)))[1])

    @staticmethod
    def _key(run: Data, index: int) -> tuple[ViewId, Address, int]:
        return run.view, run.origin, run.first + index

    def _emit(self, stream: _Stream, index: int, payloads: list[Payload]) -> None:
        """Add messages to the last run if they continue it, else as a run of their own."""
        run, nbytes = stream.run, len(payloads) * stream.run.size
        first = run.first + index
        last = self.runs[-1] if self.runs else None
        if (
            last is not None
            and last.origin == run.origin
            and last.sent_at == run.sent_at
            and last.first + len(last.payloads) == first
            and (last.view, last.low, last.flags, last.size, last.start)
            == (run.view, run.low, run.flags, run.size, run.start)
            and isinstance(last.payloads, list)
        ):
            last.payloads += payloads
            last.nbytes += nbytes
        else:
            part = Data(
                run.view, run.start, run.origin, first, run.low, run.sent_at, run.flags, payloads,
                nbytes, run.size,
            )  # fmt: skip
            self.runs.append(part)


def peek(datagram: bytes, group: int) -> Data | None:
    """The messages that a datagram of a packed run touches, whole or not; None for every other
    datagram."""
    reader = PackedReader(group)
    if not reader.read(datagram, NO_VIEW):
        return None
    (stream,) = reader._streams.values()
    run = stream.run
    position = POSITION.unpack_from(datagram, PACKED_HEAD_SIZE)[0] // _TWICE
    first, end = position // run.size, -(-(position + len(datagram) - PACKED_AT) // run.size)
    payloads: list[Payload] = [b""] * (end - first)
    return replace(run, first=run.first + first, payloads=payloads)


def _parse(head: bytes, group: int, view: ViewId) -> _Stream | None:
    """What the head of a datagram says of its run; None if it is not right."""
    prefix, described = head[: PREFIX.size], head[-PACKED_RUN.size :]
    if CHECKSUM.unpack_from(head, PREFIX.size) != (crc32(described, crc32(prefix)),):
        return None
    magic, version, flags, its_group, source = PREFIX.unpack(prefix)
    number, count, size, run_flags, coordinator, start, sent_at, first, low = PACKED_RUN.unpack(
        described
    )
    if (
        (magic, version, flags, its_group) != (MAGIC, VERSION, FLAG_PACKED, group)
        or source == EVERYBODY
        or not 0 < size < VIEW_PAYLOAD_SIZE
        or not 0 < count <= MESSAGES_MAX
        or not is_stream_in_bounds(number, start)
        or not is_run_in_bounds(first, low, count, sent_at, run_flags)
    ):
        return None
    if number != view.number or coordinator != view.coordinator:
        view = ViewId(number, Address(coordinator))
    run = Data(view, start, Address(source), first, low, sent_at, run_flags, [], 0, size)
    return _Stream(head, run, count)


@dataclass(slots=True)
class _Sent:
    """A packed run that was sent, and what of it was sent again."""

    first: int
    last: int
    size: int
    step: int
    """Bytes of messages in each of its datagrams but for the last."""
    head: bytes
    tries: dict[tuple[Target, int], int]
    """By target and number of the datagram: how often it was sent again."""

    @property
    def end(self) -> int:
        """Bytes of all messages."""
        return (self.last + 1 - self.first) * self.size

    def within(self, first: int, last: int) -> range:
        """The numbers of the datagrams that hold nothing but messages first to last."""
        begin, end = (first - self.first) * self.size, (last + 1 - self.first) * self.size
        stop = -(-end // self.step) if end == self.end else end // self.step
        return range(-(-begin // self.step), stop)

    def should_try(self, target: Target, numbers: range) -> bool:
        """Whether these datagrams are worth another try, which is counted."""
        tries = self.tries
        if any(tries.get((target, number), 0) >= PACKET_TRIES for number in numbers):
            return False
        for number in numbers:
            tries[target, number] = tries.get((target, number), 0) + 1
        return True


class SentRuns:
    """The packed runs of one sender that some receiver may lack messages of."""

    __slots__ = ("_firsts", "_me", "_runs", "_view")

    def __init__(self, me: Address) -> None:
        self._me = me
        self._view: ViewId = NO_VIEW
        self._firsts: list[int] = []
        self._runs: list[_Sent] = []

    def note(self, run: Data, part: PackedPart) -> None:
        """A run is sent in these datagrams; what was sent before is not noted again."""
        if run.view != self._view:  # In another view it would have another head.
            self._view = run.view
            self._firsts.clear()
            self._runs.clear()
        freed = bisect_right(self._firsts, run.low) - 1
        if freed > 0:  # Each of them ends before the next one begins.
            del self._firsts[:freed], self._runs[:freed]
        last = run.first + len(run.payloads) - 1
        if self._runs and run.first <= self._runs[-1].last:
            return
        self._firsts.append(run.first)
        self._runs.append(_Sent(run.first, last, run.size, part.step, part.head, {}))

    def again(self, run: Data, target: Target, mtu: int) -> list[Data | PackedPart]:
        """What sends messages of a run again: datagrams as they were, and messages for the rest."""
        place = bisect_right(self._firsts, run.first) - 1
        if place < 0 or run.view != self._view or run.origin != self._me or not run.payloads:
            return [run]
        sent, first, last = self._runs[place], run.first, run.first + len(run.payloads) - 1
        if last > sent.last or run.size != sent.size or PACKED_AT + sent.step > mtu:
            return [run]
        numbers = sent.within(first, last)
        if not numbers or not sent.should_try(target, numbers):
            return [run]
        begin, end = numbers.start * sent.step, min(numbers.stop * sent.step, sent.end)
        low = sent.first + begin // sent.size
        high = sent.first + (end - 1) // sent.size
        frames: list[Data | PackedPart] = [
            PackedPart(
                head=sent.head,
                payloads=run.payloads[low - first : high + 1 - first],
                position=begin,
                nbytes=end - begin,
                size=sent.size,
                step=sent.step,
            )
        ]
        if first < low:
            frames.append(_part(run, first, low - 1))
        if high < last:
            frames.append(_part(run, high + 1, last))
        return frames


def _part(run: Data, first: int, last: int) -> Data:
    payloads = run.payloads[first - run.first : last + 1 - run.first]
    return replace(run, first=first, payloads=payloads, nbytes=len(payloads) * run.size)
