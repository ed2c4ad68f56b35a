"""The audit on Spark and majorities: it finds what the plain checks find."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast import presets
from ringcast.layers.majority import Majority
from ringcast.sim import World
from ringcast.sim.trace import SimulatedTrace
from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.schema import Row
from ringcast.trace.table import read_rows, write_rows
from tests.spark.test_audit import as_stored

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SPEC = presets.lan().insert(Majority())
RULES = rules_of(SPEC)._asdict()


def parted(place: Path) -> list[Row]:
    """The traces of five members, two of which are cut off for a while."""
    trace = SimulatedTrace(place)
    world = World(3, SPEC, observer=trace)
    a, b, c, d, e = world.join(*"abcde")
    world.run(1.0)
    world.partition([a, b, c], [d, e])
    world.run(8.0)
    for member in (a, d):
        member.send(b"?")
    world.heal()
    world.settle(60.0)
    trace.close(settled=True)
    return list(read_rows(place))


def both_agree(rows: list[Row]) -> list[Row]:
    """As if the smaller side had agreed on its view as well."""
    first = next(row for row in rows if row.kind == "agreed" and len(row.members or ()) == 0)
    agreed = {(row.view, row.view_by) for row in rows if row.kind == "agreed"}
    lacking = [r for r in rows if r.kind == "view" and (r.view, r.view_by) not in agreed]
    before = max(view for view in agreed if view[0] < lacking[0].view)
    claimed = [
        first._replace(
            member=row.member, view=row.view, view_by=row.view_by, at=row.at,
            seqno=before[0], peer=before[1], members=(),
        )
        for row in lacking if len(row.members or ()) == 2
    ]  # fmt: skip
    assert claimed
    return rows + claimed


def test_both_find_two_majorities_and_sends_without_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    good = parted(tmp_path / "world")
    unsaid = [row for row in good if row.kind != "agreed"]
    cases = {"good": (good, set[str]()), "two": (both_agree(good), {"two-majorities"})}
    cases["unsaid"] = unsaid, {"unagreed"}
    for name, (rows, causes) in cases.items():
        (place := tmp_path / name).mkdir()
        write_rows(place / "a.parquet", rows)
        expected = [as_stored(violation) for violation in check(rows, **RULES)]
        report = rs.audit(rs.read_trace(spark, place), **RULES)
        assert report.found == expected, name
        assert set(report.causes) == causes, name
