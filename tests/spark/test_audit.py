"""The audit on Spark: it finds what the checks in plain Python find, and names what is broken."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.spark.audit import figures
from ringcast.spark.traces import blame
from ringcast.trace.check import check
from ringcast.trace.judging.evidence import evidence
from ringcast.trace.schema import Row, signed
from ringcast.trace.table import write_rows
from ringcast.trace.violations import Violation
from ringcast.trace.writer import TraceWriter
from tests.unit.trace.histories import good_history
from tests.unit.trace.spoils import SPOILS, spoil

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def trace(spark: SparkSession, place: Path, rows: Sequence[Row]) -> DataFrame:
    """The rows as a trace on disk, in two files."""
    place.mkdir(exist_ok=True)
    write_rows(place / "0.parquet", rows[: len(rows) // 2])
    write_rows(place / "1.parquet", rows[len(rows) // 2 :])
    return rs.read_trace(spark, place)


def as_stored(violation: Violation) -> Violation:
    """A violation with addresses as they stand in a file."""
    sender, peer = violation.sender, violation.peer
    return Violation(
        violation.cause,
        signed(violation.member),
        violation.view,
        signed(violation.view_by),
        None if sender is None else signed(sender),
        None if peer is None else signed(peer),
        violation.first,
        violation.last,
    )


# --- many histories in one trace: their members are strangers, so nothing mixes -------------------


class Case(NamedTuple):
    """A history, and the guarantees that it was made to break."""

    rows: list[Row]
    broken: set[str]


def make_case(seed: int) -> Case:
    """One history for each way to spoil it, then some with none to three ways at once."""
    chance = random.Random(seed)
    names: list[str | None] = [None] * (seed % 4)
    if seed < 2 * len(SPOILS):
        names = [sorted(SPOILS)[seed // 2]]
    rows, broken = good_history(seed), set[str]()
    for name in names:
        if spoilt := spoil(rows, chance, name):
            rows = spoilt.rows
            broken.add(spoilt.guarantee)
    return Case(rows, broken)


CASES = [make_case(seed) for seed in range(2 * len(SPOILS) + 30)]


@pytest.fixture(scope="module")
def spoilt(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> rs.Report:
    rows = [row for case in CASES for row in case.rows]
    return rs.audit(trace(spark, tmp_path_factory.mktemp("spoilt"), rows))


def test_good_histories_are_clean(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row for seed in range(40) for row in good_history(seed)]
    report = rs.audit(trace(spark, tmp_path, rows))
    assert report.found == []
    assert (report.verdict, report.counts) == ("clean", {})
    assert report.violations.count() == 0
    assert str(report) == "clean: no guarantee was broken"


def test_the_audit_and_the_checks_agree(spoilt: rs.Report) -> None:
    expected = [as_stored(violation) for case in CASES for violation in check(case.rows)]
    assert Counter(spoilt.found) == Counter(expected)
    assert spoilt.counts == dict(Counter(violation.guarantee for violation in spoilt.found))


def test_every_spoilt_history_is_found_and_named(spoilt: rs.Report) -> None:
    broken = set[str]()
    for case in CASES:
        members = {signed(row.member) for row in case.rows}
        found = {v.guarantee for v in spoilt.found if v.member in members}
        if len(case.broken) == 1:
            assert case.broken <= found
            broken |= case.broken
    assert broken == {guarantee for guarantee, _ in SPOILS.values()}
    assert spoilt.verdict == "broken"


def test_violations_come_with_their_rows(spoilt: rs.Report) -> None:
    by_member = {signed(row.member): case for case in CASES for row in case.rows}
    told = spoilt.violations.collect()
    assert len(told) == len(spoilt.found)
    for line, violation in zip(told, spoilt.found, strict=True):
        assert (line["guarantee"], line["what"]) == (violation.guarantee, violation.what)
        case = by_member[violation.member]
        (match,) = {v for v in check(case.rows) if as_stored(v) == violation}
        expected = [(r.kind, r.seqno, r.count, r.at) for r in evidence(match, case.rows)]
        shown = [(r["kind"], r["seqno"], r["count"], r["at"]) for r in line["rows"]]
        assert Counter(shown) == Counter(expected)


AUDIT = """
import sys
import ringcast.spark as rs
quick = {"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
spark = rs.session(sys.argv[1], **quick, **{"spark.sql.shuffle.partitions": 2})
report = rs.audit(rs.read_trace(spark, sys.argv[2]))
print(*map(repr, report.found), report.violations.count(), sep="\\n")
"""


@pytest.mark.slow
def test_a_cluster_gives_the_same_answers(cluster: str, tmp_path: Path) -> None:
    rows = [row for case in CASES[::6] for row in case.rows]
    write_rows(tmp_path / "a.parquet", rows)
    command = [sys.executable, "-c", AUDIT, cluster, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = [as_stored(violation) for violation in check(rows)]
    assert sorted(done.stdout.splitlines()) == sorted([*map(repr, expected), str(len(expected))])


# --- single rules --------------------------------------------------------------------------------


def test_bounds_are_those_that_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        *(Row(m, 1, 1, None, "view", at=0, members=(1, 2)) for m in (1, 2)),
        Row(1, 1, 1, 1, "window", at=5, low=10, delivered=12, high=30),
        Row(1, 1, 1, 1, "sent", 1, 2, at=10, digest=5),
        Row(1, 1, 1, 1, "delivered", 1, 2, pos=0, at=12, digest=5, sent_at=10),
        Row(2, 1, 1, 1, "skipped", 1, 2, pos=0, at=60),
        Row(2, 1, 1, 1, "delivered", 3, 1, pos=2, at=61, digest=6, sent_at=10),
        Row(1, 1, 1, 1, "purged", 1, 3, at=40, low=3, delivered=3, high=3),
    ]
    written = trace(spark, tmp_path, rows)
    for rules in ({}, {"capacity": 20, "skew_us": 21}, {"capacity": 19, "skips": False}):
        expected = check(rows, **rules)  # type: ignore[arg-type]  # names and types as written
        found = rs.audit(written, **rules).found  # type: ignore[arg-type]  # the same
        assert Counter(found) == Counter(expected)
        assert {v.cause for v in found} >= ({"capacity"} if "skips" in rules else set())


def test_a_thousand_gaps_are_counted_and_twenty_are_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [
        Row(1, 1, 1, None, "view", at=0, members=(1,)),
        *(Row(1, 1, 1, 1, "delivered", 2 * n, 1, pos=n, at=n, sent_at=n) for n in range(1_001)),
    ]
    report = rs.audit(trace(spark, tmp_path, rows), limit=5)
    assert report.counts == {"gap": 1_000}
    assert len(report.found) == 20
    assert report.violations.count() == 5


def test_a_lost_row_and_a_doubled_one_do_not_make_up_for_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = [(1, 4), (5, 3), (5, 3), (11, 4)]  # 8 to 10 are lost, and as many are doubled
    rows = [
        Row(1, 1, 1, None, "view", at=0, members=(1,)),
        *(Row(1, 1, 1, 1, "delivered", f, n, pos=f - 1, at=f, sent_at=0) for f, n in runs),
    ]
    report = rs.audit(trace(spark, tmp_path, rows))
    assert report.counts == {"duplicate": 1, "lost-trace-row": 1}


def test_what_writers_wrote_is_audited(spark: SparkSession, tmp_path: Path) -> None:
    members, names = [2**64 - 9, 7, 2**63], ["a", "b", "c"]
    for member in members:
        with TraceWriter(tmp_path, member) as writer:
            writer.append_view(1, members[0], members, names, 1_000)
            writer.append_sent(1, 600, 6_000, 2_000)
            for sender in members:
                for first in range(1, 601, 100):
                    writer.append_delivered(sender, first, 100, 1_000, 2_000, 2_500 + first)
            writer.append_purged(1, 600, 600, 600, 9_000)
            writer.append_closed(9_500)
    report = rs.audit(rs.read_trace(spark, tmp_path), capacity=600)
    assert report.verdict == "clean"
    assert report.names == {signed(m): n for m, n in zip(members, names, strict=True)}


def test_a_trace_that_spark_wrote_again_is_still_one(spark: SparkSession, tmp_path: Path) -> None:
    rows = good_history(3)
    trace(spark, tmp_path / "a", rows).coalesce(1).write.parquet(str(tmp_path / "b"))
    again = rs.read_trace(spark, tmp_path / "b")
    assert again.count() == len(rows)
    assert rs.audit(again).verdict == "clean"


# --- figures -------------------------------------------------------------------------------------


def test_figures_are_what_can_be_counted_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    second = 1_000_000
    rows = [
        *(Row(m, 1, 1, None, "view", at=0, members=(1, 2)) for m in (1, 2)),
        Row(1, 1, 1, 1, "sent", 1, 100, at=0, sent_at=0, nbytes=1_000),
        Row(1, 1, 1, 1, "delivered", 1, 100, pos=0, at=1_000, sent_at=0, nbytes=1_000),
        Row(2, 1, 1, 1, "delivered", 1, 98, pos=0, at=1_000, sent_at=0, nbytes=980),
        Row(2, 1, 1, 1, "delivered", 99, 2, pos=98, at=9_000, sent_at=0, nbytes=20),
        Row(2, 1, 1, 1, "requested", 99, 2, at=2_000, peer=1),
        Row(1, 1, 1, 1, "resent", 99, 2, at=3_000, peer=2),
        Row(1, 1, 1, 1, "blocked", at=4 * second, sent_at=1 * second, peer=2),
        Row(1, 1, 1, 1, "window", at=3_000, low=0, delivered=98, high=100),
        *(Row(m, 1, 1, None, "closed", at=12 * second - 1) for m in (1, 2)),
    ]
    report = rs.audit(trace(spark, tmp_path, rows))
    assert report.verdict == "clean"
    totals = {
        (f.figure, f.member, f.peer): f.value for f in report.measures.figures if f.at is None
    }
    assert totals["latency_p50", 2, 1] == pytest.approx(1_000, rel=0.023)
    assert totals["latency_p99", 2, 1] == pytest.approx(9_000, rel=0.023)
    assert totals["latency_p99", None, None] == pytest.approx(9_000, rel=0.023)
    assert ("latency_p50", 1, 1) not in totals, "a member gets its own messages at once"
    assert totals["delivered_messages", None, None] == 200
    assert totals["sent_bytes", 1, None] == 1_000
    assert totals["retransmission_ratio", 1, None] == pytest.approx(0.02)
    assert totals["stalled_seconds", 1, 2] == pytest.approx(3)
    assert totals["window_max", None, None] == 100
    assert totals["views", None, None] == 1
    rates = report.measures.of("delivered_messages_per_second")
    assert {f.at for f in rates} == {0}
    assert sum(f.value for f in rates if f.member) * 12 / 120 == pytest.approx(200)
    assert report.figures.count() == len(report.measures.figures)


def test_of_a_large_group_the_driver_gets_what_a_page_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ann", "ben", "cat")
    rows = [
        *(Row(m, 1, 1, None, "view", at=0, members=(1, 2, 3), names=names) for m in (1, 2, 3)),
        *(Row(m, 1, 1, m, "sent", 1, 1, at=10, sent_at=10, nbytes=9) for m in (1, 2, 3)),
        *(
            Row(m, 1, 1, s, "delivered", 1, 1, pos=0, at=20 + 9**m * s, sent_at=10, nbytes=9)
            for m in (1, 2, 3)
            for s in (1, 2, 3)
        ),
        *(Row(1, 1, 1, 1, "resent", 1, 1, at=30, peer=peer) for peer in (2, 3)),
        *(Row(m, 1, 1, None, "closed", at=90_000) for m in (1, 2, 3)),
    ]
    whole = rs.audit(trace(spark, tmp_path, rows)).measures.figures
    monkeypatch.setattr(figures, "SHOWN_MAX", 2)
    report = rs.audit(rs.read_trace(spark, tmp_path))
    every = [figures.Figure(*row) for row in report.figures.collect()]
    assert sorted(every, key=repr) == sorted(whole, key=repr)
    shown = report.measures.figures
    assert set(shown) < set(whole)
    assert {f.member for f in shown if f.at is not None} == {1, 2, None}
    pairs = {(f.member, f.peer) for f in shown if f.figure == "latency_p50" and f.at is None}
    assert pairs == {(1, 2), (2, 1), (1, 3), (2, 3), (3, 2), (None, None)}
    ratios = {f.member: f.value for f in shown if f.figure == "retransmission_ratio"}
    assert ratios == {1: 2, 2: 0, 3: 0, None: 2 / 3}


# --- what is not a trace -------------------------------------------------------------------------


def test_what_is_no_trace_is_told_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    empty, foreign, other, text = (tmp_path / n for n in ("empty", "foreign", "other", "text"))
    for place in (empty, foreign, other, text):
        place.mkdir()
    (empty / ".half.parquet.tmp").write_text("")
    pq.write_table(pa.table({"a": [1]}), foreign / "x.parquet")
    write_rows(other / "a.parquet", [Row(1, 1, 1, None, "view")])
    changed = pq.read_table(other / "a.parquet").set_column(11, "at", pa.array(["noon"]))
    pq.write_table(changed, other / "b.parquet")
    (text / "notes.txt").write_text("hello")
    sentences = {
        tmp_path / "nowhere": "There is no directory",
        empty: "There is no trace in",
        foreign: "x.parquet is not a trace of Ringcast: it has no column 'member'",
        other: "b.parquet is not a trace of Ringcast: its column 'at' is of another type",
        text: r"notes.txt is not a trace of Ringcast: it does not end with .parquet",
    }
    for place, sentence in sentences.items():
        with pytest.raises(ConfigError, match=sentence):
            rs.read_trace(spark, place)
    for place in (tmp_path / "nowhere", foreign):
        with pytest.raises(ConfigError, match=r"no trace|not a trace"):
            rs.read_trace(spark, place.as_uri())
    with pytest.raises(ConfigError, match="it has no column 'member'"):
        rs.audit(spark.range(3))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    rows = good_history(3)
    write_rows(tmp_path / "0.parquet", rows)
    write_rows(tmp_path / "1.parquet", rows)
    content = bytearray((tmp_path / "1.parquet").read_bytes())
    content[4:600] = b"\xff" * 596
    (tmp_path / "1.parquet").write_bytes(content)
    told = str(blame(tmp_path, ValueError("Spark's own words")))
    assert told.startswith(f"{tmp_path / '1.parquet'} is damaged")
    (tmp_path / "1.parquet").unlink()
    assert "Spark's own words" in str(blame(tmp_path, ValueError("Spark's own words")))


def test_who_left_no_trace_or_no_end_of_it_is_told(spark: SparkSession, tmp_path: Path) -> None:
    both = (1, 2, 3)
    rows = [
        *(Row(m, 1, 1, None, "view", at=0, members=both, names=("a", "b", "c")) for m in (1, 2)),
        Row(1, 1, 1, None, "closed", at=20),
    ]
    report = rs.audit(trace(spark, tmp_path / "trace", rows))
    assert (report.verdict, report.untraced, report.unfinished) == ("clean", [3], [2])
