"""What a message costs in the windows, one by one beside runs, to keep the fast paths fast.

Run `python bench/micro/windows.py [--json] [--messages N] [--rounds N]`. It prints nanoseconds of
the processor's time a message, the best of the rounds, since everything that disturbs a round makes
it longer. Batches are made before the clock starts: what they cost is the codec's. The garbage
collector is off, or it would go through all of them time and again.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.ranges import RangeSet
from ringcast.core.windows import ReceiveWindow, SendWindow

CAPACITY = 16_384
RUN = 64
PAYLOAD = b"x" * 100
SENDER = Address(1)

Case = Callable[[list[Batch]], None]
"""Moves all messages of these runs, which come in the order of their seqnos."""


def main() -> None:
    """Measure every case and print a table, or JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--messages", type=int, default=65_536, help="messages in a round")
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the best counts")
    options = parser.parse_args()
    if options.messages < 4 * RUN or options.rounds < 1:
        parser.error(f"give at least {4 * RUN} messages and 1 round")
    results = {
        name: {
            "one": measure(case, options.messages, 1, options.rounds),
            f"run_{RUN}": measure(case, options.messages, RUN, options.rounds),
        }
        for name, case in CASES.items()
    }
    if options.json:
        report = {"unit": "ns/message", "python": sys.version.split()[0], "results": results}
        print(json.dumps(report, indent=2))
        return
    print(f"{'ns a message':<36}{'one by one':>12}{f'runs of {RUN}':>12}")
    for name, costs in results.items():
        print(f"{name:<36}" + "".join(f"{cost:>12.1f}" for cost in costs.values()))


def measure(case: Case, messages: int, length: int, rounds: int) -> float:
    """Nanoseconds a message, the best of so many rounds."""
    messages -= messages % (4 * length)
    best = float("inf")
    for _ in range(rounds):
        runs = make_runs(messages, length)
        gc.disable()
        start = time.process_time_ns()
        case(runs)
        best = min(best, time.process_time_ns() - start)
        gc.enable()
    return round(best / messages, 2)


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


CASES: dict[str, Case] = {
    "receive, in order": receive_in_order,
    "receive, in order, put alone": put_in_order,
    "receive, in order, kept until stable": receive_kept,
    "receive, runs swapped": receive_swapped,
    "receive, behind a gap": receive_behind_gap,
    "receive, everything twice": receive_duplicates,
    "send and purge": send_and_purge,
    "send and purge inside runs": send_and_purge_askew,
    "resend": resend,
}


if __name__ == "__main__":
    main()
