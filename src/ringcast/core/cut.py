"""Cutting a batch into runs that fit a datagram each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from ringcast.core.batch import Batch

SIZE_FIELD = 4
"""What the size of a message costs in a run whose messages differ in size."""


def cut(batch: Batch, budget: int) -> Iterator[Batch]:
    """Runs of the batch whose payloads and size fields stay within the budget, one message at the
    least."""
    if batch.nbytes + SIZE_FIELD * len(batch) <= budget:
        yield batch
        return
    ends = list(accumulate(map(len, batch.payloads)))
    begin, done = 0, 0
    costs = [end + SIZE_FIELD * count for count, end in enumerate(ends, 1)]
    while begin < len(ends):
        end = max(begin + 1, bisect_right(costs, done + budget, begin))
        before = ends[begin - 1] if begin else 0
        yield Batch(
            batch.sender,
            batch.payloads[begin:end],
            ends[end - 1] - before,
            dest=batch.dest,
            flags=batch.flags,
            sent_at=batch.sent_at,
        )
        begin, done = end, costs[end - 1]
