"""Spark starts a second copy of a slow task, and both send: applications see each row once."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.spark.support import job, receivers, until
from tests.spark.test_sink import gateways, small_window

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.slow]

ROWS = 1_000
"""In each of two partitions, 2,000 bytes each: more than what waits in the buffers between two
processes."""

JOB = """
    import sys
    import ringcast.spark as rs

    master, home, place, group, spec = sys.argv[1:]
    spark = rs.session(master, **{
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executorEnv.XDG_RUNTIME_DIR": home,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.0",
    })
    rs.register(spark)

    def slow(batches):
        # The first attempt at the second partition hands on 800 rows and stands still until it is
        # killed. Its copy begins when a receiver has seen one of these rows.
        import time
        from pathlib import Path
        from pyspark import TaskContext

        context = TaskContext.get()
        is_second, attempt = context.partitionId() == 1, context.attemptNumber()
        while is_second and attempt > 0 and not Path(place, "seen").exists():
            time.sleep(0.05)
        for number, batch in enumerate(batches):
            while is_second and attempt == 0 and number == 8:
                time.sleep(0.05)
            yield batch

    rows = spark.range(0, 2 * ROWS, 1, 2).selectExpr("rpad(id, 2000, ' ') AS value")
    rows = rows.mapInArrow(slow, "value string")
    rows.write.format("ringcast").mode("append").options(group=group, spec=spec, idle=1).save()
"""


def test_what_two_copies_of_a_task_send_is_seen_once(
    cluster: str, home: Path, tmp_path: Path
) -> None:
    """The job can end only by the copy, since the first attempt never does."""
    spec, executors = tmp_path / "spec.toml", home / "copies"
    executors.mkdir()
    with receivers(f"copies-{uuid4()}", 2, small_window) as (one, other):
        spec.write_text(small_window(one.group.endpoint).to_toml())
        script = JOB.replace("ROWS", str(ROWS))
        group = one.group._member.group
        with job(script, cluster, executors, tmp_path, group, spec) as running:
            until(lambda: running.is_running and any(row.partition == 1 for row in one.rows))
            (tmp_path / "seen").touch()
            running.finish()
        until(lambda: not gateways(executors))
        written = sorted(b"%d" % number for number in range(2 * ROWS))
        for receiver in (one, other):
            assert sorted(value.rstrip() for value in receiver.values) == written
            assert receiver.feed.repeats > 0, "both copies have sent"
            assert receiver.feed.changed == 0
