"""How much of each sender's backlog goes into the next batch: equal shares, and nobody is left out.

A limit that is filled in any fixed order starves the sender that comes last in it. Here every
sender with something to read gets the same number of rows; what one does not need is shared by the
others.
When there are more senders than rows, turns go round: the number of messages read so far says
whose turn it is, so that the order needs no memory but the offset itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ringcast.journal.format.manifest import Segment
from ringcast.journal.format.spans import Spans, normal
from ringcast.journal.read.plan import Key, Slice

FindSeqnos = Callable[[str, int, Spans], list[int]]
"""The seqnos that a segment has rows for, by its name, a sender and spans."""


def admit(slices: Iterable[Slice], rows: int, turn: int, find: FindSeqnos) -> dict[Key, Spans]:
    """What to read next of these slices: up to `rows` rows, at least one seqno.

    `find` is asked only when a range has to be cut that is sparse, as with fragmented messages.
    """
    backlogs = _backlogs(slices)
    demands = {key: sum(part.rows for part in parts) for key, parts in backlogs.items()}
    shares = fair_shares(demands, rows, turn)
    return {
        (group, sender): _head(sender, backlogs[group, sender], share, find)
        for (group, sender), share in shares.items()
        if share
    }


def backlog_rows(slices: Iterable[Slice]) -> int:
    """The most rows that these slices can have."""
    return sum(part.rows for parts in _backlogs(slices).values() for part in parts)


def fair_shares(demands: Mapping[Key, int], rows: int, turn: int) -> dict[Key, int]:
    """Share rows equally, give none more than its demand; `turn` says who is first to get one."""
    order = sorted(demands)
    first = turn % len(order) if order else 0
    hungry = [key for key in order[first:] + order[:first] if demands[key]]
    shares = dict.fromkeys(hungry, 0)
    while hungry and rows:
        share = max(1, rows // len(hungry))
        for key in hungry[:rows]:
            given = min(share, demands[key] - shares[key])
            shares[key] += given
            rows -= given
        hungry = [key for key in hungry if shares[key] < demands[key]]
    return shares


class _Part(NamedTuple):
    """A range of one sender in one segment, with the most rows that it can have."""

    first: int
    last: int
    rows: int
    segment: str

    @property
    def dense(self) -> bool:
        """Whether every seqno is a row, so that it can be cut anywhere."""
        return self.rows == self.last - self.first + 1


def _backlogs(slices: Iterable[Slice]) -> dict[Key, list[_Part]]:
    """The ranges of each sender, in the order of seqnos."""
    backlogs: dict[Key, list[_Part]] = {}
    for part in slices:
        for sender, spans in part.senders.items():
            found = backlogs.setdefault((part.segment.group, sender), [])
            found.extend(_parts(part.segment, sender, spans))
    for parts in backlogs.values():
        parts.sort()
    return backlogs


def _parts(segment: Segment, sender: int, spans: Spans) -> Iterable[_Part]:
    pieces = [piece for digest in segment.views for piece in digest.senders.get(sender, ())]
    for start, end in spans:
        for piece in pieces:
            first, last = max(start, piece.first), min(end, piece.last)
            if first <= last:
                yield _Part(first, last, min(piece.rows, last - first + 1), segment.name)


def _head(sender: int, parts: list[_Part], rows: int, find: FindSeqnos) -> Spans:
    """The first seqnos of a sender's backlog that have up to this many rows."""
    taken: list[tuple[int, int]] = []
    for part in parts:
        if part.rows <= rows:
            last, used = part.last, part.rows
        else:
            last, used = _cut(sender, part, rows, find)
        taken.append((part.first, last))
        rows -= used
        if rows <= 0:
            break
    return normal(taken)


def _cut(sender: int, part: _Part, rows: int, find: FindSeqnos) -> tuple[int, int]:
    """Where a range has to end to have this many rows, and how many it has then."""
    if part.dense:
        return part.first + rows - 1, rows
    seqnos = find(part.segment, sender, ((part.first, part.last),))
    if len(seqnos) <= rows:
        return part.last, len(seqnos)
    return seqnos[rows] - 1, rows
