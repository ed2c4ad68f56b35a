"""What the tests of the pipeline share: tables of queries, jobs in processes, receivers of rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ringcast import Closed, StackSpec, sync
from ringcast.job_rows import Row, RowDeduplicator
from ringcast.journal import JournalWriter
from tests.unit.journal.support import Row as Recorded
from tests.unit.journal.support import append

ROOT = Path(__file__).resolve().parents[2]
WAIT = 250
"""Seconds: a busy machine may need minutes for what takes seconds."""
PAUSE = 0.05


# Tables -------------------------------------------------------------------------------------------


def rows(frame: DataFrame) -> list[Recorded]:
    """Group, sender, seqno and payload of all rows, sorted."""
    taken = frame.select("group", "sender", "seqno", "payload").collect()
    return sorted((row[0], row[1], row[2], bytes(row[3])) for row in taken)


def fill(writer: JournalWriter, sender: int, first: int, last: int, size: int = 10) -> None:
    """Messages of one sender, in segments of this size."""
    for start in range(first, last + 1, size):
        append(writer, sender, start, min(start + size - 1, last))
        writer.seal()


class Table:
    """A query from a journal to a Parquet table, which it can be stopped and started again for."""

    def __init__(self, spark: SparkSession, journal: Path, **options: object) -> None:
        self._spark = spark
        self._journal = journal
        self._options = {name: str(value) for name, value in options.items()}

    def start(self, **trigger: bool) -> StreamingQuery:
        stream = self._spark.readStream.format("ringcast").options(**self._options)
        frame = stream.load(str(self._journal))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", self._at("check"))
        return (
            writer.trigger(**trigger).start(self._at("table"))
            if trigger
            else writer.start(self._at("table"))
        )

    def run(self) -> list[int]:
        """Everything there is now; returns the sizes of the batches."""
        query = self.start(availableNow=True)
        assert query.awaitTermination(WAIT)
        return [progress.numInputRows for progress in query.recentProgress]

    def rows(self) -> list[Recorded]:
        return rows(self.frame)

    @property
    def frame(self) -> DataFrame:
        """What is in the table."""
        return self._spark.read.parquet(self._at("table"))

    def _at(self, name: str) -> str:
        return str(self._journal.with_name(name))


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    """Return when a query has made this many batches with something in them."""
    until(
        lambda: sum(progress.numInputRows > 0 for progress in query.recentProgress) >= count,
        lambda: query.awaitTermination(PAUSE),  # type: ignore[arg-type]  # Parts of a second.
    )


def until(is_true: Callable[[], bool], wait: Callable[[], object] | None = None) -> None:
    """Wait for something that has to happen; fail when it does not within minutes."""
    nap = threading.Event()
    for _ in range(int(WAIT / PAUSE)):
        if is_true():
            return
        if wait is None:
            nap.wait(PAUSE)
        else:
            wait()
    pytest.fail("it does not happen")


# Processes ----------------------------------------------------------------------------------------


class Job:
    """A driver in a process of its own, with its Java in the same process group."""

    def __init__(self, script: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            start_new_session=True,
        )

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        """Wait for its end, which has to be good."""
        assert self._process.wait(WAIT) == 0

    @property
    def is_running(self) -> bool:
        """That it runs; it is a failure if it does not."""
        status = self._process.poll()
        assert status is None, f"the job ended with status {status}"
        return True


@contextmanager
def job(script: str, *arguments: object) -> Iterator[Job]:
    """A driver that is gone at the end."""
    running = Job(script, *arguments)
    try:
        yield running
    finally:
        running.kill()


def processes(home: str | Path, word: str) -> list[int]:
    """The processes with this run directory that have the word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # It has ended meanwhile.
                environment = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes()
                if f"XDG_RUNTIME_DIR={home}".encode() in environment and word.encode() in command:
                    found.append(int(entry.name))
    return found


def below(pid: int, ancestors: Sequence[int]) -> bool:
    """Whether a process was started by one of these, or by one that was, and so on."""
    while pid > 1 and pid not in ancestors:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # It has ended meanwhile.
            return False
    return pid in ancestors


def kill(pids: Sequence[int]) -> None:
    """End these at once; there must be some."""
    assert pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# Receivers ----------------------------------------------------------------------------------------


class Receiver:
    """An application that takes rows, in a thread; it can be told to stop in the middle."""

    def __init__(self, group: sync.Group) -> None:
        self.group = group
        self.feed = RowDeduplicator()
        self.rows: list[Row] = []
        """What the application has seen."""
        self.stopped = threading.Event()
        self._go = threading.Event()
        self._stop_at: tuple[int, int] | None = None
        self._seen = 0
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    @property
    def values(self) -> list[bytes]:
        """What it has seen, sorted."""
        return sorted(bytes(row.value) for row in self.rows)

    def stop_at(self, epoch: int, count: int) -> None:
        """Take nothing more after this many rows of this epoch, until `go`."""
        self.stopped.clear()
        self._go.clear()
        self._seen, self._stop_at = 0, (epoch, count)

    def go(self) -> None:
        """Go on."""
        self._go.set()

    def end(self) -> None:
        """Be gone."""
        self._go.set()
        self.group.close()
        self._thread.join(WAIT)

    def _take(self) -> None:
        with suppress(Closed):
            for row in sync.rows(self.group, self.feed):
                self.rows.append(row)
                if self._stop_at is not None and row.epoch == self._stop_at[0]:
                    self._seen += 1
                    if self._seen == self._stop_at[1]:
                        self.stopped.set()
                        self._go.wait(WAIT)


@contextmanager
def receivers(
    group: str, count: int, stack: Callable[[str | None], StackSpec]
) -> Iterator[list[Receiver]]:
    """Members of one group that take rows; `stack` is given the first one's endpoint."""
    joined: list[Receiver] = []
    with ExitStack() as gone:
        for number in range(count):
            seed = joined[0].group.endpoint if joined else None
            member = sync.join(group, stack(seed), name=f"receiver-{number}", timeout=WAIT)
            joined.append(Receiver(member))
            gone.callback(joined[-1].end)
        yield joined
