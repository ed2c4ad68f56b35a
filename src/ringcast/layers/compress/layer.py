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
cannot be unpacked is announced to the application in its place, as skipped.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.stack.counters import declare
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Control, Ports
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
    """Which messages are compressed, and how far others may grow. Windows count compressed bytes:
    of messages that shrink to a tenth, an application that stands still has ten times `max_bytes`
    waiting for it, per sender."""

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
        self._unpackers: dict[tuple[Address, bool], Unpacker] = {}
        """Per sender, to the group or to this member: the block under way."""

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]

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
        good: list[Payload] = []
        for seqno, payload in enumerate(batch.payloads, batch.first):
            whole = self._unpacked(stream, payload)
            if whole is not None:
                good.append(whole)
                continue
            self._pass(batch, seqno - len(good), good)
            good = []
            self._skip(batch, seqno)
        self._pass(batch, batch.last + 1 - len(good), good)

    def _unpacked(self, stream: tuple[Address, bool], payload: Payload) -> Payload | None:
        data = bytes(payload)
        if data[:1] == FIRST:
            self._unpackers[stream] = self._algorithm.unpacker()
        unpacker = self._unpackers.get(stream)
        if unpacker is None or not data:
            return None
        try:
            return unpacker.unpack(data[1:], self.spec.max_message)
        except UnpackError:
            del self._unpackers[stream]
            return None

    def _pass(self, batch: Batch, first: int, payloads: list[Payload]) -> None:
        if payloads:
            whole = Batch(
                batch.sender,
                payloads,
                sum(map(len, payloads)),
                dest=batch.dest,
                first=first,
                flags=batch.flags & ~COMPRESSED,
                sent_at=batch.sent_at,
            )
            self.above.up(whole)

    def _skip(self, batch: Batch, seqno: int) -> None:
        self.env.counters[UNPACKABLE] += 1
        reason = "it could not be unpacked"
        event = Skipped(batch.sender, seqno, seqno, reason, batch.dest is not None)
        if batch.dest is None:
            self.above.skipped(event)
        else:
            self._control.emit(event)

    def skipped(self, event: Skipped) -> None:
        # What is left of the block cannot be unpacked without these.
        self._unpackers.pop((event.sender, not event.direct), None)
        self.above.skipped(event)

    # ---------------------------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        self._unpackers.clear()  # No block lies in two views.

    def snapshot(self) -> CompressSnapshot:
        saved = self.env.counters[SAVED]
        return CompressSnapshot(saved_bytes=saved, blocks=len(self._unpackers))
