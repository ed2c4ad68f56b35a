"""The second look: the rows of the groups that the one pass found wanting, one by one.

It follows `ringcast.trace.walk`, which explains it, in window functions. A window sorts, and that
is why only suspects come here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ringcast.spark.audit.groups import GROUP
from ringcast.trace.schema import DELIVERED, SENT, SKIPPED

FINDINGS_MAX = 20
"""How many findings of one kind are told of a group: a million gaps say no more than twenty."""

ORDER_OF_COUNT = ["pos", "seqno", "last", "at"]
ORDER_OF_NUMBER = ["seqno", "pos", "last", "at"]


def walk_deliveries(trace: DataFrame, suspects: DataFrame) -> DataFrame:
    """The rows of suspect groups, with what the walks need to judge each of them.

    A suspect comes with `own`, the range that the sender sent in the view (or null), `ranges`,
    all its ranges by view, and `complete`, whether its rows of the view are all there.
    """
    rows = _runs(trace.where(F.col("kind").isin(DELIVERED, SKIPPED)), suspects)
    return (
        rows.withColumn("foreign", _is_foreign())
        .withColumn("reached_pos", F.max("end").over(_before(ORDER_OF_COUNT)))
        .withColumn("lost", _lost())
        .withColumn("reached", F.max("last").over(_before(ORDER_OF_NUMBER, "foreign")))
        .withColumn("repeated", F.coalesce(F.col("seqno") <= F.col("reached"), F.lit(False)))
        .withColumn("before", F.lag("seqno").over(_sorted(ORDER_OF_COUNT, "foreign")))
        .withColumn("reached_end", F.max("end").over(_before(ORDER_OF_COUNT, "foreign")))
    )


def extents(walked: DataFrame) -> DataFrame:
    """From where to where the deliveries of each walked group reach."""
    return (
        walked.where(~F.col("foreign"))
        .groupBy(*GROUP)
        .agg(F.min(F.col("seqno") - F.col("lost")).alias("first"), F.max("last").alias("last"))
    )


def findings(walked: DataFrame) -> DataFrame:
    """What is wrong with the walked groups: cause, group, first and last message."""
    kept = walked.where(~F.col("foreign"))
    late = ~F.col("repeated") & (F.col("seqno") < F.col("before"))
    misplaced = ~F.col("repeated") & ~F.coalesce(late, F.lit(False))
    misplaced &= F.col("pos") < F.col("reached_end")
    hole = F.col("seqno") - F.col("reached") - 1
    single = _told(
        kept,
        _finding(
            "unrecorded", F.col("lost") > 0, F.col("seqno") - F.col("lost"), F.col("seqno") - 1
        ),
        _finding("gap", hole > F.col("lost"), F.col("reached") + 1, F.col("seqno") - 1),
        _finding("repeated", F.col("repeated"), F.col("seqno"), F.least("last", "reached")),
        _finding("late", late, F.col("seqno"), F.col("last")),
        _finding("misplaced", misplaced, F.col("seqno"), F.col("last")),
    )
    return single.unionByName(_other_view(walked)).unionByName(_unsent(kept))


def sending_findings(trace: DataFrame, suspects: DataFrame) -> DataFrame:
    """Holes and repetitions in the numbers that senders gave out."""
    rows = _runs(trace.where(F.col("kind") == SENT), suspects)
    rows = rows.withColumn("reached", F.max("last").over(_before(["seqno", "last"])))
    seqno, reached = F.col("seqno"), F.col("reached")
    return _told(
        rows,
        _finding("unrecorded-sending", seqno > reached + 1, reached + 1, seqno - 1),
        _finding("numbered-twice", seqno <= reached, seqno, F.least("last", "reached")),
    )


def cut_short(findings: DataFrame) -> DataFrame:
    """At most FINDINGS_MAX findings of a cause in a group, with the `total` of them all."""
    alike = Window.partitionBy("cause", *GROUP)
    ranked = findings.withColumn("rank", F.row_number().over(alike.orderBy("first", "last")))
    counted = ranked.withColumn("total", F.count("*").over(alike))
    return counted.where(F.col("rank") <= FINDINGS_MAX)


def _runs(rows: DataFrame, suspects: DataFrame) -> DataFrame:
    pos = F.coalesce("pos", F.lit(0))
    runs = rows.select(
        *GROUP,
        "seqno",
        (F.col("seqno") + F.col("count") - 1).alias("last"),
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


def _other_view(walked: DataFrame) -> DataFrame:
    foreign = walked.where(F.col("foreign")).groupBy(*GROUP)
    reach = foreign.agg(F.min("seqno").alias("first"), F.max("last").alias("last"))
    return reach.select(F.lit("other-view").alias("cause"), *GROUP, "first", "last")


def _unsent(kept: DataFrame) -> DataFrame:
    """Runs, or parts of them, that a sender whose rows are complete did not send in the view."""
    seqno, last, own = F.col("seqno"), F.col("last"), F.col("own")
    below, above = seqno < own["first"], last > own["last"]
    first = F.when(own.isNull() | below, seqno).otherwise(F.greatest(seqno, own["last"] + 1))
    final = F.when(own.isNull() | above, last).otherwise(F.least(last, own["first"] - 1))
    parts = kept.where(F.col("complete") & (own.isNull() | below | above))
    reach = parts.groupBy(*GROUP).agg(F.min(first).alias("first"), F.max(final).alias("last"))
    return reach.select(F.lit("unsent").alias("cause"), *GROUP, "first", "last")


def _told(rows: DataFrame, *finding: Column) -> DataFrame:
    """One row for each finding that holds."""
    found = rows.select(*GROUP, F.explode(F.array_compact(F.array(*finding))).alias("found"))
    return found.select("found.cause", *GROUP, "found.first", "found.last")


def _finding(cause: str, holds: Column, first: Column, last: Column) -> Column:
    named = F.struct(F.lit(cause).alias("cause"), first.alias("first"), last.alias("last"))
    return F.when(holds, named)


def _within(first: Column, last: Column) -> Column:
    return (F.col("seqno") >= first) & (F.col("seqno") <= last)


def _sorted(order: list[str], *apart: str) -> WindowSpec:
    return Window.partitionBy(*GROUP, *apart).orderBy(*order)


def _before(order: list[str], *apart: str) -> WindowSpec:
    return _sorted(order, *apart).rowsBetween(Window.unboundedPreceding, -1)
