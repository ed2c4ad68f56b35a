"""The audit of what groups really did, simulated and live: clean as it is, named when spoilt."""

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast import presets
from ringcast.sim import World
from ringcast.sim.trace import SimulatedTrace
from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.schema import Row, signed
from ringcast.trace.table import write_rows
from tests.runtime.test_trace import exchange, leave_all, traced
from tests.spark.test_audit import Case, as_stored
from tests.unit.trace.replay import NAMED_BY, kind_of, replay
from tests.unit.trace.simulations import simulated_history, whole_seeds
from tests.unit.trace.spoils import SPOILS, UNSEEN, spoil

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NINE = {
    "gap": "gap",
    "duplicate": "duplicate",
    "swap": "order",
    "lost row": "lost-trace-row",
    "head": "missing-head",
    "tail": "missing-tail",
    "other view": "wrong-view",
    "early purge": "early-purge",
    "survivors": "disagreement",
}
"""Ways to spoil a history, and the guarantee that an audit has to name."""


def spoilt_cases() -> list[Case]:
    """Simulated histories, each spoilt in one way: all ways there are, the nine of them twice."""
    cases = []
    seeds = iter(whole_seeds(90))
    for way in [*sorted(SPOILS), *NINE]:
        spoilt = None
        while spoilt is None:
            seed = next(seeds)
            # Spoils cut runs anew, for which they would need the payloads, but for this one.
            rows = list(simulated_history(seed, digests=way == "contents"))
            spoilt = spoil(rows, random.Random(seed), way)
        cases.append(Case(spoilt.rows, {spoilt.guarantee}))
    return cases


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return spoilt_cases()


@pytest.fixture(scope="module")
def found(
    spark: SparkSession, cases: list[Case], tmp_path_factory: pytest.TempPathFactory
) -> rs.Report:
    place = tmp_path_factory.mktemp("spoilt")
    write_rows(place / "a.parquet", [row for case in cases for row in case.rows])
    return rs.audit(rs.read_trace(spark, place))


def test_what_simulated_groups_did_is_clean(spark: SparkSession, tmp_path: Path) -> None:
    seeds = whole_seeds(10)
    for seed in seeds:
        write_rows(tmp_path / f"{seed}.parquet", simulated_history(seed))
    report = rs.audit(rs.read_trace(spark, tmp_path), skips=False)
    assert report.found == []
    assert report.measures.of("delivered_messages")


def test_the_audit_the_checks_and_the_simulator_agree(found: rs.Report, cases: list[Case]) -> None:
    expected = [as_stored(violation) for case in cases for violation in check(case.rows)]
    assert Counter(found.found) == Counter(expected)
    for way, case in zip([*sorted(SPOILS), *NINE], cases, strict=True):
        (guarantee,) = case.broken
        named = _named(found, case.rows)
        assert guarantee in named
        if way not in UNSEEN:
            assert {kind_of(v) for v in replay(case.rows)} & NAMED_BY[guarantee], guarantee


def test_each_of_the_nine_ways_is_named(found: rs.Report, cases: list[Case]) -> None:
    for way, case in zip(NINE, cases[-len(NINE) :], strict=True):
        assert NINE[way] in _named(found, case.rows), way


def _named(report: rs.Report, rows: list[Row]) -> set[str]:
    """The guarantees that an audit says were broken by the members of a history."""
    members = {signed(row.member) for row in rows}
    return {violation.guarantee for violation in report.found if violation.member in members}


def test_large_messages_across_a_view_change_are_clean(spark: SparkSession, tmp_path: Path) -> None:
    spec = presets.bulk().replace(max_bytes=400_000)
    trace = SimulatedTrace(tmp_path)
    world = World(seed=1, spec=spec, bandwidth=10_000_000.0, loss=0.02, observer=trace)
    a, b = world.join("a", "b")
    for member in (a, b):
        member.send([b"x" * 2_000_000, b"y", b"z" * 1_000_000])
    world.run_until(lambda: a.probe.high > 10, seconds=5.0)
    world.join("c")
    b.crash()
    world.settle()
    trace.close(settled=True)
    report = rs.audit(rs.read_trace(spark, tmp_path), **rules_of(spec)._asdict())
    assert report.found == []
    strict = rs.audit(rs.read_trace(spark, tmp_path), skips=False)
    assert set(strict.counts) <= {"early-purge", "disagreement"}, "what bulk does not promise"


def test_what_a_real_group_did_is_clean(spark: SparkSession, tmp_path: Path) -> None:
    with traced(tmp_path, 3) as (groups, traces):
        exchange(groups, [bytes(300_000), *[b"small"] * 50, bytes(200_000)])
        leave_all(groups, traces)
    report = rs.audit(rs.read_trace(spark, tmp_path), skips=False)
    assert report.found == []
    # The same, with the first delivery of one member left out.
    rows = rs.read_trace(spark, tmp_path)
    first = rows.where("kind = 'delivered' and pos = 0").orderBy("at").first()
    assert first is not None
    kept = rows.where(
        f"not (kind = 'delivered' and pos = 0 and member = {first['member']}"
        f" and sender = {first['sender']} and view = {first['view']})"
    )
    assert set(rs.audit(kept, skips=False).counts) == {"lost-trace-row"}
