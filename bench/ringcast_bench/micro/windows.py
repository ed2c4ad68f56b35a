"""What a message costs in the windows, one by one beside runs, to keep the fast paths fast.

Batches are made before the clock starts: what they cost is the codec's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.windows import ReceiveWindow, SendWindow
from ringcast.ringbuffer.ring import RingBuffer
from ringcast_bench.micro.timing import Case, Work

CAPACITY = 16_384
RUN = 64
ADDED = 512
"""Ranges that are added in the middle."""
PAYLOAD = b"x" * 100
SENDER = Address(1)

Moves = Callable[[list[Batch]], None]
"""Moves all messages of these runs, which come in the order of their seqnos."""


def cases(messages: int) -> Iterator[Case]:
    """Every case, in runs and one by one."""
    for length, words in ((RUN, f"runs of {RUN}"), (1, "one by one")):
        count = max(messages - messages % (4 * length), 4 * length)
        for name, moves in MOVES.items():
            yield Case(f"window: {name}, {words}", partial(_prepare, moves, count, length))
    for ranges in (64, 65_536):
        name = f"ranges: one in the middle of {ranges:,}"
        yield Case(name, partial(_ranges_in_the_middle, ranges))


def _ranges_in_the_middle(count: int) -> Work:
    """One number added to, and taken from, the middle of a set of this many ranges."""
    ranges = RangeSet((4 * i, 4 * i) for i in range(count))
    numbers = [4 * (i * count // ADDED) + 2 for i in range(ADDED)]

    def work() -> int:
        for number in numbers:
            ranges.add(number, number)
        for number in numbers:
            ranges.discard(number, number)
        return 2 * ADDED

    return work


def _prepare(moves: Moves, messages: int, length: int) -> Work:
    runs = make_runs(messages, length)

    def work() -> int:
        moves(runs)
        return messages

    return work


def make_runs(messages: int, length: int) -> list[Batch]:
    """Runs of such a length; they share their payloads, which no window looks into."""
    payloads, nbytes = [PAYLOAD] * length, length * len(PAYLOAD)
    firsts = range(1, messages + 1, length)
    return [Batch(SENDER, payloads, nbytes, first=first) for first in firsts]


def receive_in_order(runs: list[Batch]) -> None:
    """The fast path: put, deliver."""
    window = ReceiveWindow(CAPACITY)
    for run in runs:
        for handed in window.put(run):
            window.deliver(handed.last)
    assert window.delivered == runs[-1].last


def put_in_order(runs: list[Batch]) -> None:
    """The same where the application takes 4,096 messages at a time: next to nothing but put."""
    window = ReceiveWindow(CAPACITY)
    for run in runs:
        window.put(run)
        if window.handed - window.delivered >= 4_096:
            window.deliver(window.handed)
    assert window.handed == runs[-1].last


def receive_kept(runs: list[Batch]) -> None:
    """Messages are kept until they are stable, 4,096 at a time."""
    window = ReceiveWindow(CAPACITY, keep=True)
    for run in runs:
        for handed in window.put(run):
            window.deliver(handed.last)
        if window.delivered - window.low >= 4_096:
            window.purge(window.delivered)
    assert window.delivered == runs[-1].last


def receive_swapped(runs: list[Batch]) -> None:
    """Every other run comes before the one ahead of it: a gap, and its fill."""
    window = ReceiveWindow(CAPACITY)
    for run in swapped(runs):
        for handed in window.put(run):
            window.deliver(handed.last)
    assert window.delivered == runs[-1].last


def receive_behind_gap(runs: list[Batch]) -> None:
    """The first run of 4,096 messages comes last, so all the others wait behind the gap."""
    window = ReceiveWindow(CAPACITY)
    count = max(1, 4_096 // len(runs[0]))
    for start in range(0, len(runs), count):
        for run in (*runs[start + 1 : start + count], runs[start]):
            window.put(run)
        window.deliver(window.handed)
    assert window.delivered == runs[-1].last


def receive_duplicates(runs: list[Batch]) -> None:
    """Every run comes twice."""
    window = ReceiveWindow(CAPACITY)
    for run in runs:
        for handed in window.put(run):
            window.deliver(handed.last)
        window.put(run)
    assert window.duplicates == runs[-1].last


def send_and_purge(runs: list[Batch]) -> None:
    """Ask for room, append, and purge every 1,024 messages, at the end of a run."""
    window = SendWindow(CAPACITY, max_bytes=4_000_000)
    last = runs[-1].last
    for run in runs:
        assert window.room()[0] >= len(run)
        window.append(run)
        if window.outstanding >= 1_024:
            window.purge(window.high)
    assert window.high == last


def send_and_purge_askew(runs: list[Batch]) -> None:
    """The same with a purge after every run, that ends in the middle of it."""
    window = SendWindow(CAPACITY, max_bytes=4_000_000)
    half = len(runs[0]) // 2
    last = runs[-1].last
    for run in runs:
        assert window.room()[0] >= len(run)
        window.append(run)
        window.purge(window.high - half)
    assert window.high == last


def resend(runs: list[Batch]) -> None:
    """Answer requests of sixteen runs each from a full window."""
    window = SendWindow(CAPACITY)
    length = len(runs[0])
    for run in runs[: CAPACITY // length]:
        window.append(run)
    ranges = RangeSet((1 + i * 2 * length, i * 2 * length + length) for i in range(16))
    for _ in range(0, len(runs), 16):
        window.get(ranges)


def swapped(runs: list[Batch]) -> Iterator[Batch]:
    """The runs, two and two in the wrong order."""
    for one, two in zip(runs[::2], runs[1::2], strict=True):
        yield two
        yield one


def hand_over_by_deque(runs: list[Batch]) -> None:
    """A queue between threads: append, popleft; what the inbox and the gateway do."""
    queue = deque[Batch]()
    for run in runs:
        queue.append(run)
        queue.popleft()


def hand_over_by_ring(runs: list[Batch]) -> None:
    """The same with the RingBuffer: add, remove."""
    ring = RingBuffer[Batch](64)
    for seqno, run in enumerate(runs, 1):
        ring.add(seqno, run)
        ring.remove()


MOVES: dict[str, Moves] = {
    "receive in order": receive_in_order,
    "put alone": put_in_order,
    "receive, kept until stable": receive_kept,
    "receive swapped": receive_swapped,
    "receive behind a gap": receive_behind_gap,
    "receive everything twice": receive_duplicates,
    "send and purge": send_and_purge,
    "send and purge inside runs": send_and_purge_askew,
    "resend": resend,
    "hand over by deque": hand_over_by_deque,
    "hand over by RingBuffer": hand_over_by_ring,
}
