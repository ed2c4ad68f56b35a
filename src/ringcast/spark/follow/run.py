"""The continuous audit as one call: follow a directory, keep what is told, write a page."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ringcast.errors import ConfigError
from ringcast.spark.follow.page import follow_page
from ringcast.spark.follow.stream import GRACE, audit_stream, check_grace
from ringcast.spark.follow.warm_up import warm_up
from ringcast.spark.session import session
from ringcast.spark.traces import LOST, blame, explained
from ringcast.trace.compaction.lock import reading
from ringcast.trace.follow.audit_row import LATE, OPEN, VIEW, VIOLATION
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.rules import Rules
from ringcast.trace.writer import trace_directory

Say = Callable[[str], None]
"""Shows one line of progress."""

TRIGGER = "1 second"
LOOK_SECONDS = 0.5
CHECKPOINT = "_checkpoint"
"""Below the directory of the alarms: Spark leaves names out that begin with an underline."""
CONFIG_ERROR = "ConfigError: "
"""Stands before what a task has raised, in the text that Spark makes of it."""
ROWS_KEPT = 1_000
"""Rows of each type that are kept in memory, for the page and the end."""


@dataclass(frozen=True, kw_only=True)
class FollowRequest:
    """What is to be followed, by which rules, and what is written."""

    directory: str
    alarms: str | None = None
    """A directory for the rows of the audit; with it, a later call goes on where this one ends."""
    page: str | None = None
    master: str | None = None
    grace: float = GRACE
    idle: float | None = None
    """Seconds without anything new after which it ends; None: it ends when it is stopped."""
    rules: Rules = field(default_factory=Rules)


@dataclass
class FollowOutcome:
    """What was told so far."""

    violations: int = 0
    late: int = 0
    """Rows that arrived after their view was judged."""
    views: int = 0
    deliveries: int = 0
    open: set[ViewKey] = field(default_factory=set)
    """Views that are not over."""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The last rows of the audit by type, at most ROWS_KEPT."""

    def add(self, row: dict[str, Any]) -> None:
        """Count one row of the audit."""
        self.violations += row["type"] == VIOLATION
        self.late += row["rows"] if row["type"] == LATE else 0
        view = row["view"], row["view_by"]
        if row["type"] == OPEN:
            self.open.add(view)
            return
        if row["type"] == VIEW:
            self.views += 1
            self.deliveries += row["delivered_messages"] or 0
            self.open.discard(view)
        kept = self.rows.setdefault(row["type"], [])
        kept.append(row)
        del kept[:-ROWS_KEPT]

    def verdict(self) -> str:
        """The result as a line."""
        judged = f"{self.views:,} views with {self.deliveries:,} deliveries were judged"
        late = f"; {self.late:,} rows came too late" if self.late else ""
        rest = f"; {_open_views(self.open)}" if self.open else ""
        if self.violations:
            return f"BROKEN: {self.violations:,} violations; {judged}{late}{rest}"
        return f"CLEAN: {judged}{late}{rest}"

    def plain(self) -> dict[str, Any]:
        """The same as plain data, with the last rows."""
        return {
            "verdict": "broken" if self.violations else "clean",
            "violations": self.violations,
            "late_rows": self.late,
            "views": self.views,
            "deliveries": self.deliveries,
            "open_views": len(self.open),
            "rows": self.rows,
        }


def _open_views(views: Collection[ViewKey]) -> str:
    if len(views) == 1:
        return f"view {next(iter(views))[0]} is not over, and not judged"
    return f"{len(views):,} views are not over, and not judged"


def follow(
    request: FollowRequest, say: Say, stop: Event, running: SparkSession | None = None
) -> FollowOutcome:
    """Follow until `stop` is set, or nothing is new for `idle` seconds.

    Raises ConfigError for what can't be followed: no directory, a damaged file.
    """
    check_grace(request.grace)
    if not Path(request.directory).is_dir() and "://" not in request.directory:
        raise ConfigError(
            f"There is no directory {request.directory}: make the one that members will trace to."
        )
    alarms = trace_directory(Path(request.alarms)) if request.alarms else None
    scratch = Path(tempfile.mkdtemp(prefix="ringcast-follow-")) if alarms is None else None
    checkpoint = (scratch or alarms or Path()) / CHECKPOINT
    if running is None:
        say(f"Starting Spark on {request.master or 'this machine'} ...")
    with _java_says_to(checkpoint.with_name(".spark.log")) if running is None else nullcontext():
        spark = running or _session(request.master)
    if running is None:
        _quiet(spark)
    try:
        local = [] if "://" in request.directory else [Path(request.directory)]
        with reading(local), explained(request.directory):
            if running is None:
                warm_up(spark, request.rules, stop)
            return _Following(request, say, alarms).run(spark, checkpoint, stop)
    finally:
        if running is None:
            with suppress(*LOST):
                spark.stop()
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _session(master: str | None) -> SparkSession:
    """On this machine each partition is a task per step and batch, and a batch has little to do. A
    checkpoint keeps the number that it began with."""
    if master is not None:
        return session(master)
    conf: dict[str, Any] = {"spark.sql.shuffle.partitions": max(1, (os.cpu_count() or 1) // 2)}
    return session(**conf)


def _quiet(spark: SparkSession) -> None:
    """Let a thread of PySpark print no traceback when Java is gone: calls raise it as well."""
    if (server := getattr(spark.sparkContext, "_accumulatorServer", None)) is not None:
        server.handle_error = lambda *_: None


class _Following:
    """One call of `follow`."""

    def __init__(self, request: FollowRequest, say: Say, alarms: Path | None) -> None:
        self._request, self._say, self._alarms = request, say, alarms
        self._outcome = FollowOutcome()
        self._batches = -1
        """The last batch that is in the outcome."""
        self._news = time.monotonic()
        self._failure: Exception | None = None
        """Why a batch was not kept."""
        for file in sorted(alarms.glob("*.parquet")) if alarms else ():
            self._batches = int(file.stem.rpartition("-")[2])
            for row in pq.read_table(file).to_pylist():
                self._outcome.add(row)

    def run(self, spark: SparkSession, checkpoint: Path, stop: Event) -> FollowOutcome:
        request = self._request
        rules = request.rules._asdict()
        known = checkpoint / "metadata"  # Spark writes it when a query is first started.
        since = known.stat().st_mtime if known.exists() else None
        rows = audit_stream(spark, request.directory, grace=request.grace, since=since, **rules)
        writer = rows.writeStream.queryName("ringcast audit").foreachBatch(self._take)
        started = writer.option("checkpointLocation", str(checkpoint)).trigger(
            processingTime=TRIGGER
        )
        query = started.start()
        self._say(f"Following {request.directory}; Ctrl-C ends it.")
        self._write_page()
        self._news = time.monotonic()
        try:
            while not self._ended(query) and not stop.wait(LOOK_SECONDS):
                progress = query.lastProgress
                if progress is None or progress["numInputRows"] or query.status["isDataAvailable"]:
                    self._news = time.monotonic()
        finally:
            query.stop()
        self._write_page(refresh=False)
        return self._outcome

    def _ended(self, query: StreamingQuery) -> bool:
        """Whether nothing is new for long enough; raises ConfigError when the query has failed."""
        if not query.isActive:
            raise _explained(self._request.directory, self._failure or query.exception())
        idle = self._request.idle
        return idle is not None and time.monotonic() - self._news > idle

    def _take(self, table: DataFrame, batch: int) -> None:
        """Keep the rows of one micro-batch.

        Spark searches the text of what is raised here with an expression that overflows its stack
        where the text is long, and then ends the query without a word. So it gets a short one.
        """
        try:
            self._keep(table, batch)
        except Exception as error:
            self._failure = error
            raise RuntimeError("a batch of the audit was not kept") from None

    def _keep(self, table: DataFrame, batch: int) -> None:
        """Keep the rows of one micro-batch. One that comes again has the same rows."""
        found = table.toArrow()
        if not found.num_rows or batch <= self._batches:
            return
        if self._alarms is not None:
            _write(found, self._alarms / f"audit-{batch:010d}.parquet")
        self._batches, self._news = batch, time.monotonic()
        for row in found.to_pylist():
            self._outcome.add(row)
            if row["type"] in (VIOLATION, LATE) or row["violations"]:
                self._say(_line(row))
        self._write_page()

    def _write_page(self, refresh: bool = True) -> None:
        if self._request.page is None:
            return
        place = Path(self._request.page)
        draft = place.with_name(f".{place.name}.tmp")
        outcome = self._outcome
        try:
            text = follow_page(self._request.directory, outcome.verdict(), outcome.rows, refresh)
            draft.write_text(text, encoding="utf-8")
            draft.replace(place)
        except OSError as error:
            raise ConfigError(f"No report can be written to {place}: {error.strerror}.") from error


@contextmanager
def _java_says_to(log: Path) -> Iterator[None]:
    """Give the Java process that is started inside a file for its standard error.

    Spark's workers tell there what they do, line by line; what goes wrong comes as an exception.
    """
    kept = os.dup(2)
    with log.open("w") as opened:
        os.dup2(opened.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(kept, log.read_bytes())
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _line(row: dict[str, Any]) -> str:
    """A violation, late rows, or a view in which something was broken, as a line."""
    if row["type"] == VIEW:
        alarm = f"ALARM: view {row['view']} broken ({row['what']})"
        if row["ended"] is None:
            return alarm
        return f"{alarm}, told {time.time() - row['ended'] / 1e6:.1f} s after its end"
    address = f"{(row['member'] or 0) % (1 << 64):x}"
    who = f"{row['member_name'] or address}, view {row['view']}"
    return f"{'late' if row['type'] == LATE else row['guarantee']}: {row['what']} ({who})"


def _write(table: pa.Table, place: Path) -> None:
    """Write a file that appears whole."""
    draft = place.with_name(f".{place.name}.tmp")
    pq.write_table(table, draft)
    draft.replace(place)


def _explained(directory: str, error: Exception | None) -> ConfigError:
    """What to tell when the query ended: which file is wrong, else what Spark said first."""
    if isinstance(error, ConfigError):
        return error
    for line in str(error).splitlines():
        if CONFIG_ERROR in line:
            return ConfigError(line.rpartition(CONFIG_ERROR)[2].strip())
    return blame(directory, error or RuntimeError("the query ended"), "follow")
