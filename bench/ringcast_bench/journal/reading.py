"""What reading a journal costs: `rs.journal`, `format("ringcast")` and plain Parquet side by side.

One recorder wrote it, or two that overlap in half of it; then plain Parquet has to drop the doubles
by a shuffle, since nothing else gives each message once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ringcast.spark as rs
from ringcast.journal import JournalWriter
from ringcast_bench.audit.cost import PieceCost, best, process_cpu

SENDERS = 4
RUN = 64
SIZE = 120
"""Bytes of a message."""
SEGMENTS = 8
"""Of each recorder."""
QUERIES = {
    "count(*)": "count(*)",
    "sum(seqno)": "sum(seqno)",
    "payload": "sum(length(payload))",
}
"""By name: what is asked of all messages."""
KEYS = ["group", "sender", "seqno"]


@dataclass(frozen=True, kw_only=True)
class ReadingCost:
    """What all of it cost."""

    rows: int
    recorders: int
    results: list[PieceCost]

    def to_data(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self) | {"results": [result._asdict() for result in self.results]}

    def to_text(self) -> str:
        """For people; times of the source are compared with those of plain Parquet."""
        lines = [f"{self.rows:,} messages of {SIZE} bytes, {self.recorders} recorder(s)"]
        native = {r.work: r.cpu for r in self.results if r.engine == "parquet"}
        for engine, work, cpu, wall, *_ in self.results:
            ratio = cpu / max(native[work], 0.01)
            lines.append(f"{engine:10} {work:12} {cpu:7.2f} CPU s {wall:7.2f} s {ratio:6.2f} x")
        return "\n".join(lines)


def reading_cost(rows: int, recorders: int, times: int, say: Callable[[str], None]) -> ReadingCost:
    """Write a journal and read it in each way. Of two recorders, the second has the later half."""
    place = Path(tempfile.mkdtemp(prefix="ringcast-bench-"))
    try:
        say(f"writing a journal of {rows:,} messages")
        written = write(place, rows, recorders)
        results = []
        for result in bench(place, written, recorders, times):
            say(f"{result.engine}: {result.work}")
            results.append(result)
    finally:
        shutil.rmtree(place)
    return ReadingCost(rows=written, recorders=recorders, results=results)


def write(place: Path, rows: int, recorders: int) -> int:
    """A journal in which each sender has as many messages; returns how many there are."""
    runs = max(1, rows // (SENDERS * RUN))
    for recorder in range(1, recorders + 1):
        skipped = 0 if recorder == 1 else runs // 2
        with JournalWriter(
            place, "bench", recorder, durable=False, roll_bytes=2**30, roll_seconds=3_600
        ) as writer:
            for run in range(skipped, runs):
                for sender in range(1, SENDERS + 1):
                    first = run * RUN + 1
                    payloads = [f"{sender}:{first + i}:".encode().ljust(SIZE) for i in range(RUN)]
                    at = 1_700_000_000_000_000 + run * 1_000
                    writer.append(1, 1, sender, first, payloads, sent_at=at, delivered_at=at + 300)
                # The second recorder rolls at other moments.
                if (run + recorder * runs // SEGMENTS // 3) % max(1, runs // SEGMENTS) == 0:
                    writer.seal()
    return runs * SENDERS * RUN


def bench(place: Path, rows: int, recorders: int, times: int) -> Iterator[PieceCost]:
    """Each question in each way."""
    spark = rs.session(quick=False)
    rs.register(spark)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    try:
        for engine, frame in ways(spark, place, recorders).items():
            for work, question in QUERIES.items():

                def ask(frame: Any = frame, question: str = question) -> None:
                    (answer,) = frame.selectExpr(question).first() or (None,)
                    assert answer is not None

                yield best(engine, work, ask, times, lambda: process_cpu(pid))
            assert frame.count() == rows
    finally:
        spark.stop()


def ways(spark: Any, place: Path, recorders: int) -> dict[str, Any]:
    """The ways to read a journal so that each message is there once."""
    native = spark.read.parquet(str(place))
    return {
        "parquet": native if recorders == 1 else native.dropDuplicates(KEYS),
        "rs.journal": rs.journal(spark, place),
        "source": spark.read.format("ringcast").load(str(place)),
    }
