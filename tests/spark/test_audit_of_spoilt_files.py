"""The audit of directories that no group left: what can be read is judged, the rest is named."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import ringcast.spark as rs
from ringcast.cli.main import main
from ringcast.errors import ConfigError, LocalError
from ringcast.spark import audit_directory, traces
from ringcast.spark.audit.report_text import verdict
from ringcast.spark.traces import blame
from ringcast.trace.check import check
from ringcast.trace.table import NULLABLE, SCHEMA, read_file, write_rows
from ringcast.trace.writer import TraceWriter
from tests.spark.test_audit_of_spoilt_rows import two_members

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Spoil = Callable[[Path], object]
"""Spoils a directory with the files a.parquet and b.parquet, one per member."""


def write_two(place: Path) -> Path:
    """One file per member."""
    place.mkdir(parents=True)
    for member, name in ((1, "a"), (2, "b")):
        write_rows(place / f"{name}.parquet", [r for r in two_members() if r.member == member])
    return place


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(file)), file)


def of_type(name: str, kind: pa.DataType) -> Spoil:
    def spoil(place: Path) -> None:
        fields = [f.with_type(kind) if f.name == name else f for f in NULLABLE]
        rewritten(place / "b.parquet", lambda table: table.cast(pa.schema(fields)))

    return spoil


def doubled(name: str) -> Spoil:
    def spoil(place: Path) -> None:
        rewritten(place / "b.parquet", lambda t: t.append_column(name, t.column("seqno")))

    return spoil


def below_a_colon(place: Path) -> None:
    (place / "12:00").mkdir()
    (place / "b.parquet").rename(place / "12:00" / "b.parquet")


def only_in_a_name(place: Path) -> None:
    """Of two files, one as Spark writes it with `partitionBy("member")`."""
    (place / "member=1").mkdir()
    (place / "a.parquet").rename(place / "member=1" / "a.parquet")
    rewritten(place / "member=1" / "a.parquet", lambda t: t.drop_columns(["member"]))


def beside_a_name(place: Path) -> None:
    """A file without a column that the directory of another file names."""
    only_in_a_name(place)
    rewritten(place / "b.parquet", lambda t: t.drop_columns(["member"]))


REFUSED: dict[str, tuple[Spoil, str]] = {
    "cut short": (
        lambda place: os.truncate(place / "b.parquet", 500),
        r"b\.parquet is not a trace of Ringcast: it is not a Parquet file",
    ),
    "empty": (
        lambda place: (place / "b.parquet").write_bytes(b""),
        r"b\.parquet is not a trace of Ringcast: it is not a Parquet file",
    ),
    "a pipe": (
        lambda place: os.mkfifo(place / "c.parquet"),
        r"c\.parquet is not a trace of Ringcast: it is not a file",
    ),
    "a dead link": (
        lambda place: (place / "c.parquet").symlink_to("nowhere"),
        r"c\.parquet is not a trace of Ringcast: it is not a file",
    ),
    "a link in a circle": (
        lambda place: (place / "again").symlink_to(place),
        "again is a link to a directory above it: remove it",
    ),
    "a colon in a name": (
        lambda place: (place / "b.parquet").rename(place / "12:00.parquet"),
        r"12:00\.parquet has a colon in its name: rename it",
    ),
    "a colon on the way": (below_a_colon, r"b\.parquet has a colon in its name: rename it"),
    "a column in the name of one directory": (
        only_in_a_name,
        r"member=1/a\.parquet has the column 'member' only in the name of its directory, and "
        r".*b\.parquet in the file: audit files of one kind only",
    ),
    "a column in no name": (beside_a_name, r"b\.parquet .*: it has no column 'member'"),
    "narrow numbers": (
        of_type("seqno", pa.int32()),
        r"b\.parquet .*: its column 'seqno' is of another type, int32 for int64",
    ),
    "times": (of_type("at", pa.timestamp("us")), r"'at' is of another type, timestamp\[us\]"),
    "a doubled column": (doubled("seqno"), "it has the column 'seqno' more than once"),
    "a column that Spark takes for another": (
        doubled("SeqNo"),
        "it has the column 'seqno' more than once",
    ),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = write_two(tmp_path / "trace")
    spoil, sentence = REFUSED[way]
    spoil(place)
    with pytest.raises(ConfigError, match=sentence):
        rs.read_trace(spark, place)


def test_traces_that_other_tools_wrote_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Polars and pandas write other types of Arrow for the same types of Parquet."""
    place = write_two(tmp_path / "run [1] {a,b}*")
    large = {
        pa.string(): pa.large_string(),
        pa.list_(pa.string()): pa.large_list(pa.large_string()),
        pa.list_(pa.int64()): pa.large_list(pa.int64()),
    }
    fields = [field.with_type(large.get(field.type, field.type)) for field in NULLABLE]
    rewritten(place / "a.parquet", lambda table: table.cast(pa.schema(fields)))
    rewritten(
        place / "b.parquet",
        lambda t: t.set_column(4, "kind", t["kind"].dictionary_encode()).select(SCHEMA.names[::-1]),
    )
    report = rs.audit(rs.read_trace(spark, place))
    assert verdict(report) == "CLEAN: every guarantee held"
    assert sorted(report.names.values()) == ["ann", "ben"]


@pytest.mark.parametrize("name", ["member=ann", "view=7", "kind=x"])
def test_a_directory_may_be_called_like_a_column(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """The files have the column, so that what the directory says of it does not count."""
    write_two(tmp_path / "trace" / name)
    rows = rs.read_trace(spark, tmp_path / "trace")
    assert verdict(rs.audit(rows)) == "CLEAN: every guarantee held"
    rows.write.partitionBy("kind", "view").parquet(str(tmp_path / "spark"))
    again = rs.read_trace(spark, tmp_path / "spark")
    assert sorted(again.collect(), key=repr) == sorted(rows.collect(), key=repr)


def test_frames_of_other_types_are_judged_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.read.parquet(str(write_two(tmp_path / "trace")))
    short = rows.withColumn("seqno", F.col("seqno").cast("int"))
    assert rs.audit(short).verdict == "clean"
    for column, kind in (("seqno", "string"), ("at", "double"), ("members", "string")):
        frame = rows.withColumn(column, F.col(column).cast(kind))
        with pytest.raises(ConfigError, match=f"'{column}' is of another type, {kind} for"):
            rs.audit(frame)


def test_of_many_files_the_last_one_is_looked_at_too(tmp_path: Path) -> None:
    place = write_two(tmp_path / "trace")
    content = (place / "a.parquet").read_bytes()
    for number in range(1_001):
        (place / f"a{number:04}.parquet").write_bytes(content)
    os.truncate(place / "b.parquet", 500)
    assert str(blame(place, ValueError("Spark's words"))).startswith(f"{place / 'b.parquet'} is")


def test_of_many_files_each_that_no_member_has_named_is_looked_into(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would read nulls for the column that is missing, and the audit would tell of those."""
    monkeypatch.setattr(traces, "FOOTERS_MAX", 1)
    place = write_two(tmp_path / "trace")
    for member in (3, 4):
        with TraceWriter(place, member) as writer:
            writer.append_view(1, member, [member], ["x"], 100)
    assert rs.audit(rs.read_trace(spark, place)).verdict == "clean"
    rewritten(place / "b.parquet", lambda table: table.drop_columns(["seqno"]))
    with pytest.raises(
        ConfigError, match=r"b\.parquet is not a trace .*: it has no column 'seqno'"
    ):
        rs.read_trace(spark, place)


def test_words_of_java_are_left_out() -> None:
    def told(said: str) -> str:
        return str(blame("s3a://bucket/trace", ValueError(said)))

    lacking = "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class S3A not found"
    assert told(lacking).startswith("Spark cannot read s3a:// here: give it the package for that")
    said = "An error occurred while calling o1.load.\n: java.io.IOException: no route to the store"
    assert told(said).endswith(
        "could not read the traces in s3a://bucket/trace: no route to the store"
    )


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit status of a command, and what it prints."""
    status = main(["audit", *words])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_only_a_broken_guarantee_has_exit_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(write_two(tmp_path / "trace"))
    assert printed(capsys, "") == (
        2,
        "ringcast audit: the directory of the traces is empty: name it\n",
    )
    status, told = printed(capsys, trace, "--skew", "1e300")
    assert (status, told.splitlines()[-1]) == (
        2,
        "ringcast audit: --skew is 1e+300: give 0 to 1,000,000,000 seconds",
    )
    status, told = printed(capsys, trace, "--follow", "--grace", "1e300")
    assert (status, "the grace is 1e+300: give 0 to 604,800 seconds" in told) == (2, True)
    for error in (
        LocalError("another session runs"),
        OSError(28, "the disk is full"),
        MemoryError(),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(audit_directory, "audit_directory", fail)
        status, told = printed(capsys, trace)
        assert status == 2, told
        assert told.startswith("ringcast audit: there is no verdict: ")


def test_names_cannot_change_the_terminal(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The session goes on after the command."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    names = ("ann", "\x1b]0;evil\x07\u202e\nCLEAN: every guarantee held")
    rows = [r._replace(names=names) if r.kind == "view" else r for r in two_members()[:-1]]
    write_rows(tmp_path / "a.parquet", [row for row in rows if row.kind != "delivered"])
    status, told = printed(capsys, str(tmp_path))
    assert status == 1
    assert "\\x1b]0;evil" in told
    assert not {"\x1b", "\x07", "\u202e"} & set(told)
    assert "\nCLEAN" not in told


def test_a_trace_without_rows_is_not_clean(spark: SparkSession, tmp_path: Path) -> None:
    place = write_two(tmp_path / "trace")
    for file in place.iterdir():
        rewritten(file, lambda table: table.slice(0, 0))
    with pytest.raises(ConfigError, match="says nothing about any view, so there is nothing to"):
        rs.audit(rs.read_trace(spark, place))


def test_a_clean_verdict_says_of_how_many_members(spark: SparkSession, tmp_path: Path) -> None:
    place = write_two(tmp_path / "trace")
    (place / "b.parquet").unlink()
    told = verdict(rs.audit(rs.read_trace(spark, place)))
    assert told == "CLEAN: every guarantee held, as far as the traces of 1 of 2 members show"


def test_a_copy_without_view_rows_is_the_root_cause(spark: SparkSession, tmp_path: Path) -> None:
    """As every file of a member but its first."""
    place = write_two(tmp_path / "trace")
    rows = [row for row in two_members() if row.member == 1 and row.kind in ("sent", "delivered")]
    write_rows(place / "c.parquet", rows)
    report = rs.audit(rs.read_trace(spark, place))
    assert set(report.causes) == {"repeated", "numbered-twice"}
    (cause,) = report.root_causes
    assert cause.startswith("Rows of ann are there twice, alike in everything: a file of the trace")
    late = [row._replace(at=row.at + 1) for row in rows]
    write_rows(place / "c.parquet", late)
    report = rs.audit(rs.read_trace(spark, place))
    assert set(report.causes) == {"repeated", "numbered-twice"}
    assert report.root_causes == [], "these were written at another moment: no copy"


def test_a_view_with_a_null_for_a_member_cannot_be_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = write_two(tmp_path / "trace")
    lists = pa.array([[1, None], *[None] * 4], SCHEMA.field("members").type)
    rewritten(place / "b.parquet", lambda t: t.set_column(16, "members", lists))
    report = rs.audit(rs.read_trace(spark, place))
    assert report.causes == {"malformed": 1, "unrecorded-view": 1}
    rows = [row for file in sorted(place.iterdir()) for row in read_file(file)]
    assert check(rows) == report.found


def test_plain_python_tells_of_a_null_member_too(tmp_path: Path) -> None:
    place = write_two(tmp_path / "trace")
    rewritten(
        place / "a.parquet",
        lambda t: t.cast(NULLABLE).set_column(0, "member", pa.nulls(len(t), pa.int64())),
    )
    rows = [row for file in sorted(place.iterdir()) for row in read_file(file)]
    assert {violation.cause for violation in check(rows)} == {"malformed"}
