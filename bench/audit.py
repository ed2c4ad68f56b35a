"""What an audit costs: CPU seconds of Spark, and of DuckDB if it is installed, on one trace.

    python bench/audit.py --rows 20000000

The trace is that of five members that all send, each message delivered by all: rows of one
message, which is the worst case, or runs of `--run`. Both engines do the pass over all messages,
the scan for early purges, and the latencies. What it costs a member to write its trace stands
above them.
"""

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from ringcast.spark.audit import audit
from ringcast.spark.audit.figures import measure
from ringcast.spark.audit.groups import groups
from ringcast.spark.session import session
from ringcast.spark.traces import read_trace
from ringcast.trace.notes import DELIVERED_CODE, SENT_CODE
from ringcast.trace.schema import Row
from ringcast.trace.table import Sheet
from ringcast.trace.writer import TraceWriter

Words = npt.NDArray[np.int64]

MEMBERS = 5
START = 1_700_000_000_000_000
INTERVAL_US, LATENCY_US_MAX, PURGE_EVERY = 10, 15_000, 1_000
GROUP_ROWS = 16_384


def main() -> None:
    """Make a trace, audit it with each engine, print a table."""
    options = parse()
    place = Path(tempfile.mkdtemp(prefix="ringcast-bench-"))
    try:
        rows = generate(place, options.rows, options.run)
        size = sum(file.stat().st_size for file in place.iterdir())
        print(f"writing a trace: {writing_cost(place / 'cost'):,.0f} CPU ns a row, all included")
        print(f"{rows:,} delivery rows of {options.run} message(s), {size / 1e6:,.0f} MB")
        for result in chain(bench_spark(place, options.times), bench_duckdb(place, options.times)):
            print(
                f"{result.engine:8} {result.work:44} {result.cpu:7.2f} CPU s {result.wall:7.2f} s"
            )
    finally:
        shutil.rmtree(place)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU seconds of an audit, by engine.")
    parser.add_argument("--rows", type=int, default=20_000_000, help="delivery rows (20 million)")
    parser.add_argument("--run", type=int, default=1, help="messages in a row (1)")
    parser.add_argument("--times", type=int, default=2, help="repetitions, the best counts (2)")
    return parser.parse_args()


# --- the trace -----------------------------------------------------------------------------------


def generate(place: Path, rows: int, run: int) -> int:
    """Write a good trace with about this many delivery rows, and say how many exactly."""
    runs = rows // MEMBERS**2
    members = tuple(range(1000, 1000 + MEMBERS))
    chance = np.random.default_rng(7)
    for member in members:
        sheet = Sheet(place / f"{member:016x}-000000.parquet")
        sheet.write_rows(list(others(member, members, runs, run)))
        numbers = np.arange(runs)
        write(sheet, member, sent(member, numbers, run))
        for start in range(0, runs, GROUP_ROWS):
            part = numbers[start : start + GROUP_ROWS]
            write(sheet, member, np.concatenate([delivered(s, part, run, chance) for s in members]))
        sheet.close()
    return runs * MEMBERS**2


def sent(member: int, numbers: Words, run: int) -> Words:
    """The rows of what a member sent."""
    return notes(member, SENT_CODE, numbers, run, np.full(len(numbers), -1), sent_at(numbers))


def delivered(sender: int, numbers: Words, run: int, chance: np.random.Generator) -> Words:
    """The rows of what a member delivered from a sender, at random times."""
    latency = np.minimum(chance.lognormal(7, 0.8, len(numbers)), LATENCY_US_MAX).astype(np.int64)
    at = sent_at(numbers) + latency
    return notes(sender, DELIVERED_CODE, numbers, run, numbers * run, at)


def notes(sender: int, code: int, numbers: Words, run: int, pos: Words, at: Words) -> Words:
    """Rows as `ringcast.trace.notes` packs them: eleven words each."""
    size = len(numbers)
    digest = (numbers * 2_654_435_761 + sender) % 2**32
    fixed = [np.full(size, value) for value in (1, 1000, sender, code)]
    given = [1 + numbers * run, np.full(size, run), pos, np.full(size, 100 * run)]
    return np.stack([*fixed, *given, digest, sent_at(numbers), at], axis=1)


def sent_at(numbers: Words) -> Words:
    return START + numbers * INTERVAL_US


def write(sheet: Sheet, member: int, rows: Words) -> None:
    for start in range(0, len(rows), GROUP_ROWS):
        part = np.ascontiguousarray(rows[start : start + GROUP_ROWS])
        sheet.write_messages(member, bytearray(part.tobytes()))


def others(member: int, members: tuple[int, ...], runs: int, run: int) -> Iterator[Row]:
    """The view, the purges and the end."""
    names = tuple(f"m{address}" for address in members)
    yield Row(member, 1, 1000, None, "view", at=START - 1, members=members, names=names)
    for number in range(PURGE_EVERY, runs, PURGE_EVERY):
        at = START + number * INTERVAL_US + LATENCY_US_MAX
        low, count = number * run, PURGE_EVERY * run
        row = Row(member, 1, 1000, member, "purged", low - count + 1, count, at=at)
        yield row._replace(low=low, delivered=low, high=low + 100 * run)
    at = START + runs * INTERVAL_US + LATENCY_US_MAX
    yield Row(member, 1, 1000, None, "closed", at=at)


def writing_cost(place: Path, rows: int = 300_000) -> float:
    """What a member spends on a row of its trace, from the note to the file, in nanoseconds."""
    with TraceWriter(place, 1000) as writer:
        writer.append_view(1, 1000, [1000, 1001], ["a", "b"], START)
        before = time.process_time()
        for number in range(rows):
            at = START + number * INTERVAL_US
            writer.append_delivered(1001, 1 + number, 1, 100, at, at + 300, number)
        writer.rotate()
        spent = time.process_time() - before
    shutil.rmtree(place)
    return spent / rows * 1e9


# --- the engines ---------------------------------------------------------------------------------


class Result(NamedTuple):
    """What a piece of work cost."""

    engine: str
    work: str
    cpu: float
    wall: float


def bench_spark(place: Path, times: int) -> Iterator[Result]:
    """The audit as it is, and its parts."""
    spark = session(quick=False)
    trace = read_trace(spark, place)

    def clean() -> None:
        report = audit(trace)
        assert report.verdict == "clean", report

    def engine(work: str, do: Callable[[], object]) -> Result:
        return best("spark", work, do, times, lambda: jvm_cpu(spark))

    yield engine("one pass over all messages", lambda: groups(trace).collect())
    yield engine("whole audit, with early purges", clean)
    yield engine("figures", lambda: measure(trace))
    spark.stop()


def bench_duckdb(place: Path, times: int) -> Iterator[Result]:
    """The same questions in SQL."""
    try:
        import duckdb  # noqa: PLC0415 — it may be absent
    except ImportError:
        print("duckdb   not installed")
        return
    files = f"read_parquet('{place}/*.parquet')"
    connection = duckdb.connect()

    def engine(work: str, query: str, *, none: bool = False) -> Result:
        def do() -> None:
            rows = connection.execute(query.replace("TRACE", files)).fetchall()
            assert not (none and rows), rows[:3]

        return best("duckdb", work, do, times, process_cpu)

    yield engine("one pass over all messages", PASS)
    yield engine("early purges", EARLY, none=True)
    yield engine("latencies", LATENCIES)


def best(
    engine: str, work: str, do: Callable[[], object], times: int, cpu: Callable[[], float]
) -> Result:
    """Do it some times and keep the cheapest, which has the least of what others did meanwhile."""
    results = []
    for _ in range(times):
        cpu_before, before = cpu(), time.perf_counter()
        do()
        results.append(Result(engine, work, cpu() - cpu_before, time.perf_counter() - before))
    return min(results, key=lambda result: result.cpu)


def process_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def jvm_cpu(spark: SparkSession) -> float:
    """CPU seconds of the JVM, all its threads, and of this process, that waits for it."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = jvm.java.lang.ProcessHandle.current().pid()
    # User and system time are fields 14 and 15; the name, field 2, may have spaces inside ().
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + process_cpu()


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

if __name__ == "__main__":
    main()
