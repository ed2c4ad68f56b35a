"""A DataFrame to two receivers, beside the same DataFrame to Parquet: rows/s and CPU time.

The whole path: Spark makes rows of 100 bytes, its tasks hand them to the gateway, two other
processes receive them with `ringcast.sync.rows`, and the job ends when both have dequeued all.
`ringcast bench sink --spark` prints it.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import ringcast.spark as rs
from ringcast_bench.sink.writers import SIZE, child, receive

ROWS = 2_000_000
PARTITIONS = 2
ROUNDS = 3
"""Each is measured this often after one round that warms Java up; the median counts."""
IDLE = 600
"""Seconds: the gateway stays until the end, when it is told to go."""

PLACES = ("java", "workers", "gateway", "receivers")
"""Where CPU time is spent."""


class SinkCost(NamedTuple):
    """What one job cost."""

    seconds: float
    cpu: tuple[float, ...]
    """CPU seconds, as in PLACES."""


def table() -> Iterator[str]:
    """The table, line by line, each as soon as it is measured."""
    with tempfile.TemporaryDirectory(prefix="rc-") as home:
        os.environ["XDG_RUNTIME_DIR"] = home
        with _receivers((ROUNDS + 1) * ROWS) as endpoint:
            spark = rs.session(f"local[{PARTITIONS}]", quick=False)
            try:
                yield from _lines(endpoint, home)
            finally:
                spark.stop()
                _end_gateway(home)


def _lines(endpoint: str, home: str) -> Iterator[str]:
    spark = rs.session()
    rs.register(spark)
    value = f"rpad(CAST(id AS STRING), {SIZE}, 'x') AS value"
    frame = spark.range(0, ROWS, 1, PARTITIONS).selectExpr(value)

    def to_group() -> None:
        options = {"group": "rows", "seeds": endpoint, "idle": str(IDLE)}
        frame.write.format("ringcast").mode("append").options(**options).save()

    def to_parquet() -> None:
        frame.write.mode("overwrite").parquet(f"{home}/table")

    heads = "".join(f"{place:>11}" for place in PLACES)
    yield f"{'rows to':<10} {'rows/s':>9}  µs of CPU per row:{heads}"
    for name, write in (("a group", to_group), ("Parquet", to_parquet)):
        write()
        yield _line(name, [_cost(write, home) for _ in range(ROUNDS)])


def _cost(write: Callable[[], None], home: str) -> SinkCost:
    before, begun = _cpu(home), time.monotonic()
    write()
    seconds, after = time.monotonic() - begun, _cpu(home)
    return SinkCost(seconds, tuple(after[place] - before[place] for place in PLACES))


def _line(name: str, costs: Sequence[SinkCost]) -> str:
    cost = sorted(costs)[len(costs) // 2]
    shares = "".join(f"{seconds * 1e6 / ROWS:>11.2f}" for seconds in cost.cpu)
    return f"{name:<10} {ROWS / cost.seconds:>9,.0f} {sum(cost.cpu) * 1e6 / ROWS:>19.2f}{shares}"


@contextmanager
def _receivers(count: int) -> Iterator[str]:
    """Two processes that receive rows; the endpoint of the first."""
    told = list[Connection]()
    told.append(child(receive, None, count))
    endpoint = str(told[0].recv())
    told.append(child(receive, endpoint, count))
    told[1].recv()
    yield endpoint
    for connection in told:
        with suppress(OSError):
            connection.send(None)


def _cpu(home: str) -> dict[str, float]:
    """CPU seconds up to now, by place."""
    found = dict.fromkeys(PLACES, 0.0)
    for process, command in _processes():
        if f"XDG_RUNTIME_DIR={home}".encode() in _read(process / "environ").split(b"\0"):
            place = "gateway" if b"ringcast.gateway" in command else "workers"
            found["java" if b"org.apache.spark" in command else place] += _seconds(process)
        elif _parent(process) == os.getpid():
            found["receivers"] += _seconds(process)
    return found


def _end_gateway(home: str) -> None:
    for process, command in _processes():
        environment = _read(process / "environ").split(b"\0")
        if f"XDG_RUNTIME_DIR={home}".encode() in environment and b"ringcast.gateway" in command:
            os.kill(int(process.name), signal.SIGKILL)


def _processes() -> Iterator[tuple[Path, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield entry, _read(entry / "cmdline")


def _fields(process: Path) -> list[bytes]:
    return _read(process / "stat").rpartition(b")")[2].split()


def _parent(process: Path) -> int:
    fields = _fields(process)
    return int(fields[1]) if fields else 0


def _seconds(process: Path) -> float:
    fields = _fields(process)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _read(file: Path) -> bytes:
    with suppress(OSError):  # It has ended meanwhile, or is another user's.
        return file.read_bytes()
    return b""
