"""The few rows that are not about messages: views, ends, and the marks of windows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.audit.groups import GROUP
from ringcast.spark.audit.row_rules import with_problem
from ringcast.trace import schema
from ringcast.trace.schema import (
    ACKED,
    AGREED,
    BLOCKED,
    CLOSED,
    COLUMNS,
    PURGED,
    REQUESTED,
    RESENT,
    WINDOW,
)

MARKS = ["low", "delivered", "high"]


def installs(trace: DataFrame) -> DataFrame:
    """The views that members installed, what majorities agreed on, and where members closed."""
    rows = trace.where(F.col("kind").isin(schema.VIEW, AGREED, CLOSED))
    return rows.select(*(name for name, _ in COLUMNS))


def marks(trace: DataFrame) -> DataFrame:
    """Of each window: the first sample with marks out of order, the fullest, and the purges.

    And, in lines with a `peer`, `acked`: up to where that one has acked. `purged` is up to where
    messages were forgotten, `purges` how often, `purged_messages` how many. `problem` is the cause
    why the rows of a line can't be used, and nearly always null.
    """
    kinds = WINDOW, PURGED, ACKED, REQUESTED, RESENT, BLOCKED
    low, delivered, high = (F.col(mark) for mark in MARKS)
    sampled = F.col("kind").isin(WINDOW, PURGED)
    wrong = sampled & ~((low <= delivered) & (delivered <= high))
    full = F.struct((low - high).alias("room"), "at", *MARKS)
    purged = F.col("kind") == PURGED
    peer = F.when(F.col("kind") == ACKED, F.col("peer")).alias("peer")
    return (
        with_problem(trace.where(F.col("kind").isin(*kinds)), *kinds)
        .groupBy(*GROUP, peer, "problem")
        .agg(
            F.max(F.when(F.col("kind") == ACKED, F.col("seqno"))).alias("acked"),
            F.min(F.when(wrong, F.struct("at", *MARKS))).alias("wrong"),
            F.min(F.when(sampled, full)).alias("full"),
            F.max(F.when(purged, low)).alias("purged"),
            F.count_if(purged).alias("purges"),
            F.sum(F.when(purged, F.col("count"))).alias("purged_messages"),
        )
    )
