"""Cutting runs so that each fits a datagram: by arithmetic where all messages have one size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ringcast.core.batch import Payload
from ringcast.core.frames import Data, UnicastData

SIZE_FIELD = 4
"""What the size of a message costs in a run whose messages differ in size."""


def fits(frame: Data | UnicastData, budget: int) -> bool:
    """Whether the payloads of a run, and their sizes if those differ, stay within the budget."""
    sizes = 0 if frame.size else SIZE_FIELD * len(frame.payloads)
    return frame.nbytes + sizes <= budget


def cut(frame: Data | UnicastData, budget: int) -> Iterator[Data | UnicastData]:
    """A run as runs that fit the budget, of one message at the least."""
    if fits(frame, budget):
        yield frame
        return
    for begin, end, nbytes in _cuts(frame.payloads, frame.size, budget):
        yield replace(
            frame, first=frame.first + begin, payloads=frame.payloads[begin:end], nbytes=nbytes
        )


def _cuts(payloads: Sequence[Payload], size: int, budget: int) -> Iterator[tuple[int, int, int]]:
    """Where each run begins and ends, and how many bytes it has."""
    if size:
        step = max(1, budget // size)
        for begin in range(0, len(payloads), step):
            end = min(begin + step, len(payloads))
            yield begin, end, (end - begin) * size
        return
    ends = [0, *accumulate(map(len, payloads))]
    costs = [end + SIZE_FIELD * count for count, end in enumerate(ends)]
    begin = 0
    while begin < len(payloads):
        end = max(begin + 1, bisect_right(costs, costs[begin] + budget, begin) - 1)
        yield begin, end, ends[end] - ends[begin]
        begin = end
