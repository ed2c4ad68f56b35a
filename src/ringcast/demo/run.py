"""The demo as one call: play the story, audit its traces on Spark, report the result."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringcast.demo.play import DemoPlan, Played, Say, play
from ringcast.journal import Journal
from ringcast.spark import Report, audit, read_trace, session
from ringcast.spark.audit.report_text import plain, table, verdict, violations
from ringcast.trace.rules import rules_of


@dataclass(frozen=True)
class DemoResult:
    """All that a demo found."""

    plan: DemoPlan
    played: Played
    report: Report
    page: Path
    journal: Journal
    audit_seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether every guarantee held, and the journal has what its recorder was given."""
        return not self.report.counts and self.journal_rows == self.played.recorded

    @property
    def journal_rows(self) -> int:
        """The messages in the sealed journal."""
        return sum(segment.rows for segment in self.journal.segments)

    def table(self) -> dict[str, str]:
        """The figures for people."""
        lost, journal = sum(self.played.lost.values()), self.journal
        holes = "no holes" if not journal.holes() else f"holes of {len(journal.holes())} senders"
        return {
            **table(self.report),
            "lost on purpose": f"{lost:,} datagrams",
            "journal": f"{self.journal_rows:,} of {self.played.recorded:,} messages in"
            f" {len(journal.segments)} segments, {holes}",
            "time": f"{self.played.seconds:.1f} s for the group, {self.audit_seconds:.1f} s for the"
            " audit",
        }

    def plain(self) -> dict[str, Any]:
        """The same as plain data, with where everything is."""
        return {
            **plain(self.report),
            "journal": {
                "path": str(self.plan.journal),
                "rows": self.journal_rows,
                "recorded": self.played.recorded,
                "segments": len(self.journal.segments),
                "holes": len(self.journal.holes()),
            },
            "killed": self.played.killed,
            "joined": self.played.joined,
            "expelled_after": self.played.expelled_after,
            "lost_on_purpose": self.played.lost,
            "group_seconds": self.played.seconds,
            "audit_seconds": self.audit_seconds,
            "trace": str(self.plan.trace),
            "report": str(self.page),
            "is_clean": self.is_clean,
        }

    def verdict(self) -> str:
        """The result as a line."""
        if self.report.counts or self.is_clean:
            return verdict(self.report)
        return (
            f"BROKEN: the journal has {self.journal_rows:,} messages, and its recorder was given"
            f" {self.played.recorded:,}"
        )

    def violations(self) -> list[str]:
        """Lines about what is wrong."""
        return list(violations(self.report))


def run_demo(plan: DemoPlan, say: Say) -> DemoResult:
    """Play and audit. Raises ConfigError and DemoError; a broken guarantee is an outcome."""
    played = play(plan, say)
    began = time.monotonic()
    say("Starting Spark on this machine ...")
    spark = session()
    try:
        say("Auditing the traces of all members ...")
        ordered = rules_of(plan.stack()).ordered
        report = audit(read_trace(spark, plan.trace), skips=False, ordered=ordered)
        page = report.write_html(plan.out / "report.html")
        # All that needs Spark is computed here; what is left is plain data.
        _ = report.shown
        return DemoResult(
            plan, played, report, page, Journal(plan.journal), time.monotonic() - began
        )
    finally:
        spark.stop()
