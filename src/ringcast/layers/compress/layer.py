"""Compression: messages to the group that come in one run share what they have in common.

The messages of a run that fits a datagram each are one block: each is compressed with those before
it as its dictionary, so that small messages which resemble each other become far smaller than each
could alone. There are as many messages below as above, so seqnos, acks and gaps stay as they are.
A larger message, and one for a single member, is a block of its own.

A layer below passes a run on at once when there was room for it; so a block never lies in two
views, and a member that joins begins with a whole block. A run that does not get smaller goes as it
is: a sample of it is tried first, and after one that did not shrink the next runs are not tried at
all, for longer each time. So random bytes cost little.

Receiving believes nothing: no message grows beyond `max_message`, whatever its bytes say. One that
cannot be unpacked is announced to the application in its place, as skipped. Messages wait packed
for the application and are unpacked when it takes them, so that what grows takes little memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, SupportsIndex, cast, overload

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.stack.counters import declare
from ringcast.core.stack.env import Env
from ringcast.core.stack.inbox import UNPACKED_BYTES
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Control, Intake, Ports
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.errors import ConfigError
from ringcast.layers.compress.algorithms import Unpacker, UnpackError, best, find

COMPRESSED = 16
"""Flag: each payload is compressed, with a byte before it that says how."""
FIRST, NEXT = b"\1", b"\0"
"""That byte: the message begins a block, or goes on with it."""
SAMPLE = 4_096
"""Bytes of a run that are tried first."""
UNTRIED_MIN, UNTRIED_MAX = 1 << 16, 1 << 22
"""Bytes that go untried after a sample that did not shrink: twice as many each time."""
GAIN = 0.9
"""A run or sample that does not shrink to this part of its size goes as it is."""
AUTO = "auto"
"""The setting that chooses zstd where it is installed, else zlib."""

UNPACKABLE = declare("dropped_unpackable", "messages", "Messages that could not be unpacked.")
SAVED = declare("compress_saved_bytes", "bytes", "Bytes that compression did not have to send.")


@protocol(role="compress", over="large", flags=COMPRESSED)
@dataclass(frozen=True, kw_only=True)
class Compress(Spec):
    """Which messages are compressed, and how far others may grow. Messages wait packed for the
    application, so windows count compressed bytes."""

    alike: ClassVar[tuple[str, ...]] = ("algorithm", "max_message")

    algorithm: str = AUTO
    """"zstd", "zlib", or "auto" for zstd where it is installed (Python 3.14, or the extra
    `ringcast[zstd]`), else zlib."""
    threshold: int = 256
    """Bytes of a run below which it is not worth while."""
    level: int = 1
    """How hard to try, 1 to 9: more costs time at the sender and saves a few bytes."""
    max_message: int = 16_000_000
    """The largest message that is compressed, in bytes, and the most that a receiver unpacks from
    one; larger ones go as they are."""

    def __post_init__(self) -> None:
        if self.algorithm == AUTO:
            object.__setattr__(self, "algorithm", best())
        if self.algorithm not in ("zlib", "zstd"):
            raise ConfigError(
                f"Compress.algorithm is {self.algorithm!r}: give 'auto', 'zstd' or 'zlib'"
            )
        if find(self.algorithm) is None:
            raise ConfigError(
                "Compress.algorithm is 'zstd', which is not installed here: run"
                " `pip install 'ringcast[zstd]'`, or give 'zlib' at all members"
            )
        if self.threshold < 1:
            raise ConfigError(f"Compress.threshold is {self.threshold}: give at least 1 byte")
        if not 1 <= self.level <= 9:
            raise ConfigError(f"Compress.level is {self.level}: give 1 to 9")
        if self.max_message < 1:
            raise ConfigError(f"Compress.max_message is {self.max_message}: give at least 1 byte")

    def build(self, env: Env) -> CompressLayer:
        """The layer with these settings."""
        return CompressLayer(env, self)


@dataclass(frozen=True, kw_only=True)
class CompressSnapshot(PartSnapshot):
    """What compression did."""

    saved_bytes: int
    """Bytes that were not sent, since the others of their run had them."""
    blocks: int
    """Senders whose block this member is in the middle of."""


class _Block:
    """Messages that are unpacked one after the other."""

    __slots__ = ("unpacker",)

    def __init__(self) -> None:
        self.unpacker: Unpacker | None = None
        """Made for the first of them; None again when one could not be unpacked."""

    def unpack(self, payload: Payload, most: int) -> bytes | None:
        """The next message; None when it cannot be unpacked, nor any behind it."""
        unpacker = self.unpacker
        if unpacker is None or not payload:
            return None
        try:
            return unpacker.unpack(bytes(payload)[1:], most)
        except UnpackError:
            self.unpacker = None
            return None


class _PackedPayloads(list[Payload]):
    """Messages of one run that were not unpacked yet, and the blocks that they are of."""

    __slots__ = ("before", "blocks")

    def __init__(
        self,
        payloads: Iterable[Payload],
        before: _Block | None,
        blocks: list[tuple[int, _Block]] | None = None,
    ) -> None:
        super().__init__(payloads)
        self.before = before
        """The block that the first messages go on with."""
        if blocks is None:
            first = FIRST[0]
            starts = [n for n, payload in enumerate(self) if payload and payload[0] == first]
            blocks = [(start, _Block()) for start in starts]
        self.blocks = blocks
        """Those that begin here: at which message, and the block."""

    @property
    def last(self) -> _Block | None:
        """The block that the next run goes on with."""
        return self.blocks[-1][1] if self.blocks else self.before

    @overload
    def __getitem__(self, index: SupportsIndex) -> Payload: ...

    @overload
    def __getitem__(self, index: slice) -> _PackedPayloads: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Payload | _PackedPayloads:
        part = super().__getitem__(index)
        if not isinstance(index, slice):
            return cast(Payload, part)
        begin, end, _ = index.indices(len(self))
        before = [block for start, block in self.blocks if start < begin]
        blocks = [(start - begin, block) for start, block in self.blocks if begin <= start < end]
        return _PackedPayloads(cast(list[Payload], part), [self.before, *before][-1], blocks)


class CompressLayer(Layer):
    """Packs runs on their way down, unpacks them on their way up."""

    def __init__(self, env: Env, spec: Compress) -> None:
        super().__init__(env)
        self.spec = spec
        algorithm = find(spec.algorithm)
        assert algorithm is not None  # Compress has checked it.
        self._algorithm = algorithm
        self._untried, self._pause = 0, UNTRIED_MIN
        """Bytes that go as they are, and how many after the next sample that does not shrink."""
        self._blocks: dict[tuple[Address, bool], _Block] = {}
        """Per sender, to the group or to this member: the block under way."""
        self._is_taken_packed = False
        """Whether messages go up packed, since no layer above looks at them."""

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]
        intake = ports.get(Intake)
        if intake is not None and not any(layer.reads_payloads for layer in self._layers_above()):
            self._is_taken_packed = True
            intake.unpack_with(COMPRESSED, self.unpack)

    def _layers_above(self) -> Iterator[Layer]:
        layer: Layer | None = getattr(self, "above", None)
        while layer is not None:
            yield layer
            layer = getattr(layer, "above", None)

    # Sending -------------------------------------------------------------------------------------

    def down(self, batch: Batch) -> None:
        packed = self._packed(batch)
        if packed is None:
            self.below.down(batch)
            return
        nbytes = sum(map(len, packed))
        self.env.counters[SAVED] += batch.nbytes - nbytes
        flags = batch.flags | COMPRESSED
        self.below.down(Batch(batch.sender, packed, nbytes, dest=batch.dest, flags=flags))

    def _packed(self, batch: Batch) -> list[Payload] | None:
        """The payloads, compressed; None when they had better go as they are."""
        largest = batch.size or max(map(len, batch.payloads))
        if batch.nbytes < self.spec.threshold or largest > self.spec.max_message:
            return None
        if self._untried > 0:
            self._untried -= batch.nbytes
            return None
        if not self._shrinks(batch.payloads):
            self._untried, self._pause = self._pause, min(2 * self._pause, UNTRIED_MAX)
            return None
        self._pause = UNTRIED_MIN
        packed = self._block(batch.payloads, shares=batch.dest is None)
        if batch.dest is None and max(map(len, packed)) > self.below.max_unit:
            packed = self._block(batch.payloads, shares=False)
        if max(map(len, packed)) > self.below.max_message:
            return None
        return packed if sum(map(len, packed)) <= GAIN * batch.nbytes else None

    def _block(self, payloads: Sequence[Payload], *, shares: bool) -> list[Payload]:
        """Payloads compressed, each with those before it as its dictionary or each alone."""
        packed: list[Payload] = []
        pack = None
        for payload in payloads:
            head = NEXT
            if pack is None or not shares:
                pack = self._algorithm.packer(self.spec.level)
                head = FIRST
            packed.append(head + pack(payload))
        return packed

    def _shrinks(self, payloads: Sequence[Payload]) -> bool:
        sample = b""
        for payload in payloads:
            sample += bytes(payload[: SAMPLE - len(sample)])
            if len(sample) >= SAMPLE:
                break
        return len(zlib.compress(sample, 1)) <= GAIN * len(sample)

    # Receiving -----------------------------------------------------------------------------------

    def up(self, batch: Batch) -> None:
        if not batch.flags & COMPRESSED:
            self.above.up(batch)
            return
        stream = (batch.sender, batch.dest is None)
        payloads = _PackedPayloads(batch.payloads, self._blocks.get(stream))
        if payloads.last is not None:
            self._blocks[stream] = payloads.last
        packed = batch.with_payloads(payloads)
        if batch.flags == COMPRESSED and self._is_taken_packed:
            self.above.up(packed)  # So that what waits for the application waits packed.
            return
        rest: Batch | None = packed
        while rest is not None:
            events, rest = self.unpack(rest, len(rest), UNPACKED_BYTES)
            for event in events:
                if isinstance(event, Batch):
                    self.above.up(event)
                elif event.direct:
                    self._control.emit(event)
                else:
                    self.above.skipped(event)

    def unpack(
        self, batch: Batch, limit: int, most: int
    ) -> tuple[list[Batch | Skipped], Batch | None]:
        """The first messages as they were, up to this many and until they have `most` bytes, and
        the rest; in the place of one that cannot be unpacked, that it is skipped."""
        payloads, max_message = batch.payloads, self.spec.max_message
        assert isinstance(payloads, _PackedPayloads)
        events: list[Batch | Skipped] = []
        good: list[Payload] = []
        nbytes, seqno, blocks, block = 0, batch.first, dict(payloads.blocks), payloads.before
        for number, payload in enumerate(islice(payloads, limit)):
            if number in blocks:
                block = blocks[number]
                block.unpacker = self._algorithm.unpacker()
            whole = None if block is None else block.unpack(payload, max_message)
            if whole is None:
                self._pass(events, batch, seqno - len(good), good)
                good = []
                self._skip(events, batch, seqno)
            else:
                good.append(whole)
                nbytes += len(whole)
            seqno += 1
            if nbytes >= most:
                break
        self._pass(events, batch, seqno - len(good), good)
        assert seqno > batch.first
        return events, batch.part(seqno, batch.last) if seqno <= batch.last else None

    def _pass(
        self, events: list[Batch | Skipped], batch: Batch, first: int, payloads: list[Payload]
    ) -> None:
        if payloads:
            whole = batch.with_payloads(payloads, first)
            whole.flags &= ~COMPRESSED
            events.append(whole)

    def _skip(self, events: list[Batch | Skipped], batch: Batch, seqno: int) -> None:
        self.env.counters[UNPACKABLE] += 1
        reason = "it could not be unpacked"
        events.append(Skipped(batch.sender, seqno, seqno, reason, batch.dest is not None))

    def skipped(self, event: Skipped) -> None:
        # What is left of the block cannot be unpacked without these.
        self._blocks.pop((event.sender, not event.direct), None)
        self.above.skipped(event)

    # ---------------------------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        self._blocks.clear()  # No block lies in two views.

    def snapshot(self) -> CompressSnapshot:
        saved = self.env.counters[SAVED]
        return CompressSnapshot(saved_bytes=saved, blocks=len(self._blocks))
