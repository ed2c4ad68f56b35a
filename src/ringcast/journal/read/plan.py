"""Which rows of which segment make a union without duplicates, decided from manifests alone.

A message is (group, sender, seqno): a sender's seqnos rise across views and its address is never
used again, so the view adds nothing. Each seqno is taken from the first segment, in the order of
sealing, that covers it. A segment that is sealed later never changes the choice made before, so a
reader that plans the same range again reads the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringcast.journal.format.manifest import Segment
from ringcast.journal.format.spans import Spans, count, intersect, normal, subtract, union

Key = tuple[str, int]
"""A group and a sender in it."""

Cover = Mapping[Key, Spans]
"""Seqnos by group and sender."""


@dataclass(frozen=True)
class Slice:
    """The part of one segment that a reader takes from it."""

    segment: Segment
    senders: Mapping[int, Spans]

    @property
    def whole(self) -> bool:
        """Whether all of the segment is taken, and nothing needs to be filtered."""
        return dict(self.senders) == self.segment.cover


def assign(
    segments: Iterable[Segment], wanted: Cover, enough: int | None = None
) -> tuple[list[Slice], dict[Key, Spans]]:
    """What to take from which segment, and what of `wanted` is in none of them.

    The segments come in the order of sealing. Slices keep that order; none is empty. A sender with
    `enough` seqnos is left out of further segments.
    """
    rest = {key: spans for key, spans in wanted.items() if spans}
    missing = dict.fromkeys(rest, enough or sum(map(count, rest.values())))
    slices: list[Slice] = []
    for segment in segments:
        if not missing:
            break
        taken: dict[int, Spans] = {}
        for sender, spans in segment.cover.items():
            key = (segment.group, sender)
            common = intersect(rest[key], spans) if key in missing else ()
            if common:
                taken[sender] = common
                rest[key] = subtract(rest[key], common)
                missing[key] -= count(common)
                if not rest[key] or missing[key] <= 0:
                    del missing[key]
        if taken:
            slices.append(Slice(segment, taken))
    return slices, {key: spans for key, spans in rest.items() if spans}


def cover_of(segments: Iterable[Segment]) -> dict[Key, Spans]:
    """What these segments cover together."""
    pairs: dict[Key, list[tuple[int, int]]] = {}
    for segment in segments:
        for sender, spans in segment.cover.items():
            pairs.setdefault((segment.group, sender), []).extend(spans)
    return {key: normal(some) for key, some in pairs.items()}


def joined(a: Cover, b: Cover) -> dict[Key, Spans]:
    """What either covers."""
    return {key: union(a.get(key, ()), b.get(key, ())) for key in {**a, **b}}


def less(a: Cover, b: Cover) -> dict[Key, Spans]:
    """What `a` covers and `b` does not."""
    rest = ((key, subtract(spans, b.get(key, ()))) for key, spans in a.items())
    return {key: spans for key, spans in rest if spans}


def within(a: Cover, b: Cover) -> dict[Key, Spans]:
    """What both cover."""
    common = ((key, intersect(spans, b.get(key, ()))) for key, spans in a.items())
    return {key: spans for key, spans in common if spans}


def size(a: Cover) -> int:
    """How many seqnos are covered."""
    return sum(map(count, a.values()))
