"""Sorts the rows of a history by what they are about, and sums them up for the judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ringcast.trace import schema
from ringcast.trace.schema import Row, signed
from ringcast.trace.summary import Group, Range, Source, Stand, Summary, ViewKey
from ringcast.trace.violations import Violation
from ringcast.trace.walk import walk_deliveries, walk_sendings


class History:
    """The rows of all members, found again by what they are about."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.deliveries = defaultdict[Group, list[Row]](list)
        """Rows of messages that were delivered or skipped."""
        self.sendings = defaultdict[Source, list[Row]](list)
        self.purges = defaultdict[Source, list[Row]](list)
        self.samples: list[Row] = []
        """Rows with window marks."""
        self._acks: dict[tuple[ViewKey, int, int], int] = {}
        installs, closed = self._sort(rows)
        self.summary = Summary(
            make_stands(installs, closed), reinstalled=find_reinstalled(installs)
        )
        self.violations: list[Violation] = []
        """What is wrong with single groups."""
        self._leave_out_misplaced()
        self._walk_sendings()
        self._walk_deliveries()
        self.summary.acked.update(self._acks)
        for source, purges in self.purges.items():
            self.summary.purged[source] = max(row.low or 0 for row in purges)

    def _sort(self, rows: Iterable[Row]) -> tuple[list[Row], set[tuple[int, ViewKey]]]:
        installs, closed = [], set[tuple[int, ViewKey]]()
        for row in rows:
            view = row.view, row.view_by
            match row.kind:
                case schema.DELIVERED | schema.SKIPPED:
                    self.deliveries[row.member, view, row.sender or 0].append(row)
                case schema.SENT:
                    self.sendings[view, row.member].append(row)
                case schema.VIEW:
                    installs.append(row)
                case schema.CLOSED:
                    closed.add((row.member, view))
                case schema.ACKED if row.peer is not None:
                    heard = view, row.member, row.peer
                    self._acks[heard] = max(self._acks.get(heard, 0), row.seqno or 0)
                case schema.WINDOW:
                    self.samples.append(row)
                case schema.PURGED if row.low is not None:
                    self.samples.append(row)
                    self.purges[view, row.member].append(row)
        return installs, closed

    def _leave_out_misplaced(self) -> None:
        """Keep misplaced rows out of all other checks: they would be told again and again."""
        for (member, view, sender), rows in list(self.deliveries.items()):
            if cause := self.summary.misplaced(member, view, sender, sending=False):
                del self.deliveries[member, view, sender]
                self._tell(cause, (member, view, sender), reach_of(rows))
        for (view, sender), rows in list(self.sendings.items()):
            if cause := self.summary.misplaced(sender, view, sender, sending=True):
                del self.sendings[view, sender]
                self._tell(cause, (sender, view, sender), reach_of(rows))

    def _walk_sendings(self) -> None:
        for (view, sender), rows in self.sendings.items():
            self.summary.sent[view, sender] = reach_of(rows)
            findings = walk_sendings(rows)
            for cause, first, last in findings:
                self._tell(cause, (sender, view, sender), Range(first, last))
            if not findings and (digest := _digest(rows)) is not None:
                self.summary.sent_digests[view, sender] = digest

    def _walk_deliveries(self) -> None:
        ranges = defaultdict[int, list[tuple[ViewKey, Range]]](list)
        for (view, sender), reach in self.summary.sent.items():
            ranges[sender].append((view, reach))
        for group, rows in self.deliveries.items():
            _, view, sender = group
            others = [reach for v, reach in ranges[sender] if v != view]
            own, complete = self.summary.sent.get(group[1:]), self.summary.is_complete(view, sender)
            findings, extent = walk_deliveries(rows, own, others, complete)
            for cause, first, last in findings:
                self._tell(cause, group, Range(first, last))
            if extent is not None:
                self.summary.delivered[group] = extent
            if not findings and (digest := _digest(rows)) is not None:
                self.summary.digests[group] = digest

    def _tell(self, cause: str, group: Group, reach: Range) -> None:
        member, view, sender = group
        self.violations.append(Violation(cause, member, *view, sender, None, *reach))


def make_stands(
    installs: Iterable[Row], closed: set[tuple[int, ViewKey]]
) -> dict[tuple[int, ViewKey], Stand]:
    """Each member's part in each view that it installed."""
    by_member = defaultdict[int, dict[ViewKey, Row]](dict)
    for row in sorted(installs, key=lambda row: row.at):
        by_member[row.member].setdefault((row.view, row.view_by), row)
    stands = {}
    for member, views in by_member.items():
        order = sorted(views, key=lambda v: (v[0], views[v].at, signed(v[1])))
        for view, following in zip(order, [*order[1:], None], strict=True):
            members = views[view].members or ()
            stands[member, view] = Stand(members, following, (member, view) in closed)
    return stands


def find_reinstalled(installs: Iterable[Row]) -> list[tuple[int, ViewKey]]:
    """Who installed which view more than once: of these, the first row counts for all else."""
    times = Counter((row.member, (row.view, row.view_by)) for row in installs)
    return [install for install, count in times.items() if count > 1]


def reach_of(rows: list[Row]) -> Range:
    """The first and the last message of these rows."""
    firsts = [row.seqno or 0 for row in rows]
    lasts = [first + row.count - 1 for first, row in zip(firsts, rows, strict=True)]
    return Range(min(firsts), max(lasts))


def _digest(rows: list[Row]) -> int | None:
    """The sum over a group; None where a row has none, or messages were skipped."""
    total = 0
    for row in rows:
        if row.digest is None or row.kind == schema.SKIPPED:
            return None
        total += row.digest
    return total
