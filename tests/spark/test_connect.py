"""Everything over Spark Connect: a server of its own, and a client that has no Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringcast.journal import JournalWriter
from ringcast.spark.java import java_home
from ringcast_bench.audit.trace import generate
from tests.spark.support import ROOT, WAIT, fill

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

CLIENT = """
import json, sys
from pyspark.sql import SparkSession
import ringcast.spark as rs

place = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert not hasattr(spark, "sparkContext")
spark.conf.set("spark.sql.shuffle.partitions", "2")
rs.register(spark)
told = {"batch": spark.read.format("ringcast").load(place + "/journal").count()}
told["members"] = rs.members(spark, place + "/journal").columns[:2]
spark.sql(f"CREATE TEMPORARY VIEW v USING ringcast OPTIONS (path '{place}/journal')")
told["sql"] = spark.sql("SELECT sum(seqno) FROM v WHERE seqno > 5").first()[0]
stream = spark.readStream.format("ringcast").load(place + "/journal").writeStream
query = stream.option("checkpointLocation", place + "/check").trigger(availableNow=True)
query = query.format("parquet").start(place + "/table")
query.awaitTermination()
told["stream"] = spark.read.parquet(place + "/table").count()
told["lag"] = rs.lag(query, place + "/journal").rows
grid = {"members": 2, "messages": 10, "seeds": 6, "timeout": 5}
told["sweep"] = [row.status for row in rs.sweep(spark, grid).collect()]
told["audit"] = rs.audit(rs.read_trace(spark, place + "/trace")).verdict
print(json.dumps(told))
spark.stop()
"""


def test_everything_works_over_spark_connect(tmp_path: Path, home: Path) -> None:
    with JournalWriter(tmp_path / "journal", "prices", 1) as writer:
        fill(writer, 7, 1, 20)
    (tmp_path / "trace").mkdir()
    generate(tmp_path / "trace", 50, 2)
    env = {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    command = [sys.executable, "-c", CLIENT, str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        env=os.environ | env,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "batch": 20,
        "members": ["group", "address"],
        "sql": sum(range(6, 21)),
        "stream": 20,
        "lag": 0,
        "sweep": ["done"] * 6,
        "audit": "clean",
    }
