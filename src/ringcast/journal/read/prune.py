"""Leaves out what a query's conditions rule out: segments by their manifests, then row groups.

Pruning happens after the union of recorders is planned, so it never changes which recorder a
message is taken from. What is left may still hold rows that the conditions rule out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ringcast.journal.format.manifest import Segment
from ringcast.journal.format.spans import intersect
from ringcast.journal.read.plan import Slice

Bounds = tuple[int, int]
"""The smallest and the largest value that is asked for."""

ANY: Bounds = (-(1 << 63), (1 << 63) - 1)
NUMBERS = ("sender", "seqno", "sent_at", "delivered_at", "view", "recorder")
"""Columns that conditions may bound; times are microseconds since 1970."""


@dataclass(frozen=True)
class Conditions:
    """What a query asks for: all of it must hold. Nothing is asked for by default."""

    groups: frozenset[str] | None = None
    senders: frozenset[int] | None = None
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """By column, one of NUMBERS."""

    def among(self, column: str, values: Iterable[Any]) -> Conditions:
        """The same, and the column has one of these values."""
        found = frozenset(values)
        if column == "group":
            groups = found if self.groups is None else self.groups & found
            return Conditions(groups, self.senders, self.bounds)
        if not found:
            return self.within(column, (1, 0))
        narrowed = self.within(column, (min(found), max(found)))
        if column != "sender":
            return narrowed
        senders = found if self.senders is None else self.senders & found
        return Conditions(self.groups, senders, narrowed.bounds)

    def within(self, column: str, bounds: Bounds) -> Conditions:
        """The same, and the column lies within these bounds."""
        least, most = self.bounds.get(column, ANY)
        both = max(least, bounds[0]), min(most, bounds[1])
        return Conditions(self.groups, self.senders, {**self.bounds, column: both})

    def allow(self, column: str, least: int, most: int) -> bool:
        """Tell whether any value of a column between these two can be meant."""
        wanted = self.bounds.get(column, ANY)
        return least <= wanted[1] and wanted[0] <= most


def prune(slices: Iterable[Slice], conditions: Conditions) -> list[Slice]:
    """The slices, and of them the senders and seqnos, that can hold what is asked for."""
    left = []
    for part in slices:
        segment = part.segment
        if not _can_match(segment, conditions):
            continue
        seqnos = (conditions.bounds.get("seqno", ANY),)
        senders = {
            sender: common
            for sender, spans in part.senders.items()
            if (conditions.senders is None or sender in conditions.senders)
            and conditions.allow("sender", sender, sender)
            and (common := intersect(spans, seqnos))
        }
        if senders:
            left.append(Slice(segment, senders))
    return left


def _can_match(segment: Segment, conditions: Conditions) -> bool:
    """Tell by its manifest whether a segment can hold what is asked for."""
    if conditions.groups is not None and segment.group not in conditions.groups:
        return False
    views = [digest.view for digest in segment.views]
    ranges = {"recorder": (segment.recorder, segment.recorder)}
    if views:
        ranges["view"] = (min(views), max(views))
    if segment.sent_at is not None:  # In the first format times are no bounds.
        ranges |= {"sent_at": segment.sent_at, "delivered_at": segment.delivered_at}
    return all(conditions.allow(column, *ranges[column]) for column in ranges)
