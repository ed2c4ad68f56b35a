"""A journal as a table of Parquet files: the same rows as from the source, read by Spark itself."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.write.compact import compact
from ringcast.spark.source import SCHEMA
from tests.spark.support import fill, rows
from tests.unit.journal.support import expected

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ALL = expected(7, 1, 60) + expected(8, 5, 5)


@pytest.fixture
def overlapping(tmp_path: Path) -> Path:
    """A journal of two recorders, of which the second has what the first missed."""
    journal = tmp_path / "a [b] {c,d}"
    with (
        JournalWriter(journal, "prices", 1) as one,
        JournalWriter(journal, "prices", 2) as other,
    ):
        fill(one, 7, 1, 30)
        fill(other, 7, 21, 50)
        fill(one, 7, 41, 60)
        fill(other, 8, 5, 5)
    return journal


def test_each_message_is_there_once(source: SparkSession, overlapping: Path) -> None:
    frame = rs.journal(source, overlapping)
    assert frame.schema == SCHEMA
    assert rows(frame) == ALL
    assert rows(frame.where("sender = 8")) == expected(8, 5, 5)
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
