"""Rows to a live group: each is seen once, whatever is killed, and errors are sentences."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.journal import JournalWriter
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.spark.options import SinkOptions
from ringcast.spec import StackSpec
from tests.runtime.support import QUICK, tcp
from tests.spark.support import (
    WAIT,
    Receiver,
    below,
    fill,
    job,
    kill,
    processes,
    receivers,
    until,
)

# A busy machine may need minutes for what takes seconds; only a job that hangs should fail.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def nothing_left(home: Path) -> Iterator[None]:
    """Gateways wait for more work; here there is none."""
    yield
    for gateway in gateways(home):
        kill([gateway])


def values(count: int) -> list[bytes]:
    """The rows of `numbers`, sorted."""
    return sorted(b"%d" % number for number in range(count))


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    """This many rows."""
    return spark.range(0, count, 1, partitions).selectExpr("CAST(id AS STRING) AS value")


def writer(frame: DataFrame, receiver: Receiver, **options: object) -> DataFrameWriter:
    """A batch to the group of this receiver."""
    given = {"group": receiver.group._member.group, "seeds": receiver.group.endpoint}
    return frame.write.format("ringcast").mode("append").options(**given | options)  # type: ignore[arg-type]


class TestBatch:
    def test_every_receiver_sees_every_row_once(self, source: SparkSession, home: Path) -> None:
        with receivers(f"batch-{uuid4()}", 2, tcp) as (one, other):
            frame = numbers(source, 1_000, partitions=4)
            writer(frame, one).save()
            assert one.values == other.values == values(1_000)
            assert {row.partition for row in one.rows} == {0, 1, 2, 3}
            # Four tasks, one member, which stays for the next batch.
            assert len(one.group.view) == 3
            number = one.group.view.id
            writer(frame.selectExpr("CAST(value AS BINARY) AS value"), one).save()
            assert one.group.view.id == number
            assert Counter(one.values) == Counter(2 * values(1_000))
            assert len(gateways(home)) == 1
            assert (one.feed.repeats, one.feed.changed) == (0, 0)

    def test_a_batch_with_a_name_can_be_repeated(self, source: SparkSession) -> None:
        with receivers(f"named-{uuid4()}", 1, tcp) as (one,):
            for _ in range(2):
                writer(numbers(source, 100), one, query="daily", epoch=7).save()
            assert one.values == values(100)
            assert one.feed.repeats == 100
            shuffled = numbers(source, 100).repartition(2, "value")
            for _ in range(2):
                writer(shuffled, one, query="shuffled", sort=True).save()
            assert one.values == sorted(2 * values(100))
            assert one.feed.changed == 0

    def test_a_receiver_that_does_not_take_rows_is_named(self, source: SparkSession) -> None:
        with receivers(f"slow-{uuid4()}", 2, tcp) as (one, other):
            other.stop_at(0, 1)
            sentence = "for 1 seconds: waited for receiver-1; see why"
            with pytest.raises(PySparkException, match=f"errors.Timeout: .*{sentence}"):
                writer(numbers(source, 10), one, timeout=1).save()


class TestMistakes:
    def test_each_is_one_sentence(self, source: SparkSession) -> None:
        frame = numbers(source, 1)
        mistakes = {
            "the option group is missing: give the name": frame.write,
            "unknown option gruop: the sink has group, seeds, ": frame.write.option("gruop", "g"),
            "one column, value, of type binary or string, and this has struct<id:bigint>": (
                source.range(1).write.option("group", "g")
            ),
            "can't be overwritten: write with mode": (
                frame.write.option("group", "g").mode("overwrite")
            ),
        }
        for sentence, mistake in mistakes.items():
            mode = mistake if "overwritten" in sentence else mistake.mode("append")
            with pytest.raises(PySparkException, match=f"errors.ConfigError: .*{sentence}"):
                mode.format("ringcast").save()

    def test_a_null_is_refused(self, source: SparkSession) -> None:
        with receivers(f"null-{uuid4()}", 1, tcp) as (one,):
            frame = source.sql("SELECT CAST(NULL AS STRING) AS value")
            with pytest.raises(PySparkException, match="a value is null, and a message can't be"):
                writer(frame, one).save()

    def test_nobody_there_is_told_in_time(self, source: SparkSession) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            nobody = "{}:{}".format(*bound.getsockname())
            options = {"group": "g", "seeds": nobody, "timeout": "1"}
            frame = numbers(source, 1).write.format("ringcast").mode("append").options(**options)
            sentence = rf'the group "g" was not joined within 1 seconds: tried .*{nobody}'
            with pytest.raises(PySparkException, match=f"errors.Timeout: {sentence}"):
                frame.save()

    def test_a_stream_has_its_own_name(self, source: SparkSession, tmp_path: Path) -> None:
        stream = source.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        frame = stream.selectExpr("CAST(value AS STRING) AS value")
        sink = frame.writeStream.format("ringcast").options(group="g", query="q")
        query = sink.option("checkpointLocation", str(tmp_path)).start()
        with pytest.raises(PySparkException, match="leave out query and epoch"):
            query.awaitTermination(WAIT)


class TestOptions:
    def test_they_describe_the_stack_as_commands_do(self, tmp_path: Path) -> None:
        def stack(**given: str) -> StackSpec:
            return SinkOptions.of({"group": "g", **given}).stack

        seeds = "127.0.0.1:7800, 127.0.0.1:7801"
        found = stack(seeds=seeds, bind="127.0.0.2", port="7802")
        assert found["Discovery"].values()["seeds"] == ("127.0.0.1:7800", "127.0.0.1:7801")
        assert found["Tcp"].values()["port"] == 7802
        assert found["Tcp"].values()["bind"] == "127.0.0.2"
        assert stack() == presets.loopback()
        assert stack(preset="lan") == presets.lan()
        (tmp_path / "s.toml").write_text(presets.bulk().to_toml())
        assert stack(spec=str(tmp_path / "s.toml")) == presets.bulk()

    def test_names_may_have_any_case(self) -> None:
        given = {
            "GROUP": "g", "MinReceivers": "3", "SORT": "True", "checkpointlocation": "/a",
            "timeout": "1.5", "idle": "9", "query": "q", "epoch": "4",
        }  # fmt: skip
        assert SinkOptions.of(given) == SinkOptions(
            group="g", stack=presets.loopback(), min_receivers=3, sort=True,
            timeout=1.5, idle=9.0, query="q", epoch=4,
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("timeout", "0", "timeout is '0': give seconds above 0"),
            ("timeout", "1e10", "timeout is '1e10': give seconds .* up to 1,000,000,000"),
            ("minReceivers", "9" * 5_000, r"minReceivers is '9+\.\.\.': give a whole number"),
            ("idle", "soon", "idle is 'soon': give seconds above 0"),
            ("minReceivers", "none", "minReceivers is 'none': give a whole number above 0"),
            ("epoch", "3", "epoch counts the batches of a query: give query as well"),
            ("seeds", "here", '"here" is not an endpoint'),
            ("preset", "wan", "unknown preset wan"),
            ("spec", "/none.toml", "cannot read the spec /none.toml"),
        ],
    )
    def test_a_wrong_value_is_told(self, name: str, value: str, sentence: str) -> None:
        with pytest.raises(ConfigError, match=sentence):
            SinkOptions.of({"group": "g", name: value})


JOB = """
    import sys
    import ringcast.spark as rs

    master, home, journal, place, group, spec = sys.argv[1:]
    spark = rs.session(master, **{
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executorEnv.XDG_RUNTIME_DIR": home,
        # Rows leave the JVM by the hundred, so that a partition is under way for some time.
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100,
    })
    rs.register(spark)
    stream = spark.readStream.format("ringcast").option("maxRowsPerBatch", 1000).load(journal)

    def run(writer, name):
        writer = writer.trigger(availableNow=True).option("checkpointLocation", place + "/" + name)
        assert writer.start().awaitTermination(250)

    sink = stream.selectExpr("payload AS value").writeStream.format("ringcast")
    run(sink.options(group=group, spec=spec, idle=1), "sink")
    run(stream.writeStream.format("parquet").option("path", place + "/table"), "read")
"""


@pytest.mark.slow
def test_whatever_is_killed_on_a_cluster_each_row_is_seen_once(
    cluster: str, home: Path, journal: Path, tmp_path: Path
) -> None:
    """Epochs of two partitions with 500 rows each; something is killed in the middle of each.

    The window holds 64 messages, and the first receiver stops after 200 rows of an epoch. So the
    tasks are in the middle of their partitions when it happens.
    """
    with JournalWriter(journal, "recorded", 1) as recorder:
        for sender in (7, 8):
            fill(recorder, sender, 1, 2_500, size=2_500)
    recorded = sorted(rows_of(journal))
    spec, executors = tmp_path / "spec.toml", home / "executors"
    executors.mkdir()
    with receivers(f"cluster-{uuid4()}", 2, small_window) as (one, other):
        spec.write_text(small_window(one.group.endpoint).to_toml())
        arguments = (cluster, executors, journal, tmp_path, one.group._member.group, spec)
        with job(JOB, *arguments) as first:
            for epoch, victims in enumerate((workers, one_executor, gateways, None)):
                one.stop_at(epoch, 200)
                until(lambda: first.is_running and one.stopped.is_set())
                if victims is None:
                    first.kill()
                else:
                    kill(victims(executors))
                one.go()
        with job(JOB, *arguments) as second:
            second.finish()
        until(lambda: not gateways(executors))
        assert one.values == other.values == recorded
        assert {row.epoch for row in one.rows} == {0, 1, 2, 3, 4}
        assert one.feed.repeats > 0
        assert one.feed.changed == other.feed.changed == 0
    # The same journal, read as a stream on the cluster.
    assert sorted(rows_of(tmp_path / "table")) == recorded


def workers(home: Path) -> list[int]:
    """The Python of all executors; that of the driver is another's child."""
    java = processes(home, "ExecutorBackend")
    return [worker for worker in processes(home, "pyspark.daemon") if below(worker, java)]


def one_executor(home: Path) -> list[int]:
    """The Java of an executor."""
    return processes(home, "ExecutorBackend")[:1]


def gateways(home: Path) -> list[int]:
    """The member of the group."""
    return processes(home, "ringcast.gateway")


def small_window(seed: str | None) -> StackSpec:
    """TCP, quick to notice a crash, with few messages on their way."""
    return tcp(seed).replace(NakAck4(capacity=64), QUICK)


def rows_of(directory: Path) -> list[bytes]:
    """The payloads of all Parquet files."""
    payloads = pq.read_table(directory, columns=["payload"])["payload"].to_pylist()
    return [payload for payload in payloads if payload is not None]
