"""The figures of a run as tables of Spark: nothing here grows with members or messages on the
driver.

Latencies are counted in the buckets of `ringcast.trace.latencies`, and percentiles are read off the
running sums of these counts. A sketch or `percentile_approx` costs more, and knows no weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ringcast.trace.latencies import BUCKETS_TO_A_DOUBLING, QUANTILES
from ringcast.trace.schema import BLOCKED, DELIVERED, PURGED, REQUESTED, RESENT, SENT, SKIPPED
from ringcast.trace.schema import WINDOW as SAMPLE

EARLY = -1
"""The bucket of messages that were delivered before they were sent."""

OTHER_KINDS = (SENT, SKIPPED, REQUESTED, RESENT, BLOCKED, SAMPLE, PURGED)

PEERS_MAX = 10_000
"""Pairs of members that waited for each other or repaired for each other, of a large group: those
with the most of it."""

LATENCIES = [f"latency_{name}" for name in QUANTILES]


@dataclass(frozen=True)
class Clock:
    """The intervals that a run is divided into."""

    start: int
    end: int
    width: int

    @property
    def seconds(self) -> float:
        """The length of an interval."""
        return self.width / 1_000_000

    def interval(self) -> Column:
        """The beginning of the interval of a row."""
        return F.expr(f"{self.start} + (at - {self.start}) div {self.width} * {self.width}")


def figure_table(trace: DataFrame, clock: Clock, shown: Sequence[int] | None = None) -> DataFrame:
    """All figures but those of views: figure, member, peer, at, value.

    With `shown`, the figures that a page needs of a large group: of the whole run, of each member,
    of these members over time and to each other, and of each member its slowest sender.
    """
    rows = trace.where(F.col("kind") == DELIVERED)
    # Two scans: the table of members, senders and intervals together would be too large.
    by_sender = _with_latencies(_counted(rows, "sender"), ["member", "peer"], [])
    timed = rows.withColumn("interval", clock.interval())
    by_time = _with_latencies(_counted(timed, "interval"), ["member", "peer"], ["peer"])
    by_time = by_time.withColumnsRenamed({"peer": "at"}).withColumn("peer", _null("long"))
    by_sender = by_sender.withColumn("at", _null("long"))
    others = _others(trace, clock)
    if shown is not None:
        slowest = _slowest(by_sender)
        by_sender = by_sender.where("whole" + _or_both(shown, "member", "peer"))
        by_time = by_time.where("whole" + _or_both(shown, "member"))
        others = _of_large_group(others, shown)
        tables = [slowest, _deliveries(by_sender, clock), _deliveries(by_time, clock)]
    else:
        tables = [_deliveries(by_sender, clock), _deliveries(by_time, clock)]
    return reduce(DataFrame.union, [*tables, _other_figures(others, clock)])


def _or_both(shown: Sequence[int], *columns: str) -> str:
    among = ", ".join(map(str, shown))
    return " or " + " and ".join(f"{column} in ({among})" for column in columns)


# --- deliveries -----------------------------------------------------------------------------------


def _counted(rows: DataFrame, key: str) -> DataFrame:
    """How many messages to others had which latency, by member and one thing more, the `peer`.

    The bucket is null where a member delivered its own messages, or they have no time of sending.
    """
    latency = F.col("at") - F.col("sent_at")
    known = F.floor(F.log2(F.greatest(latency, F.lit(1))) * BUCKETS_TO_A_DOUBLING)
    to_others = F.col("member") != F.col("sender")
    bucket = F.when(to_others & (latency < 0), EARLY).when(to_others & (latency >= 0), known)
    return rows.groupBy("member", F.col(key).alias("peer"), bucket.alias("bucket")).agg(
        F.sum("count").alias("messages"), F.sum("nbytes").alias("bytes")
    )


def _with_latencies(counted: DataFrame, keys: list[str], whole: list[str]) -> DataFrame:
    """Percentiles, messages and bytes by `keys`, and by `whole` alone over all members."""
    levels = [[*keys, "bucket"], [*whole, "bucket"]]
    sums = counted.groupingSets(levels, *keys, "bucket").agg(
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        (F.grouping("member") == 1).alias("whole"),
    )
    place = Window.partitionBy("whole", *keys)
    known = F.when(F.col("bucket") >= 0, F.col("messages"))
    upto = F.sum(known).over(place.orderBy("bucket"))
    ranked = sums.withColumns({"upto": upto, "known": F.sum(known).over(place)})
    early = F.when(F.col("bucket") == EARLY, F.col("messages"))
    return ranked.groupBy("whole", *keys).agg(
        *(_percentile(share).alias(f"latency_{name}") for name, share in QUANTILES.items()),
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.sum(early).alias("early"),
    )


def _percentile(share: float) -> Column:
    """The middle of the first bucket up to which there are enough messages."""
    enough = (F.col("bucket") >= 0) & (F.col("upto") >= F.col("known") * share)
    bucket = F.min(F.when(enough, F.col("bucket")))
    return F.pow(F.lit(2.0), (bucket + 0.5) / BUCKETS_TO_A_DOUBLING)


def _slowest(by_sender: DataFrame) -> DataFrame:
    """Of each member and percentile the sender with the largest."""
    pairs = by_sender.where("not whole")
    most = [F.max(F.struct(name, "peer")).alias(name) for name in LATENCIES]
    return _figures(
        pairs.groupBy("member").agg(*most).withColumn("at", _null("long")),
        {name: F.col(f"{name}.{name}") for name in LATENCIES},
        {name: F.col(f"{name}.peer") for name in LATENCIES},
    )


def _deliveries(table: DataFrame, clock: Clock) -> DataFrame:
    values = {name: F.col(name) for name in LATENCIES}
    values |= _rates("delivered", clock)
    return _figures(table, values | {"delivered_before_sent_messages": F.col("early")})


# --- everything else ------------------------------------------------------------------------------


def _others(trace: DataFrame, clock: Clock) -> DataFrame:
    """Sums of what was sent, asked for, sent again, given up, stalled and held in windows.

    `level` is `peer` for those by member and peer, `time` by member and interval, `all` by
    interval, `member` by member, and `run` for the whole run.
    """
    held = F.col("high") - F.col("low")
    cells = (
        trace.where(F.col("kind").isin(*OTHER_KINDS))
        .replace(PURGED, SAMPLE, ["kind"])
        .groupBy("kind", "member", "peer", clock.interval().alias("at"))
        .agg(
            F.sum("count").alias("messages"),
            F.sum("nbytes").alias("bytes"),
            F.sum(F.col("at") - F.col("sent_at")).alias("duration"),
            F.count("*").alias("samples"),
            F.sum(held).alias("held"),
            F.max(held).alias("held_max"),
        )
    )
    levels = [["member", "peer"], ["member", "at"], ["at"], ["member"], []]
    sums = cells.groupingSets(
        [["kind", *level] for level in levels], "kind", "member", "peer", "at"
    ).agg(
        *(F.sum(name).alias(name) for name in ("messages", "bytes", "duration", "samples", "held")),
        F.max("held_max").alias("held_max"),
        F.grouping_id().alias("level"),
    )
    # A bit for each key that is summed over: kind, member, peer, at.
    names = {0b001: "peer", 0b010: "time", 0b110: "all", 0b011: "member", 0b111: "run"}
    level = F.create_map(*(F.lit(word) for pair in names.items() for word in pair))
    return sums.withColumn("level", level[F.col("level").cast("int")])


def _of_large_group(others: DataFrame, shown: Sequence[int]) -> DataFrame:
    """Some members over time, and the pairs of members with the most of something."""
    most = Window.partitionBy("level", "kind").orderBy(
        F.coalesce("duration", "messages", F.lit(0)).desc()
    )
    rank = F.when(F.col("level") == "peer", F.row_number().over(most)).otherwise(0)
    ranked = others.where("level <> 'time'" + _or_both(shown, "member"))
    return ranked.withColumn("rank", rank).where(F.col("rank") <= PEERS_MAX).drop("rank")


def _other_figures(others: DataFrame, clock: Clock) -> DataFrame:
    again = F.sum(F.when(F.col("kind") == RESENT, F.col("messages")))
    same = Window.partitionBy("level", "member")
    others = others.withColumn(
        "ratio",
        F.when(
            F.col("level").isin("member", "run") & (F.col("kind") == SENT),
            F.coalesce(again.over(same), F.lit(0)) / F.nullif(F.col("messages"), F.lit(0)),
        ),
    )
    told = F.col("level") != "member"  # These are there for the ratios.
    kind = F.col("kind")
    values = {
        "stalled_seconds": F.when(
            told & (kind == BLOCKED), F.coalesce("duration", F.lit(0)) / 1_000_000
        ),
        "window_mean": F.when(
            told & (kind == SAMPLE), F.coalesce("held", F.lit(0)) / F.col("samples")
        ),
        "window_max": F.when(told & (kind == SAMPLE), F.coalesce("held_max", F.lit(0))),
        "retransmission_ratio": F.col("ratio"),
    }
    for name in (SENT, SKIPPED, REQUESTED, RESENT):
        rates = _rates(name, clock)
        values |= {figure: F.when(told & (kind == name), rate) for figure, rate in rates.items()}
    return _figures(others, values)


def _rates(name: str, clock: Clock) -> dict[str, Column]:
    """Messages and bytes: a second within an interval, altogether over the whole run."""
    timed = F.col("at").isNotNull()
    rates: dict[str, Column] = {}
    for what in ("messages", "bytes"):
        rates[f"{name}_{what}"] = F.when(~timed, F.col(what))
        rates[f"{name}_{what}_per_second"] = F.when(timed, F.col(what) / clock.seconds)
    return rates


def _figures(
    table: DataFrame, values: Mapping[str, Column], peers: Mapping[str, Column] | None = None
) -> DataFrame:
    """A row for each value that is there."""
    structs = [
        F.struct(
            F.lit(name).alias("figure"),
            (peers[name] if peers else F.col("peer")).cast("long").alias("peer"),
            value.cast("double").alias("value"),
        )
        for name, value in values.items()
    ]
    rows = table.select("member", "at", F.explode(F.array(*structs)).alias("of"))
    told = rows.where(F.col("of.value").isNotNull())
    return told.select("of.figure", "member", "of.peer", "at", "of.value")


def _null(kind: str) -> Column:
    return F.lit(None).cast(kind)
