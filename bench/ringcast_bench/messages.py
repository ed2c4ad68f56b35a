"""Messages that say which ones they are, and a check that all of them come, in order.

Everything measured sends the same messages: `POOL` different ones, over and over, made before the
clock starts. A receiver has the same and compares. One by one it compares every message whole; runs
of messages are compared at both ends, so that the check costs next to nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice

from ringcast_bench.job import BenchFailure, Report

Buffer = bytes | bytearray | memoryview

POOL = 1_024
RUN = 1_024
"""Messages that are given to the sender at once, where it takes several."""
LARGE = 1_000_000
"""Messages from this size on are looked at in places only, and share one buffer."""
STRIDE = 4_093
SHIFT = 8
"""Bytes between the beginnings of two large messages in their buffer."""


class Messages:
    """The messages of one run, as sent and as expected."""

    def __init__(self, size: int, count: int, is_random: bool = False) -> None:
        """is_random: small messages have nothing in common, and take more memory."""
        self.size, self.count = size, count
        self.is_large = size >= LARGE
        self.pool = _large(size, min(count, POOL)) if self.is_large else _small(size, is_random)

    def runs(self) -> Iterator[Sequence[Buffer]]:
        """All messages, in lists of RUN."""
        pool = self.pool
        lists = [pool[at : at + RUN] for at in range(0, len(pool), RUN)]
        left = self.count
        while left:
            for run in lists:
                yield run[:left] if left < len(run) else run
                left -= min(left, len(run))
                if not left:
                    break

    def each(self) -> Iterator[Buffer]:
        """All messages, one by one."""
        pool = self.pool
        full, rest = divmod(self.count, len(pool))
        for _ in range(full):
            yield from pool
        yield from islice(pool, rest)


class Check:
    """What one receiver has of one sender. Raises BenchFailure at the first wrong message."""

    def __init__(self, messages: Messages) -> None:
        self._pool = messages.pool
        self._is_large = messages.is_large
        self.expected = messages.count
        self.count = 0
        self.ended = 0.0

    def run(self, payloads: Sequence[Buffer]) -> bool:
        """A run has come; True when it was the last."""
        at = self.count
        self.count = at + len(payloads)
        self._compare(payloads[0], at)
        self._compare(payloads[-1], self.count - 1)
        return self.count >= self.expected and self._finish()

    def one(self, payload: Buffer) -> bool:
        """A message has come by itself; True when it was the last."""
        at = self.count
        self.count = at + 1
        self._compare(payload, at)
        return self.count >= self.expected and self._finish()

    def each(self, payloads: Iterator[Buffer]) -> None:
        """Take messages one by one until all are there."""
        if self._is_large:
            for payload in payloads:  # By zip, one before the last would be kept as well.
                if self.one(payload):
                    return
            raise BenchFailure(f"messages ended after {self.count:,} of {self.expected:,}")
        while self.count < self.expected:
            wanted = self._pool[: self.expected - self.count]
            came = 0
            # The pool comes first: at its end, no message is dequeued and left unchecked.
            for came, (want, payload) in enumerate(zip(wanted, payloads, strict=False), start=1):
                if payload != want:
                    self._compare(payload, self.count + came - 1)
            self.count += came
            if came < len(wanted):
                raise BenchFailure(f"messages ended after {self.count:,} of {self.expected:,}")
        self._finish()

    def report(self) -> Report:
        """How many came, and when."""
        return {"count": self.count, "ended": self.ended}

    def _finish(self) -> bool:
        self.ended = time.monotonic()
        if self.count != self.expected:
            raise BenchFailure(f"{self.count:,} messages came instead of {self.expected:,}")
        return True

    def _compare(self, payload: Buffer, at: int) -> None:
        wanted = self._pool[at % len(self._pool)]
        same = _same(payload, wanted) if self._is_large else payload == wanted
        if not same:
            came = bytes(payload[:8]).hex()
            raise BenchFailure(
                f"message {at:,} is not the one that was sent, it begins with {came}:"
                " one was lost, skipped, or out of order"
            )


def _small(size: int, is_random: bool) -> list[Buffer]:
    if is_random:
        dice = random.Random(size)
        return [dice.randbytes(size) for _ in range(POOL)]
    filler = random.Random(size).randbytes(max(0, size - 8))
    return [(number.to_bytes(8, "big") + filler)[:size] for number in range(POOL)]


def _large(size: int, count: int) -> list[Buffer]:
    """Views of one buffer that begin a few bytes apart, so that they differ and take no memory."""
    block = random.Random(size).randbytes(65_521)
    whole = bytearray(size + SHIFT * count)
    for at in range(0, len(whole), len(block)):
        whole[at : at + len(block)] = block[: len(whole) - at]
    view = memoryview(whole).toreadonly()
    return [view[SHIFT * number : SHIFT * number + size] for number in range(count)]


def _same(payload: Buffer, wanted: Buffer) -> bool:
    if len(payload) != len(wanted):
        return False
    ours, theirs = memoryview(payload), memoryview(wanted)
    return ours[-64:] == theirs[-64:] and ours[::STRIDE].tobytes() == theirs[::STRIDE].tobytes()
