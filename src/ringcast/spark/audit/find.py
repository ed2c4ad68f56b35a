"""Finds what is wrong in a trace, in as few passes as there can be.

1. The views, and the groups: one row for each member, view and sender. That is the one pass over
   all messages. What it gives is small, and is judged here, by `ringcast.trace.judge`.
2. A second look at the rows of suspect groups, if there are any.
3. The marks of windows, and one more scan for early purges, if there were purges at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame

from ringcast.errors import ConfigError
from ringcast.spark.audit import control, tables, walks
from ringcast.spark.audit.groups import groups
from ringcast.spark.audit.purges import early_deliveries
from ringcast.spark.audit.tables import GroupLine, Suspect
from ringcast.trace.history import find_reinstalled, make_stands
from ringcast.trace.judge import judge
from ringcast.trace.rules import Rules, window_bound
from ringcast.trace.schema import CLOSED, VIEW, Row
from ringcast.trace.summary import Group, Range, Stand, Summary, ViewKey
from ringcast.trace.violations import CAUSES, Violation


class Finder:
    """One audit of a trace."""

    def __init__(self, trace: DataFrame, rules: Rules) -> None:
        self.trace, self.rules = trace, rules
        self.spark = trace.sparkSession
        self.counts = Counter[str]()
        """How often each guarantee was broken, also where the list of a group was cut short."""
        self.installs: list[Row] = []
        """The views, as members installed them."""
        self.closings: list[Row] = []
        """Where members closed."""
        self._purges = Counter[str]()
        """How many purges there were, and of how many messages."""

    def find(self) -> list[Violation]:
        """List what is wrong: the same that `ringcast.trace.check` finds."""
        summary = Summary(self._stands(), reinstalled=find_reinstalled(self.installs))
        sums = tables.rows(groups(self.trace))
        _check_present(sums)
        lines = [tables.group_line(row) for row in sums]
        causes = {line: _misplaced(summary, line) for line in lines}
        placed = [line for line, cause in causes.items() if cause is None]
        found = [_violation(c, line.group, line.reach) for line, c in causes.items() if c]
        found += self._skips(placed)
        self.counts.update(violation.guarantee for violation in found)
        found += self._walks(summary, placed)
        judged = [*self._windows(summary), *judge(summary), *self._early_purges(summary)]
        later = [violation for violation in judged if not self.rules.excuses(violation.cause)]
        self.counts.update(violation.guarantee for violation in later)
        return found + later

    def _stands(self) -> dict[tuple[int, ViewKey], Stand]:
        closed = set[tuple[int, ViewKey]]()
        rows = tables.rows(control.installs(self.trace))
        _check_present(rows)
        for row in rows:
            member, view = row["member"], (row["view"], row["view_by"])
            if row["kind"] == CLOSED:
                closed.add((member, view))
                self.closings.append(Row(member, *view, None, CLOSED, at=row["at"]))
                continue
            install = Row(member, *view, None, VIEW, at=row["at"])
            members, names = tuple(row["members"] or ()), tuple(row["names"] or ())
            self.installs.append(install._replace(members=members, names=names))
        return make_stands(self.installs, closed)

    def _skips(self, placed: Iterable[GroupLine]) -> Iterator[Violation]:
        cause = "skip-own" if self.rules.skips else "skip-forbidden"
        for line in placed:
            member, _, sender = line.group
            if line.skipped and (not self.rules.skips or member == sender):
                yield _violation(cause, line.group, line.skipped)

    def _walks(self, summary: Summary, placed: list[GroupLine]) -> Iterator[Violation]:
        """Look at suspect groups row by row, and fill in what everybody sent and delivered."""
        for line in placed:
            if line.sending:
                summary.sent[line.group[1:]] = line.reach
        broken = [line.group for line in placed if line.sending and not line.tile]
        yield from self._walk_sendings(broken)
        suspects = list(_suspects(summary, placed))
        findings = list(self._walk_deliveries(summary, suspects))
        yield from findings
        wrong = {(v.member, (v.view, v.view_by), v.sender) for v in findings}
        walked = {suspect.group for suspect in suspects}
        for line in placed:
            if not line.sending and line.group not in walked:
                summary.delivered[line.group] = line.reach
            if line.digest is None or line.skipped:
                continue
            if line.sending and line.tile:
                summary.sent_digests[line.group[1:]] = line.digest
            elif not line.sending and line.group not in wrong:
                summary.digests[line.group] = line.digest

    def _walk_sendings(self, broken: list[Group]) -> Iterator[Violation]:
        if broken:
            table = tables.group_table(self.spark, broken)
            for row in tables.rows(walks.walk_sendings(self.trace, table)):
                yield self._told(row)

    def _walk_deliveries(self, summary: Summary, suspects: list[Suspect]) -> Iterator[Violation]:
        if not suspects:
            return
        table = tables.suspect_table(self.spark, suspects)
        for row in tables.rows(walks.walk_deliveries(self.trace, table)):
            if row["cause"] == walks.EXTENT:
                summary.delivered[tables.group_of(row)] = Range(row["first"], row["last"])
            else:
                yield self._told(row)

    def _told(self, row: dict[str, Any]) -> Violation:
        if row["rank"] == 1:
            self.counts[CAUSES[row["cause"]].guarantee] += row["total"]
        reach = Range(row["first"], row["last"])
        return _violation(row["cause"], tables.group_of(row), reach)

    def _windows(self, summary: Summary) -> Iterator[Violation]:
        """Windows out of bounds; notes in passing what was acked and purged."""
        for row in tables.rows(control.marks(self.trace)):
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

    def _early_purges(self, summary: Summary) -> Iterator[Violation]:
        if not self._purges["count"] or not self.rules.waits:
            return
        early = early_deliveries(
            self.trace,
            tables.extent_table(self.spark, summary.extents.items()),
            purges=self._purges["count"],
            stride=self._purges["messages"] / self._purges["count"],
            skew_us=self.rules.skew_us,
        )
        for row in tables.rows(early):
            member, view, sender = tables.group_of(row)
            ours, theirs = (summary.stands.get((who, view)) for who in (member, sender))
            if ours and theirs and member in theirs.members and sender in ours.members:
                reach = row["first"], row["last"]
                yield Violation("purged-before", sender, *view, sender, member, *reach)


def _check_present(rows: Iterable[dict[str, Any]]) -> None:
    """Raise ConfigError for rows that do not even say whose they are."""
    for row in rows:
        for name in ("member", "view", "view_by"):
            if row[name] is None:
                raise ConfigError(f"This is no trace of Ringcast: '{name}' is null in some rows.")


def _misplaced(summary: Summary, line: GroupLine) -> str | None:
    return summary.misplaced(*line.group, sending=line.sending)


def _suspects(summary: Summary, placed: Iterable[GroupLine]) -> Iterator[Suspect]:
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
            yield Suspect(line.group, own, ranges[sender], complete)


def _violation(cause: str, group: Group, reach: Range) -> Violation:
    member, view, sender = group
    return Violation(cause, member, *view, sender, None, *reach)
