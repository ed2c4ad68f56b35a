"""The continuous audit as a streaming DataFrame: a stateless step and two with state.

    files as they appear
      → parts       stateless, one task per file: what a member did in a view, condensed
      → by member   which view it went on to, and the numbers that it had used by then
      → by view     all parts of the view; judged when it is over

`ringcast.trace.follow` does the work and knows nothing of Spark; state is its plain data as JSON.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from ringcast.errors import ConfigError
from ringcast.spark.schema import TRACE
from ringcast.spark.traces import CHECKED, SUFFIX, check_columns
from ringcast.trace.checksum import damage, is_damaged
from ringcast.trace.compaction.names import COMPACTED, covered, trace_file
from ringcast.trace.follow.audit_row import AuditRow
from ringcast.trace.follow.member import MemberTrack
from ringcast.trace.follow.part import MemberPart
from ringcast.trace.follow.view import KEPT_MS, ViewTrack
from ringcast.trace.judging.checks import checks_of_others, include
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.rules import Rules
from ringcast.trace.schema import Row, signed

STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # The default writes whole files of RocksDB for each batch, partition and step.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Where the state is, and how a batch commits it."""
GRACE = 30.0
"""Seconds that members of a view have to be heard of, once the first has gone on."""

GRACE_MAX = 7 * 24 * 3_600
"""As long as a view is kept that no file mentions."""

PARTS = "member long, view long, view_by long, body string"
TEXTS = ("type", "what", "member_name", "guarantee", "cause")
REALS = ("latency_p50", "latency_p99", "latency_max")


def _type(name: str) -> StringType | DoubleType | LongType:
    return StringType() if name in TEXTS else DoubleType() if name in REALS else LongType()


AUDIT_ROWS = StructType([StructField(name, _type(name)) for name in AuditRow._fields])
"""The columns of a continuous audit."""

Batches = Iterable[pa.RecordBatch]


def audit_stream(
    spark: SparkSession,
    path: str | Path,
    *,
    grace: float = GRACE,
    since: float | None = None,
    **rules: Any,
) -> DataFrame:
    """Audit traces below a directory as they are written: violations and figures of each view.

    `grace` is in seconds; `rules` are the arguments of `audit` up to `majority`. Write the rows to
    any sink, in append mode, with a trigger of a second or more. `since`, in seconds since 1970, is
    when the query was first started, now by default: what is compacted later has been read. Sets
    the session's state store to RocksDB, which the state by view needs. Raises ConfigError for
    what can't be followed.
    """
    check_grace(grace)
    place = str(path)
    if "://" not in place and not Path(place).is_dir():
        raise ConfigError(
            f"There is no directory {place}: make the one that the members will trace to."
        )
    if "://" not in place and covered(Path(place).rglob(f"*{SUFFIX}")):
        raise ConfigError(
            f"{place} was compacted, but not to the end: run `ringcast compact {place}` first."
        )
    for key, value in STATE_STORE.items():
        spark.conf.set(key, value)
    owed = Rules(**rules)
    options = {**CHECKED, "pathGlobFilter": f"*{SUFFIX}", "recursiveFileLookup": "true"}
    rows = spark.readStream.schema(TRACE).options(**options).parquet(place)
    started = F.timestamp_seconds(F.lit(time.time() if since is None else since))
    copies = F.col("_metadata.file_name").rlike(COMPACTED)
    rows = rows.where(~copies | (F.col("_metadata.file_modification_time") <= started))
    parts = rows.select(*TRACE.names, "_metadata.file_path").mapInArrow(_parts(owed), PARTS)
    by_member = parts.groupBy("member").transformWithState(
        MemberProcessor(), PARTS, "Append", "ProcessingTime"
    )
    return by_member.groupBy("view", "view_by").transformWithState(
        ViewProcessor(owed, round(grace * 1_000)), AUDIT_ROWS, "Append", "ProcessingTime"
    )


def check_grace(grace: float) -> None:
    """Raise ConfigError for a grace that timers cannot have."""
    if not 0 <= grace <= GRACE_MAX:
        raise ConfigError(f"the grace is {grace:g}: give 0 to {GRACE_MAX:,} seconds")


def _parts(rules: Rules) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The stateless step: rows in, one line per member and view out."""

    def condense(batches: Batches) -> Iterator[pa.RecordBatch]:
        found: dict[tuple[int, ViewKey], MemberPart] = {}
        checked = set[str]()
        files = defaultdict[int, list[tuple[int, int]]](list)
        for batch in batches:
            for file in {*map(str, batch.column("file_path").unique().to_pylist())} - checked:
                checked.add(file)
                _check_file(file)
                if named := trace_file(Path(unquote(urlsplit(file).path))):
                    member = signed(int(named.member, 16))
                    files[member].append((named.first, named.last))
            columns = [batch.column(name).to_pylist() for name in Row._fields]
            for row in map(Row._make, zip(*columns, strict=True)):
                key = row.member or 0, (row.view or 0, row.view_by or 0)
                if key not in found:
                    found[key] = MemberPart(*key)
                found[key].add(row, rules.skew_us)
        for part in found.values():
            part.tidy()
            part.files = files[part.member]
        lines = [(m, *view, json.dumps(part.plain())) for (m, view), part in found.items()]
        if lines:
            names = ["member", "view", "view_by", "body"]
            yield pa.RecordBatch.from_pydict(
                dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))
            )

    return condense


def _check_file(address: str) -> None:
    """Raise ConfigError for a file that is damaged or no trace, where it can be read here."""
    parts = urlsplit(address)
    if parts.scheme != "file":
        return
    file = Path(unquote(parts.path))
    if is_damaged(file):
        raise damage(file)
    check_columns(file)


class MemberProcessor(StatefulProcessor):
    """State by member: where it is. It goes when the member has closed and all its files have been
    read, or when it is silent for a week."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before everything else."""
        self._state = handle.getValueState("track", "track string", KEPT_MS)

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[SparkRow]:
        """What is new of one member."""
        (member,) = key
        parts: dict[ViewKey, MemberPart] = {}
        for row in rows:
            view = row["view"], row["view_by"]
            part = MemberPart.of(member, view, json.loads(row["body"]))
            if view in parts:
                parts[view].merge(part)
            else:
                parts[view] = part
        known = self._state.get() if self._state.exists() else None
        track = MemberTrack.of(member, json.loads(known[0])) if known else MemberTrack(member)
        for (number, by), message in track.update(parts.values()):
            yield SparkRow(member=member, view=number, view_by=by, body=json.dumps(message))
        if track.is_over:
            self._state.clear()
        else:
            self._state.update((json.dumps(track.plain()),))

    def close(self) -> None:
        """Nothing to give back."""


class ViewProcessor(StatefulProcessor):
    """State by view: what its members did, until it is judged."""

    def __init__(self, rules: Rules, grace_ms: int) -> None:
        self._rules, self._grace = rules, grace_ms
        self._checks = checks_of_others()

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before everything else."""
        include(self._checks)
        self._handle = handle
        self._state = handle.getValueState("track", "track string")

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[SparkRow]:
        """What is new of one view. It is judged after all rows of the batch, by a timer."""
        track = self._load(key)
        heard = [(row["member"], json.loads(row["body"])) for row in rows]
        due, now = track.due, timerValues.getCurrentProcessingTimeInMs()
        for told in track.hear(heard, now):
            yield SparkRow(**told._asdict())
        self._save(track, due)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[SparkRow]:
        """The view is over, or its grace is, or it need not be remembered any longer."""
        track = self._load(key)
        for told in track.expire(timerValues.getCurrentProcessingTimeInMs()):
            yield SparkRow(**told._asdict())
        # Spark itself removes the timer that has expired.
        self._save(track, None)

    def close(self) -> None:
        """Nothing to give back."""

    def _load(self, key: Any) -> ViewTrack:
        track = ViewTrack((key[0], key[1]), self._rules, self._grace)
        if self._state.exists() and (known := self._state.get()):
            track.load(json.loads(known[0]))
        return track

    def _save(self, track: ViewTrack, due: int | None) -> None:
        """Keep a view; `due` is when its timer is set."""
        if track.is_forgotten:
            self._state.clear()
        else:
            self._state.update((json.dumps(track.plain()),))
        if track.due != due:
            if due is not None:
                self._handle.deleteTimer(due)
            if track.due is not None:
                self._handle.registerTimer(track.due)
