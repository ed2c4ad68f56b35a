"""Follows one member from view to view: where it went, and which numbers it had by then.

Its files may be read in another order than it wrote them, as a copying program brings them. The
numbers in their names show that some are missing; the views that these may be about are told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ringcast.core.model.ranges import RangeSet
from ringcast.trace.follow.part import MemberPart
from ringcast.trace.follow.sums import span
from ringcast.trace.judging.summary import Range, ViewKey
from ringcast.trace.schema import signed

Message = tuple[ViewKey, dict[str, Any]]
"""What is told about a member's part in a view, as plain data: `part`, `passed`, `before`, or
`whole`: whether all files that the member wrote before have been read."""

VIEWS_MAX = 16
"""Views of a member that are known, the last ones: an earlier one may still be read of."""
FILE_RANGES_MAX = 64
"""Ranges of numbers of files; with more, the lowest hole is taken for a file that is gone."""


@dataclass
class Reaches:
    """From where to where a member sent, and delivered by sender."""

    sent: Range | None = None
    delivered: dict[int, Range] = field(default_factory=dict)

    def extend(self, other: Reaches) -> None:
        """Add what was sent and delivered elsewhere."""
        self.sent = span(self.sent, other.sent)
        for sender, reach in other.delivered.items():
            self.delivered[sender] = span(self.delivered.get(sender), reach) or reach

    def plain(self) -> list[Any]:
        """As plain data."""
        return [self.sent, [*self.delivered.items()]]

    @classmethod
    def of(cls, plain: list[Any]) -> Reaches:
        """From plain data."""
        sent, delivered = plain
        reaches = {sender: Range(*reach) for sender, reach in delivered}
        return cls(Range(*sent) if sent else None, reaches)


class InstalledView(NamedTuple):
    """A view that the member installed."""

    number: int
    by: int
    at: int
    members: list[int]

    @property
    def key(self) -> ViewKey:
        """The view."""
        return self.number, self.by

    @property
    def place(self) -> tuple[int, int, int]:
        """The place among all views of a member."""
        return self.number, self.at, signed(self.by)


class MemberTrack:
    """One member. Its state is as large as its views have senders."""

    def __init__(self, member: int) -> None:
        self.member = member
        self._views: list[InstalledView] = []
        """The views that it installed last, in order."""
        self._here = Reaches()
        self._before = Reaches()
        """What it sent and delivered before the last view, of the senders that are still there."""
        self._files = RangeSet()
        """The numbers of its files that have been read."""
        self._doubtful: list[ViewKey] = []
        """Views that were told that files are missing."""
        self._closed = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come of this member."""
        return self._closed and self._is_whole

    @property
    def _is_whole(self) -> bool:
        """Whether no file is missing that it wrote before those that have been read."""
        return not self._files or (self._files.count_ranges == 1 and 0 in self._files)

    def update(self, parts: Iterable[MemberPart]) -> Iterator[Message]:
        """Take what is new of this member, one part per view; say what each view has to know."""
        parts = sorted(parts, key=_order)
        for part in parts:
            self._note_files(part)
            self._closed |= part.closed
        told = dict[ViewKey, None]()
        for part in parts:
            for view, message in self._take(part):
                told[view] = None
                yield view, message
        yield from self._vouch([*told])

    def _note_files(self, part: MemberPart) -> None:
        for first, last in part.files:
            if self._views and not self._files and first > 0:
                self._files.add(0, first - 1)  # The state is of a version that noted no files.
            self._files.add(first, last)
        part.files = []

    def _take(self, part: MemberPart) -> Iterator[Message]:
        yield part.view, {"part": part.plain()}
        if part.installs and part.view not in [view.key for view in self._views]:
            yield from self._install(part)
        reaches = Reaches(
            part.sent.reach if part.sent else None,
            {sender: sums.reach for sender, sums in part.delivered.items()},
        )
        if not self._views:
            return
        if part.view == self._views[-1].key:
            self._here.extend(reaches)
        elif part.view[0] <= self._views[-1].number and (reaches.sent or reaches.delivered):
            self._before.extend(reaches)
            yield self._views[-1].key, {"before": self._before.plain()}

    def _install(self, part: MemberPart) -> Iterator[Message]:
        at, members, _ = part.installs[0]
        installed = InstalledView(*part.view, at, members)
        place = bisect_left(self._views, installed.place, key=lambda view: view.place)
        self._views.insert(place, installed)
        if place > 0:
            yield self._views[place - 1].key, {"passed": [*installed]}
        if place + 1 < len(self._views):
            yield part.view, {"passed": [*self._views[place + 1]]}
        else:
            yield from self._enter(installed)
        del self._views[:-VIEWS_MAX]

    def _enter(self, view: InstalledView) -> Iterator[Message]:
        self._before.extend(self._here)
        self._here = Reaches()
        kept = {s: r for s, r in self._before.delivered.items() if s in view.members}
        self._before.delivered = kept
        if self._before.sent or kept:
            yield view.key, {"before": self._before.plain()}

    def _vouch(self, told: list[ViewKey]) -> Iterator[Message]:
        """Tell views whether files are missing that this member wrote before; nothing where that
        is as it was."""
        if self._files.count_ranges > FILE_RANGES_MAX:
            (start, _), (_, end), *_ = self._files.ranges()
            self._files.add(start, end)
        is_whole = self._is_whole
        views = self._doubtful if is_whole else [v for v in told if v not in self._doubtful]
        for view in views:
            yield view, {"whole": is_whole}
        self._doubtful = [] if is_whole else [*self._doubtful, *views][-VIEWS_MAX:]

    def plain(self) -> list[Any]:
        """As plain data, for JSON."""
        return [
            *(self._views, self._here.plain(), self._before.plain()),
            *([*self._files.ranges()], self._doubtful, self._closed),
        ]

    @classmethod
    def of(cls, member: int, plain: list[Any]) -> MemberTrack:
        """From plain data."""
        track = cls(member)
        views, here, before, *later = plain
        if later:
            track._views = [InstalledView(*view) for view in views]
            files, doubtful, track._closed = later
            track._files = RangeSet((first, last) for first, last in files)
            track._doubtful = [(number, by) for number, by in doubtful]
        elif views is not None:  # The state of an earlier version, which has the last view only.
            number, by = views
            track._views = [InstalledView(number, by, 0, [])]
        track._here, track._before = Reaches.of(here), Reaches.of(before)
        return track


def _order(part: MemberPart) -> tuple[int, int, int]:
    """The order in which a member goes through views."""
    at = part.installs[0].at if part.installs else 0
    return part.view[0], at, signed(part.view[1])
