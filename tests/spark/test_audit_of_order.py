"""The audit on Spark and total order: it finds what the plain checks find, and reads old traces."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast import presets
from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.schema import LATER, Row
from ringcast.trace.table import read_rows, write_rows
from ringcast.trace.violations import Violation
from tests.spark.test_audit import as_stored
from tests.unit.trace.simulations import ordered_history, reordered

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

RULES = rules_of(presets.lan().with_total_order())._asdict()


def found_by_spark(spark: SparkSession, place: Path, rows: list[Row]) -> list[Violation]:
    place.mkdir()
    write_rows(place / "a.parquet", rows)
    return rs.audit(rs.read_trace(spark, place), **RULES).found


def test_both_find_another_order_and_tell_it_alike(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(3):
        told, rows = reordered(ordered_history(seed % 2), random.Random(seed))
        expected = [as_stored(violation) for violation in check(rows, **RULES)]
        found = found_by_spark(spark, tmp_path / str(seed), rows)
        assert found == expected
        assert as_stored(told) in found


def test_a_group_with_total_order_is_clean_and_one_without_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert found_by_spark(spark, tmp_path / "with", list(ordered_history(0))) == []
    rows = list(ordered_history(1, ordered=False))
    found = found_by_spark(spark, tmp_path / "without", rows)
    assert found == [as_stored(violation) for violation in check(rows, **RULES)]
    assert {violation.guarantee for violation in found} == {"total-order"}
    report = rs.audit(rs.read_trace(spark, tmp_path / "without"))
    assert report.verdict == "clean", "without the promise nothing is owed"


def test_cuts_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    rows = [piece for row in ordered_history(0) for piece in _cut(row, random.Random(5))]
    assert found_by_spark(spark, tmp_path / "cut", rows) == []
    assert check(rows, **RULES) == []


def _cut(row: Row, rng: random.Random) -> list[Row]:
    """A row as two, at times."""
    if row.kind != "delivered" or row.count < 2 or rng.random() < 0.5:
        return [row._replace(digest=None)]
    first = rng.randint(1, row.count - 1)
    rest = row._replace(
        seqno=(row.seqno or 0) + first,
        pos=(row.pos or 0) + first,
        place=None if row.place is None else row.place + first,
        count=row.count - first,
        digest=None,
    )
    return [row._replace(count=first, digest=None), rest]


def test_traces_of_earlier_versions_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", list(ordered_history(0)))
    table = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(table.drop_columns(list(LATER)), tmp_path / "a.parquet")
    assert all(row.place is None for row in read_rows(tmp_path))
    assert check(read_rows(tmp_path), **RULES) == []
    assert rs.audit(rs.read_trace(spark, tmp_path), **RULES).verdict == "clean"
    assert rs.audit(spark.read.parquet(str(tmp_path)), **RULES).verdict == "clean"
