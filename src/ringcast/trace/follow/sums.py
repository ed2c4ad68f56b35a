"""Sums over the messages of one sender at one member in one view.

They are small however many messages there were, and sums of parts of a trace make the sum of the
whole, in any order. Runs that continue each other, in their numbers and in the member's own count,
become one; a group in which nothing is wrong is one run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ringcast.trace.judging.summary import Range
from ringcast.trace.schema import DELIVERED, SENT, SKIPPED, Row

RUNS_JOINED = 4_096
"""Rows of a group after which those that continue each other are joined: a file may have many."""
RUNS_MAX = 1_000
"""Runs of a group that do not continue each other; with more, those in the middle are left out."""
POINTS_MAX = 64
"""Times of single messages that are kept for a group."""

Run = tuple[int, int, int]
"""First number, last number, and the member's count before the first."""


class Points:
    """When some messages were delivered last: those whose number is a multiple of `step`.

    With more than POINTS_MAX of them the step is doubled. The numbers that two members keep are
    the same but for the step, so their times can be compared exactly.
    """

    def __init__(self, step: int = 1) -> None:
        self.step, self.times = step, dict[int, int]()

    def add(self, first: int, last: int, at: int) -> None:
        """Note the time of the messages first to last."""
        while (last - first) // self.step >= POINTS_MAX:
            self._double()
        for number in range(-(-first // self.step) * self.step, last + 1, self.step):
            self._note(number, at)
        self._thin()

    def merge(self, other: Points) -> None:
        """Take over the times of another part of the trace."""
        while self.step < other.step:
            self._double()
        for number, at in other.times.items():
            if number % self.step == 0:
                self._note(number, at)
        self._thin()

    def _note(self, number: int, at: int) -> None:
        self.times[number] = max(self.times.get(number, at), at)

    def _thin(self) -> None:
        while len(self.times) > POINTS_MAX:
            self._double()

    def _double(self) -> None:
        self.step *= 2
        self.times = {number: at for number, at in self.times.items() if number % self.step == 0}

    def plain(self) -> list[Any]:
        """As plain data."""
        return [self.step, [*self.times], [*self.times.values()]]

    @classmethod
    def of(cls, plain: list[Any]) -> Points:
        """From plain data."""
        points = cls(plain[0])
        points.times = dict(zip(plain[1], plain[2], strict=True))
        return points


class Purges:
    """When messages were forgotten: a purge up to `low` forgets all before it as well.

    With more than POINTS_MAX purges, those are kept that are the first to forget a multiple of
    `step`.
    """

    def __init__(self, step: int = 1, marks: Iterable[tuple[int, int]] = ()) -> None:
        self.step, self.marks = step, list(marks)
        """Last message and time of each purge; `tidy` sorts them."""

    def add(self, low: int, at: int) -> None:
        """Note a purge; `tidy` has to follow."""
        self.marks.append((low, at))
        if len(self.marks) >= RUNS_JOINED:
            self.tidy()

    def merge(self, other: Purges) -> None:
        """Add those of another part of the trace."""
        self.step = max(self.step, other.step)
        self.marks += other.marks
        self.tidy()

    def tidy(self) -> None:
        """Leave out what later purges forgot earlier, and what there is no room for."""
        kept: list[tuple[int, int]] = []
        for low, at in sorted(self.marks, key=lambda mark: (-mark[0], mark[1])):
            if not kept or at < kept[-1][1]:
                kept.append((low, at))
        self.marks = kept[::-1]
        while len(self.marks) > POINTS_MAX:
            self.step *= 2
            befores = [-1, *(low for low, _ in self.marks)]
            pairs = zip(befores, self.marks, strict=False)
            self.marks = [m for before, m in pairs if m[0] // self.step > before // self.step]

    def at(self, number: int) -> int | None:
        """When a message was forgotten; None if it was not, or if that is not known."""
        place = bisect_left(self.marks, (number, -1))
        known = number % self.step == 0 and place < len(self.marks)
        return self.marks[place][1] if known else None

    def plain(self) -> list[Any]:
        """As plain data."""
        return [self.step, self.marks]

    @classmethod
    def of(cls, plain: list[Any]) -> Purges:
        """From plain data."""
        return cls(plain[0], ((low, at) for low, at in plain[1]))


def _mix(number: int, behind: int) -> int:
    """A hash whose differences tell pairs apart. That of a tuple is nearly linear in each item, so
    that members with different places would often have the same sum."""
    digest = blake2b(b"%d %d" % (number, behind), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass
class GroupSums:
    """What was sent, or what was delivered of one sender."""

    runs: list[Run] = field(default_factory=list)
    digest: int | None = 0
    """The sum over all payloads; None where a row has none, or messages were skipped."""
    nbytes: int = 0
    skipped: Range | None = None
    early: Range | None = None
    """Deliveries that were stamped before their sending."""
    places: int | None = None
    """The sum that tells where the messages stand among those of all senders; the chain of
    `ringcast.spark.audit.groups`."""
    points: Points = field(default_factory=Points)
    """When messages were delivered."""
    joined_at: int = RUNS_JOINED
    """How many runs there are when they are joined next."""

    def add(self, row: Row, skew_us: int) -> None:
        """Add a row of a message; `tidy` has to follow."""
        first, count = row.seqno or 0, row.count
        last = first + count - 1
        # What was sent has no count: runs that continue each other in number are one.
        pos = first if row.kind == SENT else row.pos or 0
        self.runs.append((first, last, pos))
        if len(self.runs) >= self.joined_at:
            self._join()
            self.joined_at = max(RUNS_JOINED, 2 * len(self.runs))
        self.nbytes += row.nbytes or 0
        if row.digest is None or self.digest is None or row.kind == SKIPPED:
            self.digest = None
        else:
            self.digest += row.digest
        if row.kind == SKIPPED:
            self.skipped = span(self.skipped, Range(first, last))
        elif row.kind == DELIVERED:
            self.points.add(first, last, row.at)
            if row.sent_at is not None and row.at + skew_us < row.sent_at:
                self.early = span(self.early, Range(first, last))
            if row.place is not None:
                behind = first - row.place
                chain = _mix(last + 1, behind) - _mix(first, behind)
                self.places = (self.places or 0) + chain

    def merge(self, other: GroupSums) -> None:
        """Add the sums of another part of the trace."""
        self.runs += other.runs
        self.nbytes += other.nbytes
        unknown = self.digest is None or other.digest is None
        self.digest = None if unknown else (self.digest or 0) + (other.digest or 0)
        self.skipped = span(self.skipped, other.skipped)
        self.early = span(self.early, other.early)
        if other.places is not None:
            self.places = (self.places or 0) + other.places
        self.points.merge(other.points)
        self.tidy()

    def tidy(self) -> None:
        """Make one run of those that continue each other, and leave out what there is no room
        for."""
        self._join()
        if len(self.runs) > RUNS_MAX:
            self.runs = self.runs[: RUNS_MAX // 2] + self.runs[-RUNS_MAX // 2 :]

    def _join(self) -> None:
        merged: list[Run] = []
        for first, last, pos in sorted(self.runs, key=lambda run: (run[2], run[0], run[1])):
            if merged:
                begin, end, before = merged[-1]
                if end + 1 == first and before + end - begin + 1 == pos:
                    merged[-1] = begin, last, before
                    continue
            merged.append((first, last, pos))
        self.runs = merged

    @property
    def reach(self) -> Range:
        """The first and the last message."""
        return Range(min(run[0] for run in self.runs), max(run[1] for run in self.runs))

    def plain(self) -> list[Any]:
        """As plain data."""
        return [
            *(self.runs, self.digest, self.nbytes, self.skipped, self.early, self.places),
            self.points.plain(),
        ]

    @classmethod
    def of(cls, plain: list[Any]) -> GroupSums:
        """From plain data."""
        runs, digest, nbytes, skipped, early, places, points = plain
        return cls(
            *([(first, last, pos) for first, last, pos in runs], digest, nbytes),
            *(Range(*skipped) if skipped else None, Range(*early) if early else None, places),
            Points.of(points),
        )


def span(one: Iterable[int] | None, other: Iterable[int] | None) -> Range | None:
    """The range from the first to the last message of two."""
    if one is None or other is None:
        found = one if one is not None else other
        return None if found is None else Range(*found)
    (first, last), (begin, end) = one, other
    return Range(min(first, begin), max(last, end))
