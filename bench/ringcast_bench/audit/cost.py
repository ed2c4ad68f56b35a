"""What an audit costs: CPU seconds of Spark, and of DuckDB if it is installed, on one trace.

The trace is that of members that all send, each message delivered by all: rows of one message,
which is the worst case, or longer runs; of few members or many, in few files or many. Both engines
do the pass over all messages, the scan for early purges, and the latencies. What it costs a member
to write its trace is measured too.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ringcast.spark.audit import audit
from ringcast.spark.audit.figures import measure
from ringcast.spark.audit.groups import groups
from ringcast.spark.session import session
from ringcast.spark.traces import read_trace
from ringcast.trace.compaction.compact import compact_traces
from ringcast_bench.audit.trace import MEMBERS, generate, writing_cost


class PieceCost(NamedTuple):
    """What a piece of work cost."""

    engine: str
    work: str
    cpu: float
    wall: float
    memory: int = 0
    """The most bytes that this process, the driver in Python, had in memory meanwhile."""
    java: int = 0
    """The same of Spark's Java process; it holds the executors too, unless a cluster runs them."""
    heap: int = 0
    """What Java still needed of its heap at the end: the rest is garbage."""


class TraceShape(NamedTuple):
    """What a trace looks like."""

    rows: int
    run: int = 1
    """Messages in a row."""
    members: int = MEMBERS
    files: int = 0
    """How many files there are, at least one per member."""
    compacted: bool = False
    """Whether the files are joined before the audit."""

    def scaled(self, factor: float) -> TraceShape:
        """The same with more or fewer rows, and with more or fewer of what there are many of."""
        members = self.members if self.members == MEMBERS else round(self.members * factor)
        return self._replace(
            rows=round(self.rows * factor),
            members=max(2, members),
            files=round(self.files * factor),
        )


SHAPES = {
    "deliveries": TraceShape(rows=100_000_000),
    "members": TraceShape(rows=1_000_000, members=1_000),
    "files": TraceShape(rows=1_000_000, files=20_000),
    "compacted": TraceShape(rows=1_000_000, files=20_000, compacted=True),
}
"""Many messages, many members, many files, and these after `ringcast compact`."""

NEEDS = {
    "deliveries": "1 GB of disk and 15 minutes on two cores",
    "members": "100 MB of disk and 5 minutes on two cores",
    "files": "200 MB of disk and 10 minutes on two cores",
    "compacted": "200 MB of disk and 5 minutes on two cores",
}
"""What each needs, about."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What all of it cost."""

    shape: TraceShape
    nbytes: int
    """The size of the trace."""
    writing_ns: float
    """CPU nanoseconds that a member spends on a row of its trace, all included."""
    results: list[PieceCost]
    missing: str = ""

    def to_data(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self) | {
            "shape": self.shape._asdict(),
            "results": [result._asdict() for result in self.results],
        }

    def to_text(self) -> str:
        """For people."""
        lines = [
            f"writing a trace: {self.writing_ns:,.0f} CPU ns per row, all included",
            f"{self.shape.rows:,} delivery rows of {self.shape.run} message(s), "
            f"{self.shape.members:,} members, {self.shape.files:,} files, "
            f"{self.nbytes / 1e6:,.0f} MB",
        ]
        for engine, work, cpu, wall, memory, java, heap in self.results:
            peak = f"{memory / 1e6:7,.0f} MB" if memory else ""
            peak += f"{java / 1e6:7,.0f} MB in Java, {heap / 1e6:,.0f} needed" if java else ""
            lines.append(f"{engine:8} {work:44} {cpu:7.2f} CPU s {wall:7.2f} s {peak}")
        return "\n".join([*lines, *([self.missing] if self.missing else [])])


def audit_cost(
    shape: TraceShape, times: int, say: Callable[[str], None], master: str | None = None
) -> Cost:
    """Make a trace of this shape, and audit it with each engine; with Spark on this `master`."""
    place = Path(tempfile.mkdtemp(prefix="ringcast-bench-"))
    results, missing = list[PieceCost](), ""
    try:
        writing_ns = writing_cost(place / "cost")
        say(f"writing a trace with {shape.rows:,} delivery rows")
        rows = generate(place, shape.rows, shape.run, shape.members, shape.files)
        if shape.compacted:
            say("compacting it")
            compacting = best("python", "compaction", lambda: compact_traces(place), 1, process_cpu)
            results.append(compacting)
        sizes = [file.stat().st_size for file in place.glob("*.parquet")]
        nbytes, shape = sum(sizes), shape._replace(rows=rows, files=len(sizes))
        try:
            for result in chain(bench_spark(place, times, master), bench_duckdb(place, times)):
                say(f"{result.engine}: {result.work}")
                results.append(result)
        except ImportError as error:
            missing = f"left out: {error.name}, which is not installed"
    finally:
        shutil.rmtree(place)
    return Cost(shape=shape, nbytes=nbytes, writing_ns=writing_ns, results=results, missing=missing)


def bench_spark(place: Path, times: int, master: str | None) -> Iterator[PieceCost]:
    """The audit as it is, and its parts. CPU seconds are those of this process and of what it has
    started, so without the executors of a cluster."""
    spark = session(master, quick=False)
    trace = read_trace(spark, place)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def clean() -> None:
        report = audit(trace)
        assert report.verdict == "clean", report

    def engine(work: str, do: Callable[[], object]) -> PieceCost:
        cost = best("spark", work, do, times, lambda: process_cpu(pid), pid)
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return cost._replace(heap=int(runtime.totalMemory()) - int(runtime.freeMemory()))

    yield engine("one pass over all messages", lambda: groups(trace).toArrow())
    yield engine("whole audit, with early purges", clean)
    installs = audit(trace).installs
    yield engine("figures", lambda: measure(trace, installs))
    spark.stop()


def bench_duckdb(place: Path, times: int) -> Iterator[PieceCost]:
    """The same questions in SQL."""
    import duckdb  # noqa: PLC0415 — it may be absent

    files = f"read_parquet('{place}/*.parquet')"
    connection = duckdb.connect()

    def engine(work: str, query: str, *, none: bool = False) -> PieceCost:
        def do() -> None:
            rows = connection.execute(query.replace("TRACE", files)).fetchall()
            assert not (none and rows), rows[:3]

        return best("duckdb", work, do, times, process_cpu)

    yield engine("one pass over all messages", PASS)
    yield engine("early purges", EARLY, none=True)
    yield engine("latencies", LATENCIES)


def best(
    engine: str,
    work: str,
    do: Callable[[], object],
    times: int,
    cpu: Callable[[], float],
    java: int | None = None,
) -> PieceCost:
    """Do it some times and keep the cheapest, which has the least of what others did meanwhile.

    java: the process of Spark's driver in Java, whose memory is told.
    """
    results = []
    own = os.getpid()
    for _ in range(times):
        for process in filter(None, (own, java)):
            forget_peak(process)
        cpu_before, before = cpu(), time.perf_counter()
        do()
        spent, took = cpu() - cpu_before, time.perf_counter() - before
        peaks = peak_memory(own), peak_memory(java) if java else 0
        results.append(PieceCost(engine, work, spent, took, *peaks))
    return min(results, key=lambda result: result.cpu)


def forget_peak(process: int) -> None:
    """Let the kernel count the peak of a process's memory from now on."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def peak_memory(process: int) -> int:
    """The most bytes that a process had in memory since then."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def process_cpu(other: int = 0) -> float:
    """CPU seconds of this process, and of another one that works for it with all that it started:
    Spark's Java and its Python workers."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ticks = sum(map(process_ticks, family(other))) if other else 0
    return used.ru_utime + used.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def family(process: int) -> Iterator[int]:
    """A process and those that it started, and so on, as far as they run."""
    yield process
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # A thread has ended meanwhile.
            for child in file.read_text().split():
                yield from family(int(child))


def process_ticks(process: int) -> int:
    """What a process has used, with the children that have ended; 0 when it is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    # Times are fields 14 to 17; the name, field 2, may have spaces inside ().
    return sum(map(int, stat.rsplit(")", 1)[1].split()[11:15]))


PASS = """
SELECT member, view, view_by, sender, kind = 'sent' AS sending, sum("count"), min(seqno),
  max(seqno + "count" - 1), min(seqno - pos), max(seqno - pos), min(pos),
  sum((hash(seqno + "count") & 2147483647)::BIGINT - (hash(seqno) & 2147483647)::BIGINT),
  sum(digest), count(*) FILTER (digest IS NULL)
FROM TRACE WHERE kind IN ('sent', 'delivered', 'skipped') GROUP BY ALL
"""

EARLY = """
SELECT d.member, d.sender, min(d.seqno) FROM TRACE d ASOF JOIN
  (SELECT view, view_by, member AS sender, low, "at" FROM TRACE WHERE kind = 'purged') p
  ON d.view = p.view AND d.view_by = p.view_by AND d.sender = p.sender AND d.seqno <= p.low
WHERE d.kind = 'delivered' AND d."at" > p."at" GROUP BY ALL
"""

LATENCIES = """
SELECT member, sender, floor(("at" - 1700000000000000) / 1000000) AS second,
  floor(log2(greatest("at" - sent_at, 1)) * 16) AS bucket, sum("count"), sum(nbytes)
FROM TRACE WHERE kind = 'delivered' GROUP BY ALL
"""
