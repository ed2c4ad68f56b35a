"""A small audit before the real one: Java loads and compiles what a micro-batch needs.

The first micro-batch of a session costs some ten times the CPU of a later one. On a busy machine
that is a minute, in which no alarm would be raised.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.spark.follow.stream import audit_stream
from ringcast.trace.follow.audit_row import VIEW
from ringcast.trace.rules import Rules
from ringcast.trace.writer import TraceWriter

MEMBERS = (1, 2)
START = 1_700_000_000_000_000
LOOK_SECONDS = 0.5


def warm_up(spark: SparkSession, rules: Rules, stop: Event) -> None:
    """Audit a view of two members, until a batch has judged it or `stop` is set.

    What fails here fails in the real audit too, which says why.
    """
    with TemporaryDirectory(prefix="ringcast-warm-up-") as place, suppress(PySparkException):
        trace = Path(place) / "trace"
        for member in MEMBERS:
            _write(trace, member)
        rows = audit_stream(spark, trace, grace=0, **rules._asdict())
        judged = Event()

        def take(table: DataFrame, _: int) -> None:
            if VIEW in table.toArrow().column("type").to_pylist():
                judged.set()

        writer = rows.writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", str(Path(place) / "check")).start()
        try:
            while query.isActive and not stop.is_set() and not judged.wait(LOOK_SECONDS):
                pass
        finally:
            query.stop()


def _write(trace: Path, member: int) -> None:
    with TraceWriter(trace, member) as writer:
        writer.append_view(1, MEMBERS[0], MEMBERS, ["a", "b"], START)
        writer.append_sent(1, 1, 1, START + 1)
        for sender in MEMBERS:
            writer.append_delivered(sender, 1, 1, 1, START + 1, START + 2)
        writer.append_closed(START + 3)
