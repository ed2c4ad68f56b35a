"""Finds what is wrong in a trace, in as few passes as there can be.

1. The views, and the groups: one row for each member, view and sender. That is the one pass over
   all messages. What it gives is small, and is judged here, by `ringcast.trace.judging.judge`.
2. A second look at the rows of suspect groups, if there are any.
3. The marks of windows, and one more scan for early purges, if there were purges at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from ringcast.spark.audit import control, tables, walks
from ringcast.spark.audit.finding.sender_table import SenderTable
from ringcast.spark.audit.groups import groups
from ringcast.spark.audit.purges import early_deliveries
from ringcast.spark.audit.row_rules import row_problem
from ringcast.spark.audit.tables import GroupLine, SuspectGroup
from ringcast.trace.judging.history import find_reinstalled, make_progress, misplaced, unreadable
from ringcast.trace.judging.judge import judge_messages, judge_views
from ringcast.trace.judging.summary import Group, Range, ReceiverProgress, Source, Summary, ViewKey
from ringcast.trace.row_rules import row_problem as plain_row_problem
from ringcast.trace.rules import Rules, window_bound
from ringcast.trace.schema import CLOSED, KINDS, VIEW, Row
from ringcast.trace.violations import Violation

LATENCIES_MAX = 100_000
"""Pairs of receiver and sender whose shortest latency is kept: the shortest, since those that are
negative tell of clocks."""


@dataclass
class _Doubts:
    """Groups that have to be walked, and what was told already."""

    sendings: list[Group] = field(default_factory=list)
    deliveries: list[SuspectGroup] = field(default_factory=list)
    told: set[Violation] = field(default_factory=set)


@dataclass
class _Walked:
    """What the walks found."""

    groups: set[Group]
    """The groups of deliveries that were walked."""
    findings: list[Violation] = field(default_factory=list)
    extents: dict[Group, Range] = field(default_factory=dict)
    wrong: set[tuple[int, ViewKey, int | None]] = field(default_factory=set)
    """Groups of deliveries with a finding."""


class Finder:
    """One audit of a trace."""

    def __init__(self, trace: DataFrame, rules: Rules) -> None:
        self.trace, self.rules = trace, rules
        self.spark = trace.sparkSession
        self.causes = Counter[str]()
        """How often each cause was found, also where the list of a group was cut short."""
        self.members = set[int]()
        """Who wrote something to the trace."""
        self.latencies: dict[tuple[int, int], int] = {}
        """The shortest latency by receiver and sender, in microseconds."""
        self._unreadable = set[Violation]()
        self._skew = rules.skew_us
        self.installs: list[Row] = []
        """The views, as members installed them."""
        self.closings: list[Row] = []
        """Where members closed."""
        self._purges = Counter[str]()
        """How many purges there were, and of how many messages."""

    def find(self) -> list[Violation]:
        """List what is wrong: the same that `ringcast.trace.check` finds.

        Nearly all that is owed is owed by sender. So the lines of one sender after the other are
        looked at, and the driver keeps the tables, and what Python makes of one sender.
        """
        views = Summary(self._progress(), reinstalled=find_reinstalled(self.installs))
        lines = SenderTable(groups(self.trace, self._skew))
        marks = SenderTable(control.marks(self.trace))
        self._unreadable.update(_unreadable(lines.unsound), _unreadable(marks.unsound))
        if self._unreadable:
            self.trace = self.trace.where(row_problem(*KINDS).isNull())
        self._look_over(lines)
        found = list(self._unreadable)
        doubts = _Doubts()
        for sender in lines.senders:
            found += self._look_at(views, lines.of(sender), doubts)
        self.causes.update(violation.cause for violation in found)
        walked = self._walk(doubts)
        found += walked.findings
        later, extents = list(judge_views(views)), dict[Source, Range]()
        for sender in sorted({*lines.senders, *marks.senders}):
            summary = views.of_sender()
            self._fill(summary, lines.of(sender), walked)
            later += [*self._windows(summary, marks.of(sender)), *judge_messages(summary)]
            extents.update(summary.extents)
        later += self._early_purges(views, extents)
        later = [violation for violation in later if not self.rules.excuses(violation.cause)]
        self.causes.update(violation.cause for violation in later)
        return sorted(found + later, key=lambda v: v.order)

    def _look_over(self, lines: SenderTable) -> None:
        """Note who wrote anything, and how fast messages were at best."""
        self.members.update(lines.column("member"))
        for member, sender, latency in lines.least("latency_min", LATENCIES_MAX):
            self.latencies[member, sender] = latency

    def _look_at(
        self, views: Summary, rows: list[dict[str, Any]], doubts: _Doubts
    ) -> list[Violation]:
        """What is wrong with the groups of one sender; notes which have to be walked."""
        lines = [tables.group_line(row) for row in rows]
        causes = [_misplaced(views, line) for line in lines]
        told = {
            misplaced(cause, line.group, line.reach)
            for line, cause in zip(lines, causes, strict=True)
            if cause
        }
        placed = [line for line, cause in zip(lines, causes, strict=True) if cause is None]
        summary = views.of_sender()
        summary.sent.update((line.group[1:], line.reach) for line in placed if line.sending)
        doubts.sendings += [line.group for line in placed if line.sending and not line.tile]
        doubts.deliveries += _suspects(summary, placed)
        new = told - doubts.told
        doubts.told |= new
        return [*new, *self._skips(placed), *_before_sent(placed)]

    def _progress(self) -> dict[tuple[int, ViewKey], ReceiverProgress]:
        closed = set[tuple[int, ViewKey]]()
        for row in tables.rows(control.installs(self.trace)):
            install = Row(**row)
            if problem := plain_row_problem(install):
                self._unreadable.add(unreadable(problem, install))
                continue
            member, view = install.member, (install.view, install.view_by)
            self.members.add(member)
            if row["kind"] == CLOSED:
                closed.add((member, view))
                self.closings.append(Row(member, *view, None, CLOSED, at=row["at"]))
                continue
            self.installs.append(_install(install))
        return make_progress(self.installs, closed)

    def _skips(self, placed: Iterable[GroupLine]) -> Iterator[Violation]:
        cause = "skip-own" if self.rules.skips else "skip-forbidden"
        for line in placed:
            member, _, sender = line.group
            if line.skipped and (not self.rules.skips or member == sender):
                yield _violation(cause, line.group, line.skipped)

    def _walk(self, doubts: _Doubts) -> _Walked:
        """Look at suspect groups row by row."""
        walked = _Walked(groups={suspect.group for suspect in doubts.deliveries})
        walked.findings += self._walk_sendings(doubts.sendings)
        deliveries = list(self._walk_deliveries(walked.extents, doubts.deliveries))
        walked.findings += deliveries
        walked.wrong |= {(v.member, (v.view, v.view_by), v.sender) for v in deliveries}
        return walked

    def _fill(self, summary: Summary, rows: list[dict[str, Any]], walked: _Walked) -> None:
        """Fill in what a sender sent, and what everybody delivered of it."""
        for line in map(tables.group_line, rows):
            if _misplaced(summary, line) is not None:
                continue
            if line.sending:
                summary.sent[line.group[1:]] = line.reach
            elif line.group not in walked.groups:
                summary.delivered[line.group] = line.reach
            elif line.group in walked.extents:
                summary.delivered[line.group] = walked.extents[line.group]
            sound = not line.sending and not line.skipped and line.group not in walked.wrong
            if line.places is not None and sound:
                summary.places[line.group] = line.places
            if line.payloads is None or line.skipped:
                continue
            if line.sending and line.tile:
                summary.sent_sums[line.group[1:]] = line.payloads
            elif not line.sending and line.group not in walked.wrong:
                summary.delivered_sums[line.group] = line.payloads

    def _walk_sendings(self, broken: list[Group]) -> Iterator[Violation]:
        if broken:
            table = tables.group_table(self.spark, broken)
            for row in tables.rows(walks.walk_sendings(self.trace, table)):
                yield self._told(row)

    def _walk_deliveries(
        self, extents: dict[Group, Range], suspects: list[SuspectGroup]
    ) -> Iterator[Violation]:
        if not suspects:
            return
        table = tables.suspect_table(self.spark, suspects)
        for row in tables.rows(walks.walk_deliveries(self.trace, table)):
            if row["cause"] == walks.EXTENT:
                extents[tables.group_of(row)] = Range(row["first"], row["last"])
            else:
                yield self._told(row)

    def _told(self, row: dict[str, Any]) -> Violation:
        if row["rank"] == 1:
            self.causes[row["cause"]] += row["total"]
        reach = Range(row["first"], row["last"])
        return _violation(row["cause"], tables.group_of(row), reach)

    def _windows(self, summary: Summary, marks: list[dict[str, Any]]) -> Iterator[Violation]:
        """Windows out of bounds; notes in passing what was acked and purged."""
        for row in marks:
            group = tables.group_of(row)
            if row["acked"] is not None and row["peer"] is not None:
                summary.acked[group[1], group[0], row["peer"]] = row["acked"]
            if row["purges"]:
                self._purges.update(count=row["purges"], messages=row["purged_messages"])
                summary.purged[group[1], group[0]] = row["purged"]
            if wrong := row["wrong"]:
                yield _violation("marks", group, Range(wrong["low"] + 1, wrong["high"]))
            if (full := row["full"]) and self.rules.capacity is not None:
                reach = Range(full["low"] + 1, full["high"])
                bound = window_bound(self.rules.capacity, group[0], group[2])
                if full["high"] - full["low"] > bound:
                    yield _violation("capacity", group, reach)

    def _early_purges(
        self, summary: Summary, extents: Mapping[Source, Range]
    ) -> Iterator[Violation]:
        if not self._purges["count"] or not self.rules.waits:
            return
        early = early_deliveries(
            self.trace,
            tables.extent_table(self.spark, extents.items()),
            purges=self._purges["count"],
            stride=self._purges["messages"] / self._purges["count"],
            skew_us=self.rules.skew_us,
        )
        for row in tables.rows(early):
            member, view, sender = tables.group_of(row)
            ours, theirs = (summary.progress.get((who, view)) for who in (member, sender))
            if ours and theirs and member in theirs.members and sender in ours.members:
                reach = row["first"], row["last"]
                yield Violation("purged-before", sender, *view, sender, member, *reach)


def _unreadable(rows: Iterable[dict[str, Any]]) -> Iterator[Violation]:
    for row in rows:
        whose = Row(row["member"], row["view"], row["view_by"], row["sender"], VIEW)
        yield unreadable(row["problem"], whose)


def _install(row: Row) -> Row:
    return row._replace(members=tuple(row.members or ()), names=tuple(row.names or ()))


def _before_sent(placed: Iterable[GroupLine]) -> Iterator[Violation]:
    for line in placed:
        if line.early is not None:
            yield _violation("before-sent", line.group, line.early)


def _misplaced(summary: Summary, line: GroupLine) -> str | None:
    return summary.misplaced(*line.group, sending=line.sending)


def _suspects(summary: Summary, placed: Iterable[GroupLine]) -> Iterator[SuspectGroup]:
    """The groups that are no tiles, or have messages that were not sent in their view."""
    ranges = defaultdict[int, list[tuple[ViewKey, Range]]](list)
    for (view, sender), reach in summary.sent.items():
        ranges[sender].append((view, reach))
    for line in placed:
        _, view, sender = line.group
        own, complete = summary.sent.get((view, sender)), summary.is_complete(view, sender)
        inside = own is not None and own.first <= line.reach.first and line.reach.last <= own.last
        doubtful = complete or len(ranges[sender]) > (own is not None)
        if not line.sending and (not line.tile or (not inside and doubtful)):
            yield SuspectGroup(line.group, own, ranges[sender], complete)


def _violation(cause: str, group: Group, reach: Range) -> Violation:
    member, view, sender = group
    return Violation(cause, member, *view, sender, None, *reach)
