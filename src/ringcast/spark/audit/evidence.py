"""Fetches the rows that show a violation: a few of its member, around the messages in question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ringcast.spark.audit import tables
from ringcast.trace.judging.evidence import ROWS_MAX, about_marks, kinds_of, witness
from ringcast.trace.schema import PURGED, VIEW, WINDOW
from ringcast.trace.violations import Violation

SHOWN: dict[str, pa.DataType] = {
    "member": pa.int64(),
    "kind": pa.string(),
    "seqno": pa.int64(),
    "count": pa.int32(),
    "pos": pa.int64(),
    "place": pa.int64(),
    "at": pa.int64(),
    "low": pa.int64(),
    "delivered": pa.int64(),
    "high": pa.int64(),
    "members": pa.list_(pa.int64()),
}
"""The columns of a row that tell something."""

WANTED: dict[str, pa.DataType] = {
    "number": pa.int64(),
    "kind": pa.string(),
    **tables.longs("turn", "member", "view", "view_by", "whose", "from", "to"),
    "about_marks": pa.bool_(),
}


def evidence(trace: DataFrame, violations: Sequence[Violation]) -> dict[int, list[dict[str, Any]]]:
    """The rows that show each violation, by its number, picked as `ringcast.trace.judging.evidence`
    picks them."""
    where = ["kind", "member", "view", "view_by"]
    order = F.when(F.col("kind").isin(PURGED, WINDOW, VIEW), 0).otherwise(F.col("seqno"))
    alike = Window.partitionBy("number", "kind").orderBy(order, "at")
    found = (
        trace.join(F.broadcast(_wanted(trace.sparkSession, violations)), where)
        .where(F.col("sender").eqNullSafe(F.col("whose")) & _touches())
        .withColumn("rank", F.row_number().over(alike))
        .where(F.col("rank") <= ROWS_MAX)
        .select("number", "turn", "rank", *SHOWN)
    )
    shown = defaultdict[int, list[dict[str, Any]]](list)
    for row in sorted(tables.rows(found), key=lambda row: (row["turn"], row["rank"])):
        shown[row["number"]].append({name: row[name] for name in SHOWN})
    return shown


def _wanted(spark: SparkSession, violations: Sequence[Violation]) -> DataFrame:
    wanted = (
        (
            *(number, kind, turn, witness(v, kind), v.view, v.view_by, v.sender),
            *(v.first, v.last, about_marks(v.cause)),
        )
        for number, v in enumerate(violations)
        for turn, kind in enumerate(kinds_of(v.cause))
    )
    return tables.local(spark, WANTED, wanted)


def _touches() -> Column:
    first, last, seqno = F.col("from"), F.col("to"), F.col("seqno")
    exactly = (F.col("low") + 1 == first) & (F.col("high") == last)
    return (
        F.when(first.isNull(), True)
        .when(F.col("kind").isin(WINDOW, PURGED) & F.col("about_marks"), exactly)
        .when(F.col("kind") == PURGED, F.col("low") >= first)
        .otherwise((seqno <= last + 1) & (seqno + F.col("count") >= first))
    )
