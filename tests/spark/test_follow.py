"""The continuous audit: traces written piece by piece, judged while they grow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.spark.follow import run
from ringcast.spark.follow.stream import AUDIT_ROWS
from ringcast.spark.follow.warm_up import warm_up
from ringcast.trace.check import check
from ringcast.trace.follow.audit_row import LATE, OPEN, VIEW, VIOLATION, AuditRow
from ringcast.trace.judging.history import History
from ringcast.trace.rules import Rules
from ringcast.trace.schema import DELIVERED, Row, signed
from ringcast.trace.table import write_rows
from tests.spark.support import PAUSE, WAIT, until
from tests.unit.trace.follow.test_view import pieces
from tests.unit.trace.histories import good_history
from tests.unit.trace.spoils import spoil

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


Told = tuple[Any, ...]
"""Of a row of the audit: type, cause, member, view, rows, and by whom the view is."""


class Followed:
    """A trace that grows, a query that follows it, and the table that the query writes."""

    def __init__(self, spark: SparkSession, place: Path, grace: float) -> None:
        self._spark, self._place, self._grace = spark, place, grace
        self.trace = place / "trace"
        self.trace.mkdir()
        self._files = 0

    def write(self, rows: Iterable[Row]) -> None:
        """One more file of the trace, which appears whole."""
        draft = self.trace / ".draft"
        write_rows(draft, [*rows])
        draft.rename(self.trace / f"{self._files:06d}.parquet")
        self._files += 1

    def start(self) -> StreamingQuery:
        rows = rs.audit_stream(self._spark, self.trace, grace=self._grace)
        check = str(self._place / "check")
        sink = rows.writeStream.format("parquet").option("checkpointLocation", check)
        return sink.trigger(processingTime="500 milliseconds").start(str(self._place / "told"))

    def told(self) -> list[Told]:
        """What the table has."""
        table = self._spark.read.schema(AUDIT_ROWS).parquet(str(self._place / "told"))
        found = table.select("type", "cause", "member", "view", "rows", "view_by").collect()
        return sorted((tuple(row) for row in found), key=repr)

    def wait_for(self, query: StreamingQuery, is_true: Callable[[list[Told]], object]) -> None:
        def looked() -> bool:
            if query.exception() is not None:
                raise AssertionError(query.exception())
            begun = (self._place / "told" / "_spark_metadata" / "0").exists()
            return begun and bool(is_true(self.told()))

        until(looked, lambda: query.awaitTermination(PAUSE))  # type: ignore[arg-type]  # Parts of a second.


def spoilt_history() -> list[Row]:
    """A history with a gap, in which no member crashes: no view has to wait for its grace."""
    for seed in range(100):
        rows = good_history(seed)
        whole = not any(part.crashed for part in History(rows).summary.progress.values())
        if whole and (spoilt := spoil(rows, random.Random(seed), "gap")):
            return spoilt.rows
    pytest.fail("there is no such history")


def kinds(told: Sequence[Told], kind: str) -> list[Told]:
    return [row for row in told if row[0] == kind]


def test_a_trace_in_pieces_with_a_restart_between_them(spark: SparkSession, tmp_path: Path) -> None:
    """Every view is judged once, violations are those of the checks, late rows are told."""
    rows = spoilt_history()
    late = next(row for row in rows if row.kind == DELIVERED and row.view == 1)
    first, second = pieces(rows, 2)
    followed = Followed(spark, tmp_path, grace=WAIT)
    followed.write(first)
    query = followed.start()
    until(lambda: query.lastProgress is not None and query.lastProgress["numInputRows"] > 0)
    query.stop()
    query = followed.start()
    followed.write(second)
    views = {(row.view, signed(row.view_by)) for row in rows}
    followed.wait_for(query, lambda told: {(row[3], row[5]) for row in kinds(told, VIEW)} == views)
    followed.write([late])
    followed.wait_for(query, lambda told: kinds(told, LATE))
    query.stop()
    told = followed.told()
    expected = sorted((v.cause, signed(v.member), v.view) for v in check(rows))
    assert sorted(row[1:4] for row in kinds(told, VIOLATION)) == expected
    (late_row,) = kinds(told, LATE)
    assert late_row[2:5] == (signed(late.member), late.view, 1)
    assert len(kinds(told, VIEW)) == len(kinds(told, OPEN)) == len(views)
    assert sum(row[4] for row in kinds(told, VIEW)) == len(rows)


def test_what_cannot_be_followed_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no directory"):
        rs.audit_stream(spark, tmp_path / "none")
    with pytest.raises(ConfigError, match="grace"):
        rs.audit_stream(spark, tmp_path, grace=-1)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "another table": (
        lambda file: pq.write_table(pa.table({"x": [1]}), file),
        r"x\.parquet is not a trace of Ringcast: it has no column 'member'",
    ),
    "cut short": (
        lambda file: file.write_bytes(file.with_name("000000.parquet").read_bytes()[:-50]),
        r"x\.parquet is damaged: restore it, or move it away",
    ),
}


@pytest.mark.parametrize("way", WRONG)
def test_a_file_that_is_no_trace_is_named_and_can_be_moved_away(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    followed = Followed(spark, tmp_path, grace=WAIT)
    rows = spoilt_history()
    followed.write(rows)
    spoil, sentence = WRONG[way]
    spoil(followed.trace / "x.parquet")
    alarms = tmp_path / "alarms"
    request = run.FollowRequest(directory=str(followed.trace), alarms=str(alarms), grace=WAIT)
    views = {(row.view, signed(row.view_by)) for row in rows}
    with pytest.raises(ConfigError, match=sentence):
        run.follow(request, lambda line: None, Event(), spark)
    (followed.trace / "x.parquet").unlink()
    outcome = run.follow(request, lambda line: None, AllJudged(alarms, len(views)), spark)
    assert (outcome.violations, outcome.views) == (len(check(rows)), len(views))


def test_a_warm_up_ends_when_its_view_is_judged_and_leaves_nothing(spark: SparkSession) -> None:
    """Nothing else ends it here, and its query, which has timers, would go on by itself."""
    warm_up(spark, Rules(), Event())
    assert not [query.name for query in spark.streams.active]


def test_a_query_that_ends_without_a_word_is_a_failure(tmp_path: Path) -> None:
    """An audit that goes on without its query would tell of nothing any more."""
    write_rows(tmp_path / "0.parquet", good_history(1))
    ended = SimpleNamespace(isActive=False, exception=lambda: None)
    following = run._Following(run.FollowRequest(directory=str(tmp_path)), print, None)
    with pytest.raises(ConfigError, match=r"could not follow the traces in .*: the query ended"):
        following._ended(cast(StreamingQuery, ended))


def test_a_view_that_is_not_over_is_no_part_of_the_verdict() -> None:
    """As where all members were killed."""
    outcome = run.FollowOutcome()
    for view in (6, 7, 8):
        outcome.add(AuditRow(OPEN, view, 1, "")._asdict())
    judged = "CLEAN: 0 views with 0 deliveries were judged"
    assert outcome.verdict() == f"{judged}; 3 views are not over, and not judged"
    outcome.add(AuditRow(VIEW, 6, 1, "clean")._asdict())
    outcome.add(AuditRow(VIEW, 8, 1, "clean")._asdict())
    assert outcome.verdict().endswith("; view 7 is not over, and not judged")
    assert outcome.plain()["open_views"] == 1


def alarm_rows(alarms: Path) -> list[dict[str, Any]]:
    files = sorted(alarms.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


class AllJudged(Event):
    """Set when the alarms have as many views as there are."""

    def __init__(self, alarms: Path, views: int) -> None:
        super().__init__()
        self._alarms, self._views = alarms, views

    def wait(self, timeout: float | None = None) -> bool:
        judged = [row for row in alarm_rows(self._alarms) if row["type"] == VIEW]
        return len(judged) >= self._views or super().wait(timeout)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_a_crash_around_the_writing_of_alarms_loses_and_repeats_nothing(
    written: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch with rows dies before or after its file is there, and is done again."""
    rows = spoilt_history()
    followed = Followed(spark, tmp_path, grace=WAIT)
    for piece in pieces(rows, 2):
        followed.write(piece)
    write, crashes = run._write, list[Path]()

    def crash(table: pa.Table, place: Path) -> None:
        if written:
            write(table, place)
        crashes.append(place)
        raise OSError("the process dies here")

    alarms = tmp_path / "alarms"
    request = run.FollowRequest(directory=str(followed.trace), alarms=str(alarms), grace=WAIT)
    views = {(row.view, signed(row.view_by)) for row in rows}
    monkeypatch.setattr(run, "_write", crash)
    with pytest.raises(ConfigError, match="could not follow"):
        run.follow(request, lambda line: None, Event(), spark)
    monkeypatch.setattr(run, "_write", write)
    outcome = run.follow(request, lambda line: None, AllJudged(alarms, len(views)), spark)
    assert len(crashes) == 1
    told = alarm_rows(alarms)
    found = sorted((r["cause"], r["member"], r["view"]) for r in told if r["type"] == VIOLATION)
    assert found == sorted((v.cause, signed(v.member), v.view) for v in check(rows))
    assert sorted((r["view"], r["view_by"]) for r in told if r["type"] == VIEW) == sorted(views)
    assert (outcome.violations, outcome.views) == (len(found), len(views))
    assert outcome.open == set(), "all views are over"
