"""Early purges: deliveries after their sender had forgotten the message.

The one check that needs a second scan of the deliveries. Each is looked up in a table of the
purges, cut into bins of message numbers so that the lookup is a hash join; a bin holds about one
purge.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ringcast.spark.audit.groups import GROUP, VIEW
from ringcast.trace.schema import DELIVERED, PURGED

SOURCE = [*VIEW, "sender"]

BROADCAST_ROWS_MAX = 500_000
"""A larger table of purges is joined by a shuffle."""


def early_deliveries(
    trace: DataFrame, extents: DataFrame, *, purges: int, stride: float, skew_us: int
) -> DataFrame:
    """Groups with deliveries after a purge, and the first and last message of these.

    `extents` has each sender's first and last message of each view; `purges` and `stride` say how
    many purges there are, and how many messages they forget at a time.
    """
    bits = max(0, int(stride).bit_length() - 1)
    table = _by_bin(forgotten(trace, extents), bits)
    table = F.broadcast(table) if purges <= BROADCAST_ROWS_MAX else table.hint("shuffle_hash")
    same = [F.col(name) == F.col(f"purged_{name}") for name in SOURCE]
    late = (
        trace.where(F.col("kind") == DELIVERED)
        .select(*GROUP, "seqno", "count", "at", _key(F.shiftright("seqno", bits)))
        .join(table, "key")
        .where(F.col("seqno").between(F.col("first"), F.col("low")))
        .where(F.col("at") > F.col("forgotten_at") + skew_us)
        .where(same[0] & same[1] & same[2])
    )
    last = F.max(F.col("seqno") + F.col("count") - 1).alias("last")
    return late.groupBy(*GROUP).agg(F.min("seqno").alias("first"), last)


def _by_bin(ranges: DataFrame, bits: int) -> DataFrame:
    bins = F.sequence(F.shiftright("first", bits), F.shiftright("low", bits))
    cut = ranges.withColumn("bin", F.explode(bins)).withColumn("key", _key(F.col("bin")))
    return cut.drop("bin").withColumnsRenamed({name: f"purged_{name}" for name in SOURCE})


def _key(bin_number: Column) -> Column:
    """One number for view, sender and bin: a join on it takes half the time of one on all four."""
    return F.xxhash64(*SOURCE, bin_number).alias("key")


def forgotten(trace: DataFrame, extents: DataFrame) -> DataFrame:
    """What each sender forgot in each view, as ranges that touch, and when.

    A purge up to `low` forgets all messages before as well, so a range has the earliest time of
    any purge that covers it. It ends with the last message that a member delivered: a purge of what
    was never sent would otherwise fill more bins than there is room for.
    """
    purged = trace.where((F.col("kind") == PURGED) & F.col("low").isNotNull())
    rows = purged.select(*VIEW, F.col("member").alias("sender"), "low", "at")
    by_low = Window.partitionBy(*SOURCE).orderBy("low", "at")
    onward = by_low.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    first = F.greatest(F.lag("low").over(by_low) + 1, "begin")
    return (
        rows.join(F.broadcast(extents), SOURCE)
        .withColumn("first", first)
        .withColumn("forgotten_at", F.min("at").over(onward))
        .withColumn("low", F.least("low", "finish"))
        .where(F.col("first") <= F.col("low"))
        .drop("at", "begin", "finish")
    )
