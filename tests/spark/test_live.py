"""A stream from a live group, recorded and killed on the way: still each message once."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ringcast import Closed, sync
from ringcast.journal import Journal
from tests.runtime.command import Command, commands
from tests.runtime.support import group_name, tcp
from tests.spark.support import WAIT, Table, job, until, wait_for_batches

# A busy machine may need minutes for what takes seconds; only a query that hangs should fail.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

OPTIONS = {"maxRowsPerBatch": 3_000, "maxPartitions": 2}

QUERY = """
    import sys
    from pathlib import Path
    import ringcast.spark as rs
    from tests.spark.support import Table

    spark = rs.session()
    rs.register(spark)
    options = {"maxRowsPerBatch": 3000, "maxPartitions": 2}
    Table(spark, Path(sys.argv[1]), **options).start().awaitTermination()
"""


def test_killed_and_restarted_in_live_traffic(
    source: SparkSession, home: Path, journal: Path, tmp_path: Path
) -> None:
    """Senders and a recorder come and go; two recorders are there, and one of them is killed."""
    with Traffic(tmp_path) as traffic, commands() as running:
        first = traffic.join("first")
        records = [traffic.record(home, journal, number, running) for number in (1, 2)]
        first.start()
        until(lambda: journal.exists() and len(Journal(journal).segments) > 1)
        with job(QUERY, journal) as query:
            committed = tmp_path / "table" / "_spark_metadata" / "0"
            until(lambda: query.is_running and committed.exists())
            traffic.join("second").start()
            query.kill()
        table = Table(source, journal, **OPTIONS)
        restarted = table.start()
        wait_for_batches(restarted, 1)
        traffic.leave("first")
        records[1].signal(signal.SIGKILL)
        traffic.join("third").start()
        wait_for_batches(restarted, 3)
        restarted.stop()
        traffic.finish()
        records[0].signal(signal.SIGTERM)
        assert records[0].status() == 0
        table.run()
    found = [bytes(row.payload) for row in table.frame.select("payload").collect()]
    assert Counter(found) == Counter(traffic.sent)
    views = table.frame.agg(F.count_distinct("view"), F.count_distinct("sender")).first()
    assert views is not None
    assert views[0] > 3
    assert views[1] == 3


class Traffic:
    """Members that send all the time, each in a thread, with what they have sent."""

    def __init__(self, place: Path) -> None:
        self.name = group_name()
        self.sent: list[bytes] = []
        self._place = place
        self._senders: dict[str, Sender] = {}

    def join(self, name: str) -> Sender:
        """One more member, that can start to send."""
        seed = next((sender.group.endpoint for sender in self._senders.values()), None)
        group = sync.join(self.name, tcp(seed), name=name, receive=False, timeout=WAIT)
        self._senders[name] = Sender(group)
        return self._senders[name]

    def leave(self, name: str) -> None:
        """One sends no more, and is gone when all have what it has sent."""
        self.sent += self._senders.pop(name).finish()

    def finish(self) -> None:
        """All are gone."""
        for name in list(self._senders):
            self.leave(name)

    def record(self, home: Path, journal: Path, number: int, running: list[Command]) -> Command:
        """One more records; returns when it does."""
        spec = self._place / f"{number}.toml"
        spec.write_text(tcp(self._senders["first"].group.endpoint).to_toml())
        words = ("record", self.name, "--to", str(journal), "--spec", str(spec))
        command = Command(home, *words, "--roll-seconds", "0.3", "--name", f"recorder-{number}")
        running.append(command)
        command.err.hear("The journal is durable")
        return command

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        for sender in self._senders.values():
            sender.group.close()


class Sender:
    """A member that sends a few messages, and again, until it is told to finish."""

    def __init__(self, group: sync.Group) -> None:
        self.group = group
        self._sent: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> list[bytes]:
        """Send no more, leave in order; what was sent."""
        self._stop.set()
        self._thread.join(WAIT)
        self.group.leave(timeout=WAIT)
        return self._sent

    def _send(self) -> None:
        while not self._stop.wait(0.02):
            some = [f"{self.group.name}-{len(self._sent) + n}".encode() for n in range(10)]
            try:
                self.group.send_many(some)
            except Closed:
                return
            self._sent += some
