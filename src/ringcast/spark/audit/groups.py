"""The one pass over all messages: a few sums for each member, view and sender.

A group of deliveries is as it should be when its runs tile a range of numbers, in step with the
member's own count. That shows in figures that don't care how the runs are cut, and that a hash
aggregation keeps in place, without a sort and without a second look:

    min and max of seqno - pos   equal; a gap raises one, a repetition lowers one, a swap does both
    min of pos                   0, else rows are lost at the head
    messages                     last - first + 1, else rows are lost inside
    chain                        hash(last + 1) - hash(first)

The chain is the sum of hash(seqno + count) - hash(seqno) over the runs. Where one run ends and
another begins the two cancel out, so what is left are the ends of the whole, if and only if every
number in between is covered once. It catches a lost row and a doubled one that make up for
each other in everything else. Sums of numbers and of their squares do the same, at a higher cost
and with a bound on the numbers; XOR of hashes does not, as two equal rows vanish from it.

Only the groups where one of these fails are looked at row by row.

The order among the messages of all senders shows in a second chain, `places`: the sum of
hash(seqno + count, seqno - place) - hash(seqno, seqno - place). Cuts cancel out in it as well, so
that members with the same places have the same sum.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.audit.row_rules import with_problem
from ringcast.trace.schema import CONTROL_KINDS, DELIVERED, MESSAGE_KINDS, SENT, SKIPPED

VIEW = ["view", "view_by"]
GROUP = ["member", *VIEW, "sender"]

HASH_BITS = (1 << 31) - 1
"""Half a hash: sums of these stay within 64 bits for two billion rows."""


def groups(trace: DataFrame, skew_us: int = 0) -> DataFrame:
    """One row for each member, view and sender, for what was sent and for what was delivered.

    `tile` says that the group is as it should be; `digest` is null where any row has none.
    `problem` is the cause why the rows of a group can't be used, and nearly always null.
    `early_first` and `early_last` bound the deliveries that were stamped before their sending by
    `skew_us` or more; `latency_min` is the shortest time that a delivery took. `places` is null
    where no row has a place.
    """
    # A position that is not there counts as zero, and is found out by the neighbours.
    first, count = F.col("seqno"), F.col("count").cast("long")
    pos = F.when(F.col("kind") != SENT, F.coalesce("pos", F.lit(0)))
    after, shift = first + count, first - pos
    skipped, delivered = F.col("kind") == SKIPPED, F.col("kind") == DELIVERED
    to_other = delivered & (F.col("member") != F.col("sender"))
    latency = F.when(to_other, F.col("at") - F.col("sent_at"))
    early = latency < -skew_us
    behind = F.when(delivered, first - F.col("place"))
    others = F.coalesce(F.col("kind").isin(*CONTROL_KINDS), F.lit(False))
    return (
        with_problem(trace.where(~others), *MESSAGE_KINDS)
        .groupBy(*GROUP, (F.col("kind") == SENT).alias("sending"), "problem")
        .agg(
            F.sum(count).alias("messages"),
            F.min(first).alias("first"),
            (F.max(after) - 1).alias("last"),
            F.min(shift).alias("shift_min"),
            F.max(shift).alias("shift_max"),
            F.min(pos).alias("pos_min"),
            F.sum(_hash(after) - _hash(first)).alias("chain"),
            F.sum("digest").alias("digest"),
            F.count_if(F.col("digest").isNull()).alias("undigested"),
            F.min(F.when(skipped, first)).alias("skipped_first"),
            (F.max(F.when(skipped, after)) - 1).alias("skipped_last"),
            F.sum(F.coalesce("nbytes", F.lit(0))).alias("nbytes"),
            F.min(latency).alias("latency_min"),
            F.min(F.when(early, first)).alias("early_first"),
            (F.max(F.when(early, after)) - 1).alias("early_last"),
            F.sum(F.when(behind.isNotNull(), _hash(after, behind) - _hash(first, behind))).alias(
                "places"
            ),
        )
        .select(
            *GROUP,
            "sending",
            "first",
            "last",
            _is_tile().alias("tile"),
            F.when(F.col("undigested") == 0, F.col("digest")).alias("digest"),
            "skipped_first",
            "skipped_last",
            *("problem", "nbytes", "latency_min", "early_first", "early_last", "places"),
        )
    )


def _is_tile() -> Column:
    """Tell whether the runs of a group tile a range, in step with the count if there is one."""
    first, last = F.col("first"), F.col("last")
    return (
        (F.coalesce(F.col("shift_max") - F.col("shift_min"), F.lit(0)) == 0)
        & (F.coalesce("pos_min", F.lit(0)) == 0)
        & (F.col("messages") == last - first + 1)
        & (F.col("chain") == _hash(last + 1) - _hash(first))
    )


def _hash(*numbers: Column) -> Column:
    return F.xxhash64(*numbers).bitwiseAND(F.lit(HASH_BITS))
