"""All senders of a trace, judged one by one: on the driver, or of a large group in tasks of Spark.

Nearly all that is owed is owed by sender. A thousand members that all send are a million lines per
view: these stay with Spark, and a task makes Python objects of the lines of one sender. The driver
gets what came out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from ringcast.spark.audit import control
from ringcast.spark.audit.finding.sender import (
    Lines,
    SenderFindings,
    Walked,
    judge_sender,
    look_at,
)
from ringcast.spark.audit.finding.sender_table import SenderTable
from ringcast.spark.audit.groups import groups
from ringcast.spark.travel import take_along
from ringcast.trace.judging.checks import Check, checks_of_others, include
from ringcast.trace.judging.summary import Summary
from ringcast.trace.rules import Rules

DRIVER_LINES_MAX = 100_000
"""Lines by member, view and sender that are judged on the driver; more are judged in tasks."""

BODY = "body string"


class Senders(Protocol):
    """The senders of a trace."""

    def look(self) -> Iterator[SenderFindings]:
        """What is wrong with the groups of each sender, and what is owed where that is known."""
        ...

    def judge(self, walked: Mapping[int, Walked]) -> Iterator[SenderFindings]:
        """What is owed of the messages of those senders whose groups had to be walked."""
        ...


def senders_of(trace: DataFrame, views: Summary, rules: Rules) -> Senders:
    """The senders of a trace, where they are better judged."""
    sizes = {view: len(members) for view, members in views.known_members.items()}
    lines = sum(size * size for size in sizes.values())
    kind = SendersInTasks if lines > DRIVER_LINES_MAX else SendersOnDriver
    return kind(trace, views, rules)


class SendersOnDriver:
    """For few lines: starting tasks would take longer than the work."""

    def __init__(self, trace: DataFrame, views: Summary, rules: Rules) -> None:
        self._views, self._rules = views, rules
        self._lines = SenderTable(groups(trace, rules.skew_us))
        self._marks = SenderTable(control.marks(trace))

    def look(self) -> Iterator[SenderFindings]:
        """What is wrong with the groups of each sender, and what is owed where that is known."""
        yield SenderFindings(unsound=[*self._lines.unsound, *self._marks.unsound])
        for sender in sorted({*self._lines.senders, *self._marks.senders}):
            lines, marks = self._lines.of(sender), self._marks.of(sender)
            yield look_at(self._views, self._rules, lines, marks)

    def judge(self, walked: Mapping[int, Walked]) -> Iterator[SenderFindings]:
        """What is owed of the messages of those senders whose groups had to be walked."""
        for sender, found in walked.items():
            lines, marks = self._lines.of(sender), self._marks.of(sender)
            yield judge_sender(self._views, self._rules, lines, marks, found)


class SendersInTasks:
    """For many lines: a task has those of one sender after the other."""

    def __init__(self, trace: DataFrame, views: Summary, rules: Rules) -> None:
        self._trace, self._views, self._rules = trace, views, rules
        if not is_remote():
            take_along(trace.sparkSession)

    def look(self) -> Iterator[SenderFindings]:
        """What is wrong with the groups of each sender, and what is owed where that is known."""
        views, rules = self._views, self._rules

        def look(lines: Lines, marks: Lines) -> SenderFindings:
            return look_at(views, rules, lines, marks)

        return self._findings(self._trace, look)

    def judge(self, walked: Mapping[int, Walked]) -> Iterator[SenderFindings]:
        """What is owed of the messages of those senders whose groups had to be walked."""
        views, rules = self._views, self._rules

        def judge(lines: Lines, marks: Lines) -> SenderFindings:
            found = walked[(lines or marks)[0]["sender"]]
            return judge_sender(views, rules, lines, marks, found)

        return self._findings(self._trace.where(F.col("sender").isin(*walked)), judge)

    def _findings(
        self, trace: DataFrame, judge: Callable[[Lines, Lines], SenderFindings]
    ) -> Iterator[SenderFindings]:
        lines = groups(trace, self._rules.skew_us).groupBy("sender")
        marks = control.marks(trace).groupBy("sender")
        work = _bodies(judge, checks_of_others())
        bodies = lines.cogroup(marks).applyInArrow(work, BODY).toArrow()
        for body in bodies.column("body"):
            yield SenderFindings.of(json.loads(body.as_py()))


def _bodies(
    judge: Callable[[Lines, Lines], SenderFindings], others: Mapping[str, Sequence[Check]]
) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """The work of a task on one sender."""

    def work(lines: pa.Table, marks: pa.Table) -> pa.Table:
        include(others)
        (sound, wrong), (sound_marks, wrong_marks) = _parted(lines), _parted(marks)
        found = judge(sound, sound_marks) if sound or sound_marks else SenderFindings()
        found.unsound = [*wrong, *wrong_marks]
        return pa.table({"body": [json.dumps(found.plain())]})

    return work


def _parted(table: pa.Table) -> tuple[Lines, Lines]:
    """The lines that can be used, and those of rows that can't."""
    sound = pc.is_null(table.column("problem"))
    return _plain(table.filter(sound)), _plain(table.filter(pc.invert(sound)))


def _plain(table: pa.Table) -> Lines:
    rows: Sequence[dict[str, Any]] = table.to_pylist()
    return list(rows)
