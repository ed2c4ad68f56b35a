"""Measures a run: latency, throughput, repairs, stalls, windows and views, in a few scans.

Latencies are counted in the buckets of `ringcast.trace.latencies`. A sketch or `percentile_approx`
costs more, and knows no weights.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.audit import tables
from ringcast.trace.latencies import BUCKETS_TO_A_DOUBLING, quantiles
from ringcast.trace.schema import (
    BLOCKED,
    CLOSED,
    DELIVERED,
    MESSAGE_KINDS,
    PURGED,
    REQUESTED,
    RESENT,
    SENT,
    SKIPPED,
    VIEW,
    WINDOW,
    Row,
)

EARLY = -1
"""The bucket of messages that were delivered before they were sent."""

INTERVALS = 120
"""How many pieces a run is divided into, for what is shown over time."""

SUMS: list[tuple[str, Literal["sum", "max"]]] = [
    *((name, "sum") for name in ("messages", "bytes", "duration", "samples", "held")),
    ("held_max", "max"),
]

OTHER_KINDS = (SENT, SKIPPED, REQUESTED, RESENT, BLOCKED, WINDOW, PURGED)


class Figure(NamedTuple):
    """One number: what it is, whose, with regard to whom, when, and how much."""

    figure: str
    member: int | None
    """Null: of the whole run."""
    peer: int | None
    """The sender of what was delivered, the cause of a stall; null: of all."""
    at: int | None
    """The beginning of the interval, in microseconds; null: of the whole run."""
    value: float


Where = tuple[int | None, int | None, int | None]
"""Member, peer and time of a figure."""

FIGURES = {
    "figure": pa.string(),
    **tables.longs("member", "peer", "at"),
    "value": pa.float64(),
}


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
        """The number of the interval of a row."""
        return F.expr(f"(at - {self.start}) div {self.width}")

    def begin(self, interval: int | None) -> int | None:
        """When an interval begins."""
        return None if interval is None else self.start + interval * self.width


@dataclass(frozen=True)
class Measures:
    """All figures of a run."""

    clock: Clock
    figures: list[Figure]

    def of(self, name: str) -> list[Figure]:
        """The figures of one name."""
        return [figure for figure in self.figures if figure.figure == name]


def measure(trace: DataFrame, installs: Sequence[Row] = ()) -> Measures:
    """Measure a run; `installs` are its views, as members installed them."""
    clock = _clock(trace)
    figures = [*_delivered(trace, clock), *_others(trace, clock)]
    return Measures(clock, [*figures, *_ratios(figures), *_view_changes(installs)])


def _clock(trace: DataFrame) -> Clock:
    # Messages and views only: one odd time among all the other rows would spoil every plot.
    told = trace.where(F.col("kind").isin(*MESSAGE_KINDS, VIEW, CLOSED))
    ends = told.agg(F.min("at").alias("start"), F.max("at").alias("end")).first()
    start, end = (ends["start"], ends["end"]) if ends and ends["start"] is not None else (0, 1)
    return Clock(start, end, max(1, -(-(end - start + 1) // INTERVALS)))


def _delivered(trace: DataFrame, clock: Clock) -> Iterator[Figure]:
    """Latency and throughput of deliveries: by receiver and sender, by time, and of all."""
    rows = trace.where(F.col("kind") == DELIVERED)
    # Two scans: the table of members, senders and intervals together would be too large.
    by_sender = _counted(rows, "sender")
    by_time = _counted(rows.withColumn("interval", clock.interval()), "interval")
    tallies = defaultdict[Where, _Tally](_Tally)
    for row in by_sender:
        tallies[row["member"], row["sender"], None].add(row)
        tallies[None, None, None].add(row)
    for row in by_time:
        at = clock.begin(row["interval"])
        tallies[row["member"], None, at].add(row)
        tallies[None, None, at].add(row)
    for where, tally in tallies.items():
        for name, value in quantiles(tally.latencies):
            yield Figure(f"latency_{name}", *where, value)
        yield from _rates("delivered", where, tally.messages, tally.nbytes, clock)
        if tally.early:
            yield Figure("delivered_before_sent_messages", *where, tally.early)


@dataclass
class _Tally:
    """What was delivered in one place."""

    latencies: Counter[int] = field(default_factory=Counter)
    """Messages by bucket of latency; those of a member to itself are not among them."""
    messages: int = 0
    nbytes: int = 0
    early: int = 0
    """Messages that were stamped before their sending: their latency is not known."""

    def add(self, row: dict[str, Any]) -> None:
        self.messages += row["messages"]
        self.nbytes += row["bytes"] or 0
        if row["bucket"] == EARLY:
            self.early += row["messages"]
        elif row["bucket"] is not None:
            self.latencies[row["bucket"]] += row["messages"]


def _counted(rows: DataFrame, key: str) -> list[dict[str, Any]]:
    """How many messages to others had which latency, by member and one thing more.

    The bucket is null where a member delivered its own messages, or they have no time of sending.
    """
    latency = F.col("at") - F.col("sent_at")
    known = F.floor(F.log2(F.greatest(latency, F.lit(1))) * BUCKETS_TO_A_DOUBLING)
    to_others = F.col("member") != F.col("sender")
    bucket = F.when(to_others & (latency < 0), EARLY).when(to_others & (latency >= 0), known)
    grouped = rows.groupBy("member", key, bucket.alias("bucket"))
    return tables.rows(
        grouped.agg(F.sum("count").alias("messages"), F.sum("nbytes").alias("bytes"))
    )


def _others(trace: DataFrame, clock: Clock) -> Iterator[Figure]:
    """Everything else: sent, asked for, sent again, given up, stalled, held in windows."""
    held = F.col("high") - F.col("low")
    cells = (
        trace.where(F.col("kind").isin(*OTHER_KINDS))
        .replace(PURGED, WINDOW, ["kind"])
        .groupBy("kind", "member", "peer", clock.interval().alias("interval"))
        .agg(
            F.sum("count").alias("messages"),
            F.sum("nbytes").alias("bytes"),
            F.sum(F.col("at") - F.col("sent_at")).alias("duration"),
            F.count("*").alias("samples"),
            F.sum(held).alias("held"),
            F.max(held).alias("held_max"),
        )
        .toArrow()
    )
    for keys in (["member", "peer"], ["member", "interval"], ["interval"], []):
        grouped = cells.group_by(["kind", *keys]).aggregate(SUMS)
        for row in grouped.to_pylist():
            where = row.get("member"), row.get("peer"), clock.begin(row.get("interval"))
            yield from _other(row, where, clock)


def _other(row: dict[str, Any], where: Where, clock: Clock) -> Iterator[Figure]:
    match row["kind"]:
        case "blocked":
            yield Figure("stalled_seconds", *where, (row["duration_sum"] or 0) / 1_000_000)
        case "window":
            yield Figure("window_mean", *where, (row["held_sum"] or 0) / row["samples_sum"])
            yield Figure("window_max", *where, row["held_max_max"] or 0)
        case kind:
            yield from _rates(kind, where, row["messages_sum"], row["bytes_sum"], clock)


def _rates(
    name: str, where: Where, messages: int, nbytes: int | None, clock: Clock
) -> Iterator[Figure]:
    """Messages and bytes: a second within an interval, altogether over the whole run."""
    interval = where[2] is not None
    share = clock.seconds if interval else 1
    suffix = "_per_second" if interval else ""
    yield Figure(f"{name}_messages{suffix}", *where, messages / share)
    if nbytes is not None:
        yield Figure(f"{name}_bytes{suffix}", *where, nbytes / share)


def _view_changes(installs: Sequence[Row]) -> Iterator[Figure]:
    """How often each member went from one view to another."""
    counts = Counter(row.member for row in installs)
    for member, count in counts.items():
        yield Figure("view_changes", member, None, None, count - 1)
    views = {(row.view, row.view_by) for row in installs}
    yield Figure("views", None, None, None, len(views))


def _ratios(figures: list[Figure]) -> Iterator[Figure]:
    """How many messages were sent again for each that was sent, by sender and of all."""
    totals: dict[tuple[str, int | None], float] = {}
    for figure in figures:
        if figure.at is None:
            key = figure.figure, figure.member
            totals[key] = totals.get(key, 0.0) + figure.value
    for (name, member), sent in totals.items():
        if name == "sent_messages" and sent:
            again = totals.get(("resent_messages", member), 0.0)
            yield Figure("retransmission_ratio", member, None, None, again / sent)
