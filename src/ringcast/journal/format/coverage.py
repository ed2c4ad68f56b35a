"""What of each sender's messages a segment covers: the digest ranges of its manifest.

A recorder is given every message of a sender in its view, in order. So between two messages of one
view it has missed nothing: seqnos that it never saw there belong to fragments of larger messages.
Its coverage of a sender in a view is therefore one piece, over segments too, however sparse its
rows are, unless the group told it that messages were skipped. A new view begins anew: across a
partition a recorder may have missed what others have seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ringcast.journal.format.spans import Spans, gaps, normal, subtract


class CoveredRange(NamedTuple):
    """A range of one sender's seqnos that is covered, and how many messages there are in it."""

    first: int
    last: int
    rows: int


class ViewDigest(NamedTuple):
    """The pieces by sender that were delivered in one view."""

    view: int
    view_by: int
    senders: Mapping[int, tuple[CoveredRange, ...]]


def joined_views(views: Iterable[ViewDigest]) -> tuple[ViewDigest, ...]:
    """The digests of segments that followed each other, with pieces that continue others joined."""
    found: list[ViewDigest] = []
    for digest in views:
        if not found or found[-1][:2] != digest[:2]:
            found.append(ViewDigest(digest.view, digest.view_by, dict(digest.senders)))
            continue
        senders = dict(found[-1].senders)
        for sender, pieces in digest.senders.items():
            senders[sender] = _continued(senders.get(sender, ()), pieces)
        found[-1] = ViewDigest(digest.view, digest.view_by, senders)
    return tuple(found)


def _continued(
    former: tuple[CoveredRange, ...], pieces: tuple[CoveredRange, ...]
) -> tuple[CoveredRange, ...]:
    if former and pieces and former[-1].last + 1 == pieces[0].first:
        joint = CoveredRange(former[-1].first, pieces[0].last, former[-1].rows + pieces[0].rows)
        return (*former[:-1], joint, *pieces[1:])
    return (*former, *pieces)


class Reached(NamedTuple):
    """The last seqno of each sender in the view in which a segment was opened."""

    view: int
    view_by: int
    senders: Mapping[int, int]


NOTHING = Reached(0, 0, {})


class Coverage:
    """Collects the runs of one segment; begins where the recorder's former segment ended."""

    def __init__(self, reached: Reached = NOTHING) -> None:
        self._view = (reached.view, reached.view_by)
        self._reached = dict(reached.senders)
        self._whole = set(self._reached)
        self._views: list[tuple[tuple[int, int], dict[int, list[CoveredRange]]]] = []
        self._skipped: dict[int, list[tuple[int, int]]] = {}

    def reached(self, view: int, view_by: int, sender: int) -> int:
        """The last seqno of the sender that was seen in this view; 0 for none."""
        return self._reached.get(sender, 0) if self._view == (view, view_by) else 0

    def add(self, view: int, view_by: int, sender: int, first: int, rows: int) -> None:
        """A run was delivered."""
        pieces = self._enter(view, view_by).setdefault(sender, [])
        last = first + rows - 1
        known = self._reached.get(sender, 0)
        assert first > known, "a run follows what was delivered before"
        if sender not in self._whole:
            pieces.append(CoveredRange(first if known == 0 else known + 1, last, rows))
        elif pieces:
            pieces[-1] = CoveredRange(pieces[-1].first, last, pieces[-1].rows + rows)
        else:
            pieces.append(CoveredRange(known + 1, last, rows))
        self._whole.add(sender)
        self._reached[sender] = last

    def skip(self, view: int, view_by: int, sender: int, first: int, last: int) -> None:
        """Messages will not come at this recorder; what follows is a piece of its own."""
        self._enter(view, view_by)
        self._skipped.setdefault(sender, []).append((first, last))
        self._reached[sender] = max(last, self._reached.get(sender, 0))
        self._whole.discard(sender)

    def carry(self) -> Reached:
        """Where the recorder's next segment begins."""
        whole = {sender: last for sender, last in self._reached.items() if sender in self._whole}
        return Reached(*self._view, whole)

    def views(self) -> tuple[ViewDigest, ...]:
        """The digest ranges of the segment, by view in the order of delivery."""
        return tuple(
            ViewDigest(*view, {sender: tuple(pieces) for sender, pieces in senders.items()})
            for view, senders in self._views
            if senders
        )

    def holes(self) -> dict[int, Spans]:
        """What the recorder did not get of each sender, between the first and last that it has."""
        pieces: dict[int, list[tuple[int, int]]] = {}
        for _, senders in self._views:
            for sender, some in senders.items():
                pieces.setdefault(sender, []).extend((first, last) for first, last, _ in some)
        found = {sender: gaps(normal(spans)) for sender, spans in pieces.items()}
        for sender, spans in self._skipped.items():
            covered = normal(pieces.get(sender, ()))
            found[sender] = normal((*found.get(sender, ()), *subtract(normal(spans), covered)))
        return {sender: spans for sender, spans in found.items() if spans}

    def _enter(self, view: int, view_by: int) -> dict[int, list[CoveredRange]]:
        """The pieces of this view; another view than before forgets how far senders had come."""
        if self._view != (view, view_by):
            self._view = (view, view_by)
            self._reached.clear()
            self._whole.clear()
        if not self._views or self._views[-1][0] != self._view:
            self._views.append((self._view, {}))
        return self._views[-1][1]
