"""Scenarios: names that stay, rows that exist, goals that can be judged, jobs that fit together."""

import pytest

from ringcast_bench.child import CONTESTANTS
from ringcast_bench.job import Job
from ringcast_bench.run import jobs_of
from ringcast_bench.scenarios import SCENARIOS, TRACE, Scenario

ALL = pytest.mark.parametrize("scenario", [*SCENARIOS, TRACE], ids=lambda scenario: scenario.name)


def test_the_names_are_there() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names)
    stable = {"1-3-1k", "1-3-100", "1-1-1k", "4-4-1k", "4-4-100", "1-3-1k-each", "1-3-1k-tcp"}
    assert stable | {
        "1-3-10m",
        "1-3-100m",
        "loss",
        "slow",
        "flood",
        "round-trip",
        "join",
        "idle",
    } <= {*names}


@ALL
def test_rows_and_goals_fit(scenario: Scenario) -> None:
    names = [row.who for row in scenario.rows]
    assert len(set(names)) == len(names)
    assert all(row.contestant in CONTESTANTS for row in scenario.rows)
    assert all(row.kind in ("raw", "ringcast", "peer") for row in scenario.rows)
    for goal in scenario.goals:
        assert goal.who in names
        assert goal.against in (*names, "peers", "")
        assert (goal.least is None) != (goal.most is None)


@ALL
def test_every_process_gets_a_job(scenario: Scenario) -> None:
    for row in scenario.rows:
        jobs = jobs_of(scenario, row, quick=True)
        assert [job.index for job in jobs] == list(range(len(jobs)))
        assert [Job.from_json(job.to_json()) for job in jobs] == jobs
        assert sum(bool(job.pause) for job in jobs) == bool(row.pause)
        assert jobs[-1].pause == row.pause


def test_a_quick_run_is_short() -> None:
    for scenario in SCENARIOS:
        row = scenario.rows[0]
        short, full = (jobs_of(scenario, row, quick=quick)[-1].count for quick in (True, False))
        assert short <= full
