"""The audit of a directory of traces as one call, from the session to the page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from ringcast.errors import ConfigError
from ringcast.spark.audit import Report, audit
from ringcast.spark.jobs import described
from ringcast.spark.session import session
from ringcast.spark.traces import LOST, explained, find_traces, read_trace
from ringcast.trace.compaction.lock import reading
from ringcast.trace.rules import Rules

Say = Callable[[str], None]
"""Shows one line of progress."""


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What is to be audited, where, and by which rules."""

    directory: str
    page: str | None = None
    master: str | None = None
    rules: Rules = field(default_factory=Rules)


def audit_directory(request: AuditRequest, say: Say, running: SparkSession | None = None) -> Report:
    """Audit in a new session or in a running one, and compute all that is told of it.

    Raises ConfigError for what cannot be audited.
    """
    with reading(check_place(request.directory, say)):
        return _audit(request, say, running)


def _audit(request: AuditRequest, say: Say, running: SparkSession | None) -> Report:
    if running is None:
        say(f"Starting Spark on {request.master or 'this machine'} ...")
    spark = running or session(request.master)
    try:
        with explained(request.directory), described(spark, f"ringcast audit: {request.directory}"):
            trace = read_trace(spark, request.directory)
            say("Auditing ...")
            report = audit(trace, **request.rules._asdict())
            if request.page is not None:
                report.write_html(request.page)
            # All that needs Spark is computed here; what is left is plain data.
            _ = report.shown, report.measures
            return report
    finally:
        if running is None:
            with suppress(*LOST):
                spark.stop()


def check_place(directory: str, say: Say) -> set[Path]:
    """Where the traces are. Raises ConfigError for the simplest mistakes before Spark is started,
    which takes a while."""
    if "://" in directory:
        return set()
    try:
        found = find_traces(directory)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be read: {error.strerror}.") from None
    if found.ignored:
        say(found.left_out())
    return found.directories
