"""The few rows that are not about messages: views, ends, and the marks of windows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.audit.groups import GROUP, VIEW
from ringcast.trace import schema
from ringcast.trace.schema import ACKED, CLOSED, PURGED, WINDOW

MARKS = ["low", "delivered", "high"]


def installs(trace: DataFrame) -> DataFrame:
    """The views that members installed, and where they closed."""
    rows = trace.where(F.col("kind").isin(schema.VIEW, CLOSED))
    return rows.select("kind", "member", *VIEW, "at", "members", "names")


def marks(trace: DataFrame) -> DataFrame:
    """Of each window: the first sample with marks out of order, the fullest, and the purges.

    And, in lines with a `peer`, `acked`: up to where that one has acked. `purged` is up to where
    messages were forgotten, `purges` how often, `purged_messages` how many.
    """
    low, delivered, high = (F.col(mark) for mark in MARKS)
    sampled = low.isNotNull() & delivered.isNotNull() & high.isNotNull()
    wrong = sampled & ~((low <= delivered) & (delivered <= high))
    full = F.struct((low - high).alias("room"), "at", *MARKS)
    purged = (F.col("kind") == PURGED) & low.isNotNull()
    return (
        trace.where(F.col("kind").isin(WINDOW, PURGED, ACKED))
        .groupBy(*GROUP, "peer")
        .agg(
            F.max(F.when(F.col("kind") == ACKED, F.col("seqno"))).alias("acked"),
            F.min(F.when(wrong, F.struct("at", *MARKS))).alias("wrong"),
            F.min(F.when(sampled, full)).alias("full"),
            F.max(F.when(purged, low)).alias("purged"),
            F.count_if(purged).alias("purges"),
            F.sum(F.when(purged, F.col("count"))).alias("purged_messages"),
        )
    )
