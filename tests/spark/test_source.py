"""The journal through Spark: batch and stream give each message once, and errors are sentences."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.format.layout import Layout, stem_of
from ringcast.journal.write.retention import remove
from ringcast.spark.options import SourceOptions
from ringcast.spark.source import SCHEMA, JournalReader
from tests.spark.support import WAIT, Table, fill, rows
from tests.unit.journal.support import FaultyFiles, Row, append, expected

# A busy machine may need minutes for what takes seconds; only a query that hangs should fail.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class TestBatch:
    def test_it_is_what_was_written(self, source: SparkSession, journal: Path) -> None:
        with JournalWriter(journal, "prices", 2**64 - 1) as writer:
            writer.append(4, 9, 2**63, 5, [b"\0x", b""], sent_at=1_000_001, delivered_at=2_000_003)
            writer.seal()
            append(writer, 8, 1, 3)
        frame = source.read.format("ringcast").load(str(journal))
        assert frame.schema == SCHEMA
        assert frame.rdd.getNumPartitions() == 2
        row = frame.where("seqno = 5").selectExpr("*", "unix_micros(sent_at) AS sent").first()
        assert row is not None
        assert (row.group, row.view, row.view_by) == ("prices", 4, 9)
        assert (row.sender, row.recorder) == (-(2**63), -1)
        assert (row.sent, bytes(row.payload)) == (1_000_001, b"\0x")
        native = source.read.parquet(str(journal))
        assert native.schema == SCHEMA
        assert sorted(frame.collect()) == sorted(native.collect())

    def test_two_recorders_are_one(self, source: SparkSession, journal: Path) -> None:
        with (
            JournalWriter(journal, "prices", 1) as one,
            JournalWriter(journal, "prices", 2) as other,
        ):
            fill(one, 7, 1, 30)
            fill(other, 7, 21, 50)
            fill(other, 8, 5, 5)
        frame = source.read.format("ringcast").load(str(journal))
        assert rows(frame) == expected(7, 1, 50) + expected(8, 5, 5)
        assert source.read.parquet(str(journal)).count() == 61

    def test_a_schema_of_ones_own_chooses_columns(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 3)
        reader = source.read.format("ringcast")
        frame = reader.schema("seqno long, sender long").load(str(journal))
        assert sorted(map(tuple, frame.collect())) == [(1, 7), (2, 7), (3, 7)]
        with pytest.raises(PySparkException, match="a journal has no column price of type double"):
            reader.schema("price double").load(str(journal)).count()

    def test_a_frame_can_be_asked_again_and_twice_at_once(
        self, source: SparkSession, journal: Path
    ) -> None:
        """Spark keeps one plan per frame of a source in Python; filters must not be in it."""
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 30)
            fill(writer, 8, 1, 20)
        frame = source.read.format("ringcast").load(str(journal))
        assert frame.where("sender = 8").count() == 20
        assert frame.count() == 50
        halves = frame.where("sender = 7").unionAll(frame.where("sender = 8"))
        assert rows(halves) == expected(7, 1, 30) + expected(8, 1, 20)
        frame.createOrReplaceTempView("asked_twice")
        (joined,) = source.sql(
            "SELECT count(*) FROM asked_twice a JOIN asked_twice b USING (seqno)"
            " WHERE a.sender = 7 AND b.sender = 8"
        ).collect()
        assert joined[0] == 20

    def test_senders_have_names_and_members_are_a_table(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            writer.view(3, 1, [(7, "ann", "10.0.0.7:7800"), (8, "bob", "")], at=1_000_000)
            fill(writer, 7, 1, 3)
            fill(writer, 8, 1, 2)
        frame = source.read.format("ringcast").load(str(journal))
        found = frame.groupBy("sender_name").count().orderBy("sender_name").collect()
        assert [tuple(row) for row in found] == [("ann", 3), ("bob", 2)]
        table = rs.members(source, journal).orderBy("address")
        ann, bob = table.collect()
        assert ann.asDict() | {"first_view_at": None, "last_view_at": None} == {
            "group": "prices", "address": 7, "name": "ann", "endpoint": "10.0.0.7:7800",
            "first_view": 3, "first_view_by": 1, "first_view_at": None,
            "last_view": 3, "last_view_by": 1, "last_view_at": None,
        }  # fmt: skip
        assert bob.name == "bob"
        assert table.selectExpr("unix_micros(last_view_at)").first() == (1_000_000,)
        with pytest.raises(PySparkException, match="the option table is 'people': give one of"):
            source.read.format("ringcast").option("table", "people").load(str(journal))

    def test_many_segments_share_partitions(self, source: SparkSession, journal: Path) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 7, size=1)
        frame = source.read.format("ringcast").option("maxPartitions", 3).load(str(journal))
        assert frame.rdd.getNumPartitions() == 3
        assert rows(frame) == expected(7, 1, 7)

    def test_options_leave_out_segments_and_rows(
        self, source: SparkSession, journal: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Each segment that is read is a partition, and the log of the planner counts them."""
        caplog.set_level(logging.INFO, "ringcast.spark")
        with JournalWriter(journal, "prices", 1) as writer:
            for sender in range(1, 11):
                for first in (1, 6):
                    at = sender * 60_000_000 + first * 1_000_000
                    payloads = [b"x"] * 5
                    writer.append(1, 1, sender, first, payloads, sent_at=at, delivered_at=at + 5)
                writer.seal()
        asked: list[tuple[dict[str, str], int, int]] = [
            ({}, 10, 100),
            ({"sender": "7"}, 1, 10),
            ({"sender": "2, 3,99", "seqno": "9.."}, 2, 4),
            ({"group": "other"}, 0, 0),
            ({"sent_at": "1970-01-01T00:09:06.."}, 2, 15),
            ({"delivered_at": "..1970-01-01T00:01:01.000005+00:00"}, 1, 5),
            ({"Sent_At": "1970-01-01T00:05..1970-01-01T00:05:01", "SENDER": "5"}, 1, 5),
        ]
        for options, segments, count in asked:
            frame = source.read.format("ringcast").options(**options).load(str(journal))
            assert frame.count() == count, options
            assert len(frame.select("payload").collect()) == count, options
            given = SourceOptions.of({"path": str(journal), **options})
            assert len(JournalReader(given, ["seqno"]).partitions()) == segments, options
            assert caplog.messages[-1] == f"reading {segments} of 10 segments"
        both = source.read.format("ringcast").option("sender", 7).load(str(journal))
        other = source.read.format("ringcast").option("sender", 8).load(str(journal))
        assert both.unionAll(other).groupBy("sender").count().collect() == [(7, 10), (8, 10)]
        source.sql(f"CREATE TABLE of_seven USING ringcast OPTIONS (path '{journal}', sender '7')")
        try:
            assert source.table("of_seven").select("sender").distinct().collect() == [(7,)]
        finally:
            source.sql("DROP TABLE of_seven")
        with pytest.raises(PySparkException, match="the option sender is for messages: leave it"):
            source.read.format("ringcast").options(table="members", sender=7).load(str(journal))

    def test_sql_reads_a_view_of_it(self, source: SparkSession, journal: Path) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 20)
        options = f"OPTIONS (path '{journal}')"
        source.sql(f"CREATE OR REPLACE TEMPORARY VIEW prices USING ringcast {options}")
        (row,) = source.sql("SELECT count(*), sum(seqno) FROM prices WHERE seqno > 5").collect()
        assert (row[0], row[1]) == (15, sum(range(6, 21)))

    def test_a_journal_is_a_table_of_the_catalog(self, source: SparkSession, journal: Path) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 20)
        creations = {
            "t_location": f"LOCATION '{journal}'",
            "t_options": f"OPTIONS (path '{journal}', maxPartitions 1)",
            "t_properties": f"LOCATION '{journal}' TBLPROPERTIES (made_by = 'test')",
        }
        for name, how in creations.items():
            source.sql(f"CREATE TABLE {name} USING ringcast {how}")
            try:
                query = f"SELECT count(*), sum(seqno) FROM {name} WHERE seqno > 5"
                (row,) = source.sql(query).collect()
                assert (row[0], row[1]) == (15, sum(range(6, 21)))
                partitions = source.table(name).rdd.getNumPartitions()
                assert partitions == (1 if name == "t_options" else 2)
                assert source.readStream.table(name).isStreaming
            finally:
                source.sql(f"DROP TABLE {name}")
        assert len(list(journal.glob("*.parquet"))) == 2, "a dropped table leaves the journal alone"
        with pytest.raises(PySparkException, match="unknown option pth: the source has path"):
            source.sql(f"CREATE TABLE t USING ringcast OPTIONS (path '{journal}', pth '')")
        with pytest.raises(PySparkException, match="create a table with LOCATION"):
            source.sql("CREATE TABLE t USING ringcast")

    def test_a_journal_without_messages_has_no_rows(
        self, source: SparkSession, journal: Path
    ) -> None:
        JournalWriter(journal, "prices", 1).close()
        assert source.read.format("ringcast").load(str(journal)).count() == 0

    def test_mistakes_are_told_in_a_sentence(self, source: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "foreign").mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / "foreign" / "x.parquet")
        reader = source.read.format("ringcast")
        mistakes: dict[str, Callable[[], DataFrame]] = {
            "no such directory: ": lambda: reader.load(str(tmp_path / "missing")),
            "empty is empty: start `ringcast record": lambda: reader.load(str(tmp_path / "empty")),
            r"Parquet files that no recorder wrote \(x.parquet\)": lambda: reader.load(
                str(tmp_path / "foreign")
            ),
            "the option path is missing": reader.load,
        }
        for sentence, mistake in mistakes.items():
            with pytest.raises(PySparkException, match=f"ConfigError: .*{sentence}"):
                mistake()
        with pytest.raises(PySparkException, match="unknown option maxrows: the source has path, "):
            source.read.format("ringcast").option("maxRows", 3).load(str(tmp_path))


class TestOptions:
    def test_names_may_have_any_case(self) -> None:
        given = {
            "PATH": "/a",
            "maxrowsperbatch": "3",
            "maxPartitions": "2",
            "FailOnDataLoss": "FALSE",
        }
        options = SourceOptions(path=Path("/a"), max_rows=3, max_partitions=2, fail_on_loss=False)
        assert SourceOptions.of(given) == options

    def test_a_path_is_made_absolute(self) -> None:
        assert SourceOptions.of({"path": "a/../b"}).path == Path.cwd() / "b"
        assert SourceOptions.of({"path": "file:///a%20b"}).path == Path("/a b")

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("maxRowsPerBatch", "0", "maxRowsPerBatch is '0': give a whole number above 0"),
            ("maxPartitions", "-3", "maxPartitions is '-3'"),
            ("maxBytesPerBatch", "abc", "maxBytesPerBatch is 'abc': give a whole number above 0"),
            ("maxRowsPerBatch", "9" * 19, "maxRowsPerBatch is '9+': give a whole number above 0"),
            ("startingOffsets", '{"prices": 7}', "startingOffsets is .*: give earliest, latest"),
            ("failOnDataLoss", "maybe", "failOnDataLoss is 'maybe': give true or false"),
            ("sender", "ann", "sender is 'ann': give an address as a number, or several: 7,8"),
            ("sent_at", "monday", r"sent_at is 'monday': give 2026-01-31T12:00\.\. or "),
        ],
    )
    def test_a_wrong_value_is_told(self, name: str, value: str, sentence: str) -> None:
        with pytest.raises(ConfigError, match=sentence):
            SourceOptions.of({"path": "/a", name: value})


class TestStream:
    def test_available_now_restarts_where_it_was(self, source: SparkSession, journal: Path) -> None:
        table = Table(source, journal, maxRowsPerBatch=20)
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 45)
            assert table.run() == [20, 20, 5]
            assert table.rows() == expected(7, 1, 45)
            fill(writer, 7, 46, 50)
            fill(writer, 8, 3, 5)  # A new sender, that began before it was recorded.
            assert table.run() == [8]
            assert sum(table.run()) == 0
        assert table.rows() == expected(7, 1, 50) + expected(8, 3, 5)

    def test_it_begins_where_it_is_told_and_tells_its_lag(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 20)
        table = Table(source, journal, startingOffsets='{"prices": {"7": 12}}', maxRowsPerBatch=5)
        query = table.start(availableNow=True)
        assert query.awaitTermination(WAIT)
        assert [row[2] for row in table.rows()] == [*range(13, 21)]
        assert rs.lag(query, journal) == (0, 0.0)
        with JournalWriter(journal, "prices", 2) as writer:
            fill(writer, 8, 1, 3)
        assert rs.lag(query, journal).rows == 3

    def test_a_huge_backlog_does_not_starve_the_others(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 5000, size=1000)
            fill(writer, 8, 1, 40)
            fill(writer, 9, 1, 60)
        batches: list[Counter[int]] = []

        def keep(batch: DataFrame, _: int) -> None:
            batches.append(Counter(sender for _, sender, _, _ in rows(batch)))

        stream = source.readStream.format("ringcast").option("maxRowsPerBatch", 1800)
        sink = stream.load(str(journal)).writeStream.foreachBatch(keep)
        query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT)
        assert batches == [{7: 1700, 8: 40, 9: 60}, {7: 1800}, {7: 1500}]

    def test_a_batch_that_failed_is_read_again_the_same(
        self, source: SparkSession, journal: Path, tmp_path: Path
    ) -> None:
        seen: list[tuple[int, list[Row]]] = []

        def spoil(batch: DataFrame, number: int) -> None:
            seen.append((number, rows(batch)))
            if len(seen) == 2:
                raise RuntimeError("the table is not there")

        def start() -> StreamingQuery:
            stream = source.readStream.format("ringcast").option("maxRowsPerBatch", 10)
            writer = stream.load(str(journal)).writeStream.foreachBatch(spoil)
            writer = writer.option("checkpointLocation", str(tmp_path / "check"))
            return writer.trigger(availableNow=True).start()

        with JournalWriter(journal, "prices", 1) as one:
            fill(one, 7, 1, 25, size=7)
            with pytest.raises(PySparkException, match="the table is not there"):
                start().awaitTermination(WAIT)
            with JournalWriter(journal, "prices", 2) as other:
                fill(other, 7, 1, 30)
            assert start().awaitTermination(WAIT)
        assert [number for number, _ in seen] == [0, 1, 1, 2]
        assert seen[1] == seen[2]
        assert seen[0][1] + seen[2][1] + seen[3][1] == expected(7, 1, 30)

    def test_a_stream_of_one_sender_goes_on_past_the_others(
        self, source: SparkSession, journal: Path
    ) -> None:
        table = Table(source, journal, sender=8, maxRowsPerBatch=20)
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 50)
            fill(writer, 8, 1, 30)
            assert sum(table.run()) == 30
            fill(writer, 8, 31, 35)
            assert sum(table.run()) == 5
        assert table.rows() == expected(8, 1, 35)

    def test_what_retention_took_is_an_error_unless_asked_for(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            fill(writer, 7, 1, 10)
            strict, lax = Table(source, journal), Table(source, journal, failOnDataLoss="false")
            strict.run()
            fill(writer, 7, 11, 30)
            gone = list(Journal(journal).segments[:2])
            remove(FaultyFiles(), Layout(journal), stem_of("prices", 1), gone)
            with pytest.raises(PySparkException, match=r"retention removed .*11-20 of sender 7"):
                strict.run()
            lax.run()
        assert lax.rows() == expected(7, 1, 10) + expected(7, 21, 30)

    def test_it_begins_at_a_journal_without_messages(
        self, source: SparkSession, journal: Path
    ) -> None:
        with JournalWriter(journal, "prices", 1) as writer:
            table = Table(source, journal)
            query = table.start()
            fill(writer, 7, 1, 3)
            query.processAllAvailable()
            query.stop()
        assert table.rows() == expected(7, 1, 3)
