"""A journal as a table of Parquet files: the same rows as from the source, read by Spark itself."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.write.compact import compact
from ringcast.spark import table
from ringcast.spark.source import SCHEMA
from tests.spark.support import fill, rows
from tests.unit.journal.support import expected

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ALL = expected(7, 1, 60) + expected(8, 1, 9)


@pytest.fixture
def overlapping(tmp_path: Path) -> Path:
    """A journal of two recorders, of which the second has what the first missed."""
    journal = tmp_path / "a [b] {c,d}"
    with (
        JournalWriter(journal, "prices", 1) as one,
        JournalWriter(journal, "prices", 2) as other,
    ):
        fill(one, 7, 1, 30)
        fill(other, 7, 21, 60)
        fill(one, 8, 1, 4)
        fill(other, 8, 1, 9)
    return journal


def test_each_message_is_there_once(source: SparkSession, overlapping: Path) -> None:
    frame = rs.journal(source, overlapping)
    assert frame.schema == SCHEMA
    assert rows(frame) == ALL
    assert rows(frame.where("sender = 8")) == expected(8, 1, 9)
    assert sum(segment.rows for segment in Journal(overlapping).segments) > len(ALL)
    by_source = source.read.format("ringcast").load(str(overlapping))
    assert sorted(frame.collect()) == sorted(by_source.collect())
    compact(overlapping)
    assert rows(rs.journal(source, overlapping)) == ALL


def test_spark_reads_only_what_a_query_needs(source: SparkSession, overlapping: Path) -> None:
    frame = rs.journal(source, overlapping).where("sender = 7").selectExpr("sum(seqno)")
    assert frame.first() == (sum(range(1, 61)),)
    plan = plan_of(frame)
    assert plan.count("ReadSchema: struct<sender:bigint,seqno:bigint>") == plan.count("ReadSchema")
    assert "EqualTo(sender,7)" in plan
    assert "Python" not in plan


def test_segments_that_cannot_match_are_left_out(
    source: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By their manifests; the log says how many are read."""
    caplog.set_level(logging.INFO, "ringcast.spark")
    journal = tmp_path / "journal"
    with JournalWriter(journal, "prices", 1) as writer:
        for sender in range(1, 11):
            times = {"sent_at": sender * 1_000_000, "delivered_at": sender * 1_000_000 + 5}
            writer.append(1, 1, sender, 1, [b"x"] * 20, **times)
            writer.seal()
    nine, ten = (datetime(1970, 1, 1, second=second, tzinfo=UTC) for second in (9, 10))
    asked: list[tuple[dict[str, Any], int, int]] = [
        ({}, 10, 200),
        ({"sender": 7}, 1, 20),
        ({"sender": [2, 3, 99], "seqno": (16, None)}, 2, 10),
        ({"group": "other"}, 0, 0),
        ({"seqno": (None, 5)}, 10, 50),
        ({"sent_at": (nine, None)}, 2, 40),
        ({"sender": {9, 10}, "sent_at": (None, nine)}, 1, 20),
        ({"delivered_at": (nine, ten)}, 1, 20),
        ({"recorder": 2}, 0, 0),
    ]
    for conditions, segments, count in asked:
        assert rs.journal(source, journal, **conditions).count() == count, conditions
        assert caplog.messages[-1] == f"reading {segments} of 10 segments in {journal}"
    for wrong in ({"price": 1}, {"sender": "ann"}, {"sent_at": 5}):
        with pytest.raises(ConfigError, match=r"a journal (cannot be|is) asked for"):
            rs.journal(source, journal, **wrong)


def test_many_segments_are_looked_at_in_few_tasks(source: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with JournalWriter(journal, "prices", 1, durable=False) as writer:
        fill(writer, 7, 1, 60, size=1)
    context = source.sparkContext
    context.setJobGroup("looking", "looks at segments")
    try:
        frame = rs.journal(source, journal)
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("looking")]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # Takes None.
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert 0 < sum(stage.numTasks for stage in stages if stage) <= table.LISTING_TASKS
    assert source.conf.get(table.LISTING) == "10000"
    assert rows(frame) == expected(7, 1, 60)


def test_an_empty_journal_has_the_columns(source: SparkSession, tmp_path: Path) -> None:
    JournalWriter(tmp_path / "journal", "prices", 1).close()
    frame = rs.journal(source, tmp_path / "journal")
    assert (frame.schema, frame.count()) == (SCHEMA, 0)


def test_what_is_no_journal_is_told(source: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such directory"):
        rs.journal(source, tmp_path / "nowhere")


def plan_of(frame: DataFrame) -> str:
    """How Spark will run a query."""
    explained = frame._jdf.queryExecution().toString()
    return str(explained).partition("== Physical Plan ==")[2]
