"""Checks of a user's own take part in the audit: on the driver, and in tasks of Spark."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast.spark.audit.finding import senders
from ringcast.trace.judging import checks, evidence
from ringcast.trace.judging.checks import MESSAGES, VIEWS, audit_check
from ringcast.trace.judging.summary import Summary
from ringcast.trace.schema import Row
from ringcast.trace.table import write_rows
from ringcast.trace.violations import CAUSES, GUARANTEES, Cause, Violation

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def _own_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checks, in copies of all tables that they are registered in."""
    monkeypatch.setattr(checks, "_checks", {about: [*c] for about, c in checks._checks.items()})
    guarantees = {"view-size": "a view has three members or more", "quota": "up to 4 messages"}
    causes = {"small": Cause("view-size", "installed a view with fewer than three members")}
    causes["many"] = Cause("quota", "{messages} sent in one view")
    for name, sentence in guarantees.items():
        monkeypatch.setitem(GUARANTEES, name, sentence)
    for name, cause in causes.items():
        monkeypatch.setitem(CAUSES, name, cause)
    monkeypatch.setitem(evidence.KINDS, "small", ("view",))

    @audit_check(VIEWS, {"small": causes["small"]})
    def small(summary: Summary) -> Iterator[Violation]:
        for (member, view), part in summary.progress.items():
            if len(part.members) < 3:
                yield Violation("small", member, *view)

    @audit_check(MESSAGES, {"many": causes["many"]})
    def many(summary: Summary) -> Iterator[Violation]:
        for (view, sender), reach in summary.sent.items():
            if reach.last - reach.first >= 4:
                yield Violation("many", sender, *view, sender, None, *reach)


@pytest.mark.usefixtures("_own_checks")
@pytest.mark.parametrize("driver_lines", [senders.DRIVER_LINES_MAX, 0])
def test_checks_of_a_user_find_and_tell_what_they_are_about(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_lines: int
) -> None:
    monkeypatch.setattr(senders, "DRIVER_LINES_MAX", driver_lines)
    rows = [
        *(Row(m, 1, 1, None, "view", at=1, members=(1, 2)) for m in (1, 2)),
        *(Row(m, 1, 1, m, "sent", 1, 6 if m == 2 else 2, at=2) for m in (1, 2)),
        *(
            Row(m, 1, 1, s, "delivered", 1, 6 if s == 2 else 2, pos=0, at=3)
            for m in (1, 2)
            for s in (1, 2)
        ),
        *(Row(m, 1, 1, None, "closed", at=9) for m in (1, 2)),
    ]
    write_rows(tmp_path / "0.parquet", rows)
    report = rs.audit(rs.read_trace(spark, tmp_path))
    assert Counter(report.counts) == {"view-size": 2, "quota": 1}
    assert "messages 1 to 6 sent in one view" in {violation.what for violation in report.found}
    shown = {violation.cause: rows for violation, rows in report.shown}
    assert [row["kind"] for row in shown["small"]] == ["view"]
    assert "a view has three members or more" in report.html()
