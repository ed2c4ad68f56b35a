"""Cutting frames so that each fits a datagram: runs by arithmetic where all messages have one size,
requests by their ranges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ringcast.core.model.batch import Payload
from ringcast.core.model.ranges import RangeSet
from ringcast.core.wire.frames import Data, Nak, UnicastData, UnicastNak
from ringcast.core.wire.layout import EMPTY_MAX, FRAME_SIZE

SIZE_FIELD = 4
"""What the size of a message costs in a run whose messages differ in size."""

REQUEST_SIZE = FRAME_SIZE + 8 + 4
"""Bytes of a request besides its ranges."""
RANGE_SIZE = 16


def fits(frame: Data | UnicastData, budget: int) -> bool:
    """Whether the payloads of a run, and their sizes if those differ, stay within the budget."""
    sizes = 0 if frame.size else SIZE_FIELD * len(frame.payloads)
    return frame.nbytes + sizes <= budget and (frame.nbytes > 0 or len(frame.payloads) <= EMPTY_MAX)


def cut_request(frame: Nak | UnicastNak, most: int) -> Iterator[Nak | UnicastNak]:
    """A request as requests of up to `most` ranges."""
    assert most > 0
    ranges = list(frame.ranges.ranges())
    for begin in range(0, len(ranges), most):
        yield replace(frame, ranges=RangeSet(ranges[begin : begin + most]))


def cut(frame: Data | UnicastData, budget: int) -> Iterator[Data | UnicastData]:
    """A run as runs that fit the budget, of one message at the least."""
    assert frame.payloads
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
    budget = budget if ends[-1] else min(budget, SIZE_FIELD * EMPTY_MAX)
    costs = [end + SIZE_FIELD * count for count, end in enumerate(ends)]
    begin = 0
    while begin < len(payloads):
        end = max(begin + 1, bisect_right(costs, costs[begin] + budget, begin) - 1)
        yield begin, end, ends[end] - ends[begin]
        begin = end
