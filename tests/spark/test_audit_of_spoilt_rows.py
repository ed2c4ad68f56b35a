"""The audit of rows that no member wrote: Spark finds what plain Python finds."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.spark.audit.finding import senders
from ringcast.spark.audit.report_text import figures, plain, table, violations
from ringcast.spark.audit_directory import AuditRequest, audit_directory
from ringcast.spark.traces import find_traces
from ringcast.trace.check import check
from ringcast.trace.schema import Row, signed
from ringcast.trace.table import SCHEMA, write_rows
from ringcast.trace.violations import Violation
from ringcast.trace.writer import TraceWriter
from tests.spark.test_audit import as_stored, trace
from tests.unit.trace.histories import good_history
from tests.unit.trace.spoils import scramble

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HOUR = 3_600_000_000


def nullable_trace(spark: SparkSession, place: Path, rows: Sequence[Row]) -> DataFrame:
    """The rows as a trace in which every column may be null."""
    columns = {
        field.name: pa.array([_stored(getattr(row, field.name)) for row in rows], field.type)
        for field in SCHEMA
    }
    place.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), place / "0.parquet")
    return rs.read_trace(spark, place)


def _stored(value: object) -> object:
    if isinstance(value, tuple):
        return [_stored(one) for one in value]
    return signed(value) if isinstance(value, int) else value


def two_members(at: int = 15) -> list[Row]:
    """Two members in a view, each of which sends five messages to both."""
    return [
        *(Row(m, 1, 1, None, "view", at=0, members=(1, 2), names=("ann", "ben")) for m in (1, 2)),
        *(Row(m, 1, 1, m, "sent", 1, 5, at=10, sent_at=10, nbytes=50) for m in (1, 2)),
        *(
            Row(m, 1, 1, s, "delivered", 1, 5, pos=0, at=11 if m == s else at, sent_at=10)
            for m in (1, 2)
            for s in (1, 2)
        ),
        *(Row(m, 1, 1, None, "closed", at=at + 9) for m in (1, 2)),
    ]


@pytest.mark.parametrize("driver_lines", [senders.DRIVER_LINES_MAX, 0])
def test_spark_and_plain_python_agree_on_scrambled_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_lines: int
) -> None:
    """Also where the lines of senders are judged in tasks, as those of a large group are."""
    monkeypatch.setattr(senders, "DRIVER_LINES_MAX", driver_lines)
    rows = list[Row]()
    for seed in range(150):
        rng, history = random.Random(seed), good_history(seed % 50)
        history = [_renamed(row, seed) for row in history]
        for _ in range(rng.randint(1, 3)):
            history = scramble(history, rng)
        rows += history
    expected = Counter(as_stored(violation) for violation in check(rows))
    report = rs.audit(nullable_trace(spark, tmp_path, rows))
    found = Counter(report.found)
    assert found - expected == Counter()
    assert expected - found == Counter()
    assert {"unknown-kind", "malformed", "others-row"} <= set(report.causes)
    assert len(report.causes) > 12
    assert report.measures.figures, "figures can be had as well"


def _renamed(row: Row, seed: int) -> Row:
    """The row with addresses that no other seed has."""

    def other(address: int | None) -> int | None:
        return None if address is None else (address * 1_000_003 + seed * 7_919) % 2**64

    members = None if row.members is None else tuple(other(m) or 0 for m in row.members)
    return row._replace(
        member=other(row.member) or 0,
        view_by=other(row.view_by) or 0,
        sender=other(row.sender),
        peer=other(row.peer),
        members=members,
    )


def test_latency_counts_deliveries_to_others(spark: SparkSession, tmp_path: Path) -> None:
    report = rs.audit(trace(spark, tmp_path, two_members(at=1_010)))
    assert report.verdict == "clean"
    assert figures(report)["latency_p50"] == pytest.approx(1_000, rel=0.03)
    assert plain(report)["figures"]["latency_p50"] == pytest.approx(1_000, rel=0.03)
    assert table(report)["latency"].startswith("median 1.0 ms")
    assert "1 ms</b><span>latency to others, median" in report.html()
    assert figures(report)["delivered_messages"] == 20, "deliveries are counted all the same"


def test_a_member_alone_has_no_latency(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        Row(1, 1, 1, None, "view", at=0, members=(1,)),
        Row(1, 1, 1, 1, "sent", 1, 5, at=10),
        Row(1, 1, 1, 1, "delivered", 1, 5, pos=0, at=11, sent_at=10),
    ]
    report = rs.audit(trace(spark, tmp_path, rows))
    assert figures(report)["latency_p50"] is None
    assert table(report)["latency"] == "no deliveries to another member"
    assert "No message was delivered to another member" in report.html()


def test_traces_that_are_read_twice_head_the_list(spark: SparkSession, tmp_path: Path) -> None:
    for place in (tmp_path / "trace", tmp_path / "trace" / "copy"):
        place.mkdir()
        write_rows(place / "a.parquet", two_members())
    report = rs.audit(rs.read_trace(spark, tmp_path / "trace"))
    assert report.verdict == "broken"
    (cause,) = report.root_causes
    assert cause.startswith("Every view row of ann, ben is there 2 times: the same traces are read")
    lines = list(violations(report))
    assert cause in lines[0]
    assert lines[1].startswith("disagreement: installed the view a second time (2 times)")
    html = report.html()
    assert html.index("Root causes") < html.index("Throughput") < html.index("one by one")
    assert plain(report)["root_causes"] == [cause]


def test_a_clock_that_is_hours_off_asks_for_skew(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row._replace(at=row.at + 2 * HOUR) if row.member == 2 else row for row in two_members()]
    rows = [
        row._replace(sent_at=10 + 2 * HOUR) if row.sender == 2 and row.sent_at else row
        for row in rows
    ]
    written = trace(spark, tmp_path, rows)
    report = rs.audit(written)
    assert [violation.cause for violation in report.found] == ["before-sent"]
    (cause,) = report.root_causes
    assert cause.startswith("The clocks of ann, ben are 2.0 hours apart. Audit with --skew 792")
    assert "not known of 5 deliveries" in table(report)["latency"]
    assert rs.audit(written, skew_us=3 * HOUR).verdict == "clean"


def test_a_missing_view_row_is_one_violation(spark: SparkSession, tmp_path: Path) -> None:
    rows = two_members()
    del rows[1]
    report = rs.audit(trace(spark, tmp_path, rows))
    assert report.found == [Violation("unrecorded-view", 2, 1, 1)]
    assert report.untraced == [], "a member with rows is not untraced"


# --- places ---------------------------------------------------------------------------------------


def test_sub_directories_globs_and_partitions_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = two_members()
    for host in ("one", "two"):
        (tmp_path / "nested" / host).mkdir(parents=True)
        some = [row for row in rows if (row.member == 1) == (host == "one")]
        write_rows(tmp_path / "nested" / host / "a.parquet", some)
    (tmp_path / "nested" / "README.txt").write_text("hello")
    nested = rs.read_trace(spark, tmp_path / "nested")
    assert nested.count() == len(rows)
    assert rs.read_trace(spark, tmp_path / "nested" / "o*").count() == len(rows) // 2
    for key in ("kind", "member"):
        place = tmp_path / f"by-{key}"
        nested.write.partitionBy(key).parquet(str(place))
        again = rs.read_trace(spark, place)
        assert again.columns == nested.columns
        assert rs.audit(again).verdict == "clean"
        assert again.count() == len(rows)
    (left_out,) = find_traces(str(tmp_path / "nested")).ignored
    assert left_out.name == "README.txt"
    with pytest.raises(ConfigError, match=r"There is nothing like .*nowhere\*"):
        rs.read_trace(spark, tmp_path / "nowhere*")


def test_a_damaged_file_is_named_before_anything_is_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    with TraceWriter(tmp_path, 7) as writer:
        writer.append_view(1, 7, [7], ["ann"], 100)
        writer.append_sent(1, 5, 50, 110)
    (file,) = tmp_path.glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"{file.name} is damaged"):
        rs.read_trace(spark, tmp_path)


def test_spark_compares_the_checksums_of_pages(spark: SparkSession, tmp_path: Path) -> None:
    """Where the name has no checksum, as after a rename, pages still have theirs."""
    write_rows(tmp_path / "a.parquet", good_history(3))
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    column = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(5)
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    content[end - 3] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    said: list[str] = []
    with pytest.raises(ConfigError, match=r"a\.parquet is damaged"):
        audit_directory(AuditRequest(directory=str(tmp_path)), said.append, spark)
