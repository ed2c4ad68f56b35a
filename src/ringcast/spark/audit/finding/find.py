"""Finds what is wrong in a trace, in as few passes as there can be.

1. The views, and the groups: one row for each member, view and sender. That is the one pass over
   all messages. `senders` judges what it gives, by `ringcast.trace.judging.judge`.
2. A second look at the rows of suspect groups, if there are any.
3. The marks of windows, and one more scan for early purges, if there were purges at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from ringcast.spark.audit import control, tables, walks
from ringcast.spark.audit.finding.sender import (
    SenderFindings,
    Walked,
    violation,
    walked_by_sender,
)
from ringcast.spark.audit.finding.senders import senders_of
from ringcast.spark.audit.purges import early_deliveries
from ringcast.spark.audit.row_rules import row_problem
from ringcast.spark.audit.tables import SuspectGroup
from ringcast.trace.judging.history import (
    agreement_of,
    find_reinstalled,
    make_progress,
    note_agreement,
    unreadable,
)
from ringcast.trace.judging.judge import judge_views
from ringcast.trace.judging.summary import (
    Agreement,
    Group,
    Range,
    ReceiverProgress,
    Summary,
    ViewKey,
)
from ringcast.trace.row_rules import row_problem as plain_row_problem
from ringcast.trace.rules import Rules
from ringcast.trace.schema import AGREED, CLOSED, KINDS, VIEW, Row
from ringcast.trace.violations import Violation


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
        self.installs: list[Row] = []
        """The views, as members installed them."""
        self._lists: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._agreed: dict[tuple[int, ViewKey], Agreement] = {}
        self.closings: list[Row] = []
        """Where members closed."""

    def find(self) -> list[Violation]:
        """List what is wrong: the same that `ringcast.trace.check` finds."""
        progress = self._progress()
        views = Summary(progress, agreed=self._agreed, reinstalled=find_reinstalled(self.installs))
        senders = senders_of(self.trace, views, self.rules)
        made = list(senders.look())
        self._unreadable.update(_unreadable(line for one in made for line in one.unsound))
        if self._unreadable:
            self.trace = self.trace.where(row_problem(*KINDS).isNull())
        found = [*self._unreadable, *dict.fromkeys(v for one in made for v in one.found)]
        for one in made:
            # Who installed no view is told of here.
            self.members.update(violation.member for violation in one.found)
            self.latencies |= one.latencies
        self.causes.update(violation.cause for violation in found)
        if doubtful := [one for one in made if one.is_doubtful]:
            walked, told = self._walk(doubtful)
            found += told
            made += senders.judge(walked)
        later = [*judge_views(views), *(v for one in made for v in one.owed)]
        later += self._early_purges(views, made)
        later = [violation for violation in later if not self.rules.excuses(violation.cause)]
        self.causes.update(violation.cause for violation in later)
        return sorted(found + later, key=lambda v: v.order)

    def _progress(self) -> dict[tuple[int, ViewKey], ReceiverProgress]:
        closed = set[tuple[int, ViewKey]]()
        for row in tables.few_rows(control.installs(self.trace)):
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
            if row["kind"] == AGREED:
                note_agreement(self._agreed, (member, view), agreement_of(install))
                continue
            self.installs.append(self._install(install))
        return make_progress(self.installs, closed)

    def _install(self, row: Row) -> Row:
        """A row with the members of a view; as many rows as a view has members share one list."""
        members, names = tuple(row.members or ()), tuple(row.names or ())
        return row._replace(
            members=self._lists.setdefault(members, members),
            names=self._lists.setdefault(names, names),
        )

    def _walk(self, doubtful: list[SenderFindings]) -> tuple[Mapping[int, Walked], list[Violation]]:
        """Look at suspect groups row by row; what shows, by sender, and what is wrong."""
        sendings = [group for one in doubtful for group in one.sendings]
        suspects = [suspect for one in doubtful for suspect in one.deliveries]
        walked = Walked(groups={suspect.group for suspect in suspects})
        found = list(self._walk_sendings(sendings))
        deliveries = list(self._walk_deliveries(walked.extents, suspects))
        walked.wrong |= {(v.member, (v.view, v.view_by), v.sender or 0) for v in deliveries}
        senders = {group[2] for group in (*sendings, *walked.groups)}
        return walked_by_sender(walked, senders), found + deliveries

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
        return violation(row["cause"], tables.group_of(row), reach)

    def _early_purges(
        self, summary: Summary, made: Sequence[SenderFindings]
    ) -> Iterator[Violation]:
        purges, purged = sum(one.purges for one in made), sum(one.purged for one in made)
        if not purges or not self.rules.waits:
            return
        extents = {source: reach for one in made for source, reach in one.extents.items()}
        early = early_deliveries(
            self.trace,
            tables.extent_table(self.spark, extents.items()),
            purges=purges,
            stride=purged / purges,
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
