"""The second look: the rows of the groups that the one pass found wanting, one by one.

It follows `ringcast.trace.judging.walk`, which explains it, in window functions. A window sorts,
and that is why only suspects come here. All of them sort within groups, so that rows are moved
once.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ringcast.spark.audit.groups import GROUP
from ringcast.trace.schema import DELIVERED, SENT, SKIPPED

FINDINGS_MAX = 20
"""How many findings of one kind are told of a group: a million gaps say no more than twenty."""

EXTENT = "extent"
"""No cause, but from where to where the deliveries of a group reach; told with the findings."""

MERGED = (EXTENT, "other-view", "unsent")
"""What is told once of a group, over all its rows: they have one reason."""

ORDER_OF_COUNT = ["pos", "seqno", "last", "at"]
ORDER_OF_NUMBER = ["seqno", "pos", "last", "at"]


def walk_deliveries(trace: DataFrame, suspects: DataFrame) -> DataFrame:
    """What is wrong with suspect groups of deliveries, and how far they reach.

    A suspect comes with `own`, the range that the sender sent in the view (or null), `ranges`,
    all its ranges by view, and `complete`, whether its rows of the view are all there. Gives
    cause, group, first and last message, and how many findings of the cause the group has.
    """
    rows = (
        _runs(trace.where(F.col("kind").isin(DELIVERED, SKIPPED)), suspects)
        .withColumn("foreign", _is_foreign())
        .withColumn("reached_pos", F.max("end").over(_before(ORDER_OF_COUNT)))
        .withColumn("lost", _lost())
        .withColumn("reached", F.max("last").over(_before(ORDER_OF_NUMBER, "foreign")))
        .withColumn("repeated", F.coalesce(F.col("seqno") <= F.col("reached"), F.lit(False)))
        .withColumn("before", F.lag("seqno").over(_sorted(ORDER_OF_COUNT, "foreign")))
        .withColumn("reached_end", F.max("end").over(_before(ORDER_OF_COUNT, "foreign")))
    )
    return _told(rows, *_delivery_findings())


def walk_sendings(trace: DataFrame, suspects: DataFrame) -> DataFrame:
    """Holes and repetitions in the numbers that senders gave out."""
    rows = _runs(trace.where(F.col("kind") == SENT), suspects)
    rows = rows.withColumn("reached", F.max("last").over(_before(["seqno", "last"])))
    seqno, reached = F.col("seqno"), F.col("reached")
    return _told(
        rows,
        _finding("unrecorded-sending", seqno > reached + 1, reached + 1, seqno - 1),
        _finding("numbered-twice", seqno <= reached, seqno, F.least("last", "reached")),
    )


def _delivery_findings() -> list[Column]:
    seqno, last, lost, reached = (F.col(n) for n in ("seqno", "last", "lost", "reached"))
    kept, repeated = ~F.col("foreign"), F.col("repeated")
    late = F.coalesce(seqno < F.col("before"), F.lit(False))
    shared = F.col("pos") < F.col("reached_end")
    return [
        _finding(EXTENT, kept, seqno - lost, last),
        _finding("other-view", ~kept, seqno, last),
        _unsent(kept),
        _finding("unrecorded", kept & (lost > 0), seqno - lost, seqno - 1),
        _finding("gap", kept & (seqno - reached - 1 > lost), reached + 1, seqno - 1),
        _finding("repeated", kept & repeated, seqno, F.least("last", "reached")),
        _finding("late", kept & ~repeated & late, seqno, last),
        _finding("misplaced", kept & ~repeated & ~late & shared, seqno, last),
    ]


def _runs(rows: DataFrame, suspects: DataFrame) -> DataFrame:
    seqno, pos = (F.coalesce(name, F.lit(0)) for name in ("seqno", "pos"))
    runs = rows.select(
        *GROUP,
        seqno.alias("seqno"),
        (seqno + F.col("count") - 1).alias("last"),
        pos.alias("pos"),
        (pos + F.col("count")).alias("end"),
        "at",
    )
    return runs.join(F.broadcast(suspects), GROUP)


def _is_foreign() -> Column:
    """Tell whether a run was sent in another view; by its first message, as runs don't span any."""
    here = F.struct("view", "view_by")
    elsewhere = F.exists("ranges", lambda r: (r["in"] != here) & _within(r["first"], r["last"]))
    at_home = F.coalesce(_within(F.col("own.first"), F.col("own.last")), F.lit(False))
    return ~at_home & F.coalesce(elsewhere, F.lit(False))


def _lost() -> Column:
    missing = F.col("pos") - F.coalesce("reached_pos", F.lit(0))
    return F.when(F.col("foreign"), 0).otherwise(F.greatest(missing, F.lit(0)))


def _unsent(kept: Column) -> Column:
    """The part of a run that its sender, whose rows are complete, did not send in the view."""
    seqno, last, own = F.col("seqno"), F.col("last"), F.col("own")
    below, above = seqno < own["first"], last > own["last"]
    first = F.when(own.isNull() | below, seqno).otherwise(F.greatest(seqno, own["last"] + 1))
    final = F.when(own.isNull() | above, last).otherwise(F.least(last, own["first"] - 1))
    outside = kept & F.col("complete") & (own.isNull() | below | above)
    return _finding("unsent", outside, first, final)


def _finding(cause: str, holds: Column, first: Column, last: Column) -> Column:
    named = F.struct(F.lit(cause).alias("cause"), first.alias("first"), last.alias("last"))
    return F.when(holds, named)


def _told(rows: DataFrame, *finding: Column) -> DataFrame:
    """The findings that hold, at most FINDINGS_MAX of a cause in a group, with their `total`."""
    found = rows.select(*GROUP, F.explode(F.array_compact(F.array(*finding))).alias("found"))
    alike = Window.partitionBy(*GROUP, "cause")
    merged = F.col("cause").isin(*MERGED)
    first, last = F.min("first").over(alike), F.max("last").over(alike)
    ranked = (
        found.select("found.cause", *GROUP, "found.first", "found.last")
        .withColumn("rank", F.row_number().over(alike.orderBy("first", "last")))
        .withColumn("total", F.when(merged, 1).otherwise(F.count("*").over(alike)))
        .withColumns({"whole_first": first, "whole_last": last})
    )
    return ranked.where(F.col("rank") <= F.when(merged, 1).otherwise(FINDINGS_MAX)).select(
        *("cause", *GROUP, "rank", "total"),
        F.when(merged, F.col("whole_first")).otherwise(F.col("first")).alias("first"),
        F.when(merged, F.col("whole_last")).otherwise(F.col("last")).alias("last"),
    )


def _within(first: Column, last: Column) -> Column:
    return (F.col("seqno") >= first) & (F.col("seqno") <= last)


def _sorted(order: list[str], *apart: str) -> WindowSpec:
    return Window.partitionBy(*GROUP, *apart).orderBy(*order)


def _before(order: list[str], *apart: str) -> WindowSpec:
    return _sorted(order, *apart).rowsBetween(Window.unboundedPreceding, -1)
