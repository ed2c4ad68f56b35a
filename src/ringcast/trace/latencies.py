"""Counts latencies in buckets whose width grows with them, sixteen to a doubling.

So a percentile is right within 2.2 %, runs count with their length, and the counts of parts of a
trace just add up.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

BUCKETS_TO_A_DOUBLING = 16
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


def bucket(latency_us: int) -> int:
    """The bucket of a latency of 0 or more microseconds."""
    return math.floor(math.log2(max(latency_us, 1)) * BUCKETS_TO_A_DOUBLING)


def quantiles(histogram: Mapping[int, int]) -> Iterator[tuple[str, float]]:
    """The percentiles of a histogram, each as the middle of the bucket that it falls into."""
    if not histogram:
        return
    buckets = sorted(histogram)
    reached = list(accumulate(histogram[number] for number in buckets))
    for name, share in QUANTILES.items():
        place = bisect_left(reached, share * reached[-1])
        yield name, 2 ** ((buckets[place] + 0.5) / BUCKETS_TO_A_DOUBLING)
