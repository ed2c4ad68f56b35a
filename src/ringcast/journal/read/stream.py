"""The journal as a stream: offsets that are digests, what comes next, and which slices hold it.

An offset says what has been read, by group and sender. As JSON a sender whose messages were all
read is a number, `{"prices": {"-7": 90}}`: 1 to 90. A sender with a hole, or that was recorded from
later on, has its ranges, `{"prices": {"-7": "1-50,81-90"}}`: two recorders cover for each other,
and the one that has 51 to 80 may be the slower to seal. A bare highest seqno would lose them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.manifest import Segment
from ringcast.journal.format.spans import Spans, from_text, subtract, to_text
from ringcast.journal.read.admission import FindSeqnos, admit, backlog_rows
from ringcast.journal.read.plan import (
    Cover,
    Key,
    Slice,
    assign,
    cover_of,
    joined,
    less,
    size,
    within,
)
from ringcast.journal.read.reader import Journal, check_lost
from ringcast.journal.read.start import LATEST, FindDelivered, StartingPoint, delivered_before

Offset = dict[str, dict[str, int | str]]
"""An offset as Spark keeps it: JSON, equal when its text is, so always in the same order."""


class Lag(NamedTuple):
    """How far a query is behind the sealed journal."""

    rows: int
    seconds: float
    """From the first message that it has not read to the newest, by the recorders' clocks."""


class JournalStream:
    """Where one streaming query stands. Offsets must rise, as those of a query do."""

    def __init__(self, journal: Journal, find: FindSeqnos, *, fail_on_loss: bool = True) -> None:
        self._journal = journal
        self._find = find
        self._fail_on_loss = fail_on_loss
        self._target: Cover | None = None
        self._read: set[str] = set()
        """Segments of which everything is below `_floor`."""
        self._floor: Cover = {}
        self._last: tuple[int, Offset, tuple[int | None, int | None], Offset] | None = None

    def initial(
        self, start: StartingPoint | None = None, find: FindDelivered | None = None
    ) -> Offset:
        """Where a new query begins; what is gone already is not lost. Raises ConfigError.

        `find` is asked for segments that were being written at the time of `start`.
        """
        self._journal.refresh()
        journal = self._journal
        gone = less(journal.removed, journal.cover)
        start = start or StartingPoint()
        if start.text == LATEST:
            return encode(joined(journal.cover, gone))
        if start.digest is not None:
            return encode(joined(decode(json.loads(start.digest)), gone))
        if start.at is not None and find is not None:
            slices, _ = assign(journal.segments, journal.cover)
            return encode(joined(delivered_before(slices, start.at, find), gone))
        return encode(gone)

    def lag(self, offset: Offset) -> Lag:
        """How far a query that has read up to `offset` is behind what is sealed."""
        self._journal.refresh()
        rest = less(self._journal.cover, decode(offset))
        slices, _ = assign(self._journal.segments, rest)
        if not slices:
            return Lag(0, 0.0)
        newest = max(segment.delivered_at[1] for segment in self._journal.segments)
        oldest = min(part.segment.delivered_at[0] for part in slices)
        return Lag(backlog_rows(slices), max(0, newest - oldest) / 1_000_000)

    def freeze(self) -> None:
        """From now on behave as if nothing more arrived (Trigger.AvailableNow)."""
        self._journal.refresh()
        self._target = joined(self._journal.cover, self._journal.removed)

    def newest(self) -> Offset:
        """All there is to read, for reports."""
        self._journal.refresh()
        return encode(self._journal.cover)

    def latest(self, start: Offset, rows: int | None, nbytes: int | None = None) -> Offset:
        """Where the next batch ends, that begins at `start` and has up to `rows` rows.

        `nbytes` bounds it as well, by the sizes of segments: rows count with the average of what
        is unread. It is `start` itself when there is nothing to read. Raises DataLost.
        """
        self._journal.refresh()
        asked = (self._journal.version, start, (rows, nbytes))
        if self._last is None or self._last[:3] != asked:
            self._last = (*asked, self._find_latest(decode(start), rows, nbytes))
        return self._last[3]

    def plan(self, start: Offset, end: Offset) -> list[Slice]:
        """The slices between two offsets; the same rows whenever it is asked. Raises DataLost."""
        self._journal.refresh()
        upto, begin = decode(end), decode(start)
        slices, lost = assign(self._unread(begin), less(upto, begin))
        if self._fail_on_loss:
            lost = {key: spans for key, spans in lost.items() if len(upto[key]) < SPANS_MAX}
            check_lost(lost, self._journal.root)
        return slices

    def _find_latest(self, start: Cover, rows: int | None, nbytes: int | None) -> Offset:
        lost = self._aimed(less(self._journal.removed, joined(self._journal.cover, start)))
        if self._fail_on_loss:
            check_lost(lost, self._journal.root)
        unread = self._unread(start)
        wanted = self._aimed(less(cover_of(unread), start))
        if nbytes is not None and unread:
            held, total = sum(s.rows for s in unread), sum(s.bytes for s in unread)
            fitting = max(1, nbytes * held // max(total, 1))
            rows = fitting if rows is None else min(rows, fitting)
        if rows is not None and size(wanted) > rows:
            slices, _ = assign(unread, wanted, enough=rows)
            wanted = admit(slices, rows, size(start), self._find)
        end = joined(joined(start, lost), wanted)
        return encode(_bounded(end, self._journal))

    def _unread(self, start: Cover) -> list[Segment]:
        """The segments with anything to read; one that was read is not looked at again."""
        if less(self._floor, start):  # It goes back, as a query does that is started again.
            self._read.clear()
        self._floor = start
        found: list[Segment] = []
        for segment in self._journal.segments:
            if segment.name in self._read:
                continue
            if any(
                subtract(spans, start.get((segment.group, sender), ()))
                for sender, spans in segment.cover.items()
            ):
                found.append(segment)
            else:
                self._read.add(segment.name)
        return found

    def _aimed(self, cover: dict[Key, Spans]) -> dict[Key, Spans]:
        return cover if self._target is None else within(cover, self._target)


def encode(cover: Cover) -> Offset:
    """What was read, as JSON."""
    offset: Offset = {}
    for group, sender in sorted(cover):
        spans = cover[group, sender]
        from_start = len(spans) == 1 and spans[0][0] == 1
        text: int | str = spans[0][1] if from_start else to_text(spans)
        if spans:
            offset.setdefault(group, {})[str(sender)] = text
    return offset


def decode(offset: Mapping[str, Mapping[str, int | str]]) -> dict[Key, Spans]:
    """What an offset says was read; raises JournalError when it is none of ours."""
    try:
        return {
            (group, int(sender)): ((1, upto),) if isinstance(upto, int) else from_text(upto)
            for group, senders in offset.items()
            for sender, upto in senders.items()
        }
    except (ValueError, AttributeError) as error:
        raise JournalError(
            "the checkpoint holds no offset of a journal: give the query a checkpoint of its own"
        ) from error


def _bounded(cover: dict[Key, Spans], journal: Journal) -> dict[Key, Spans]:
    """An offset that stays small, whatever came and went.

    Of a sender with very many holes the lowest are given up: nobody fills them so late. Of very
    many senders those are forgotten that the journal no longer knows: they cannot be read again.
    """
    if len(cover) > SENDERS_MAX:
        known = journal.cover.keys() | journal.removed.keys()
        cover = {key: spans for key, spans in cover.items() if key in known}
    return {key: _closed(spans) for key, spans in cover.items()}


def _closed(spans: Spans) -> Spans:
    surplus = len(spans) - SPANS_MAX
    return spans if surplus <= 0 else ((spans[0][0], spans[surplus][1]), *spans[surplus + 1 :])


SENDERS_MAX = 10_000
SPANS_MAX = 1_000
