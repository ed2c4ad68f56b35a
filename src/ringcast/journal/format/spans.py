"""Sets of seqnos as a few ranges, so that digests, holes and offsets cost nothing a message.

`Spans` are pairs (first, last), both included, in rising order, with at least one seqno missing
between two neighbours. Every function takes and gives such a tuple; each costs one pass.
"""

from __future__ import annotations

from collections.abc import Iterable

Spans = tuple[tuple[int, int], ...]


def normal(pairs: Iterable[tuple[int, int]]) -> Spans:
    """Any pairs, in any order and overlapping as they may, as spans."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if last < first:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def union(a: Spans, b: Spans) -> Spans:
    """What is in either."""
    return normal((*a, *b)) if a and b else a or b


def subtract(a: Spans, b: Spans) -> Spans:
    """What is in `a` and not in `b`."""
    left: list[tuple[int, int]] = []
    at = 0
    for start, last in a:
        first = start
        while at < len(b) and b[at][1] < first:
            at += 1
        following = at
        while following < len(b) and b[following][0] <= last:
            if first < b[following][0]:
                left.append((first, b[following][0] - 1))
            first = b[following][1] + 1
            following += 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def intersect(a: Spans, b: Spans) -> Spans:
    """What is in both."""
    common: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        first, last = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first <= last:
            common.append((first, last))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def count(a: Spans) -> int:
    """How many seqnos there are."""
    return sum(last - first + 1 for first, last in a)


def gaps(a: Spans) -> Spans:
    """What lies between the first and the last seqno and is not in `a`."""
    return tuple((a[i][1] + 1, a[i + 1][0] - 1) for i in range(len(a) - 1))


def to_text(a: Spans) -> str:
    """The form of manifests and offsets: "1-50,81-90"."""
    return ",".join(f"{first}-{last}" for first, last in a)


def from_text(text: str) -> Spans:
    """Spans from their text; raises ValueError when it is none."""
    pairs = [part.split("-") for part in text.split(",")] if text else []
    return normal((int(first), int(last)) for first, last in pairs)
