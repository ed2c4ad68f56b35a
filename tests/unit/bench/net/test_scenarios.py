"""Scenarios on a bridge: rows that exist, goals that can be judged, jobs with their places."""

import pytest

from ringcast import StackSpec
from ringcast_bench.child import CONTESTANTS
from ringcast_bench.net.run import place
from ringcast_bench.net.scenarios import SCENARIOS
from ringcast_bench.scenarios import Scenario
from ringcast_bench.table import COLUMNS

ALL = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
FIGURES = {figure for figure, _ in COLUMNS.values()}


@ALL
def test_rows_and_goals_fit(scenario: Scenario) -> None:
    names = [row.who for row in scenario.rows]
    assert len(set(names)) == len(names)
    assert all(row.contestant in CONTESTANTS for row in scenario.rows)
    assert all(row.network is not None for row in scenario.rows)
    for goal in scenario.goals:
        assert goal.who in names
        assert goal.against in (*names, "")
        assert goal.figure in FIGURES
        assert (goal.least is None) != (goal.most is None)


@ALL
def test_every_job_is_bound_to_its_member_and_ends_in_time(scenario: Scenario) -> None:
    for row in scenario.rows:
        groups = place(scenario, row, quick=True)
        assert len(groups) == 1 + bool(row.beside)
        for group in groups:
            for member, job in group:
                assert job.host == f"10.77.0.{member + 1}"
                assert job.seconds == scenario.quick
                if job.contestant == "ringcast":
                    assert f'bind = "{job.host}"' in StackSpec.from_toml(job.spec).to_toml()


def test_two_groups_share_the_link_of_their_receivers() -> None:
    fair = next(scenario for scenario in SCENARIOS if scenario.name == "fair")
    first, second = place(fair, fair.rows[1], quick=True)
    assert first[1][0] == second[1][0]
    assert first[0][0] != second[0][0]
    assert first[0][1].group != second[0][1].group


def test_a_receiver_that_may_be_skipped_may_miss_messages() -> None:
    slow = next(scenario for scenario in SCENARIOS if scenario.name == "slow-link")
    lenient = {
        row.who: [job.lenient for _, job in place(slow, row, quick=True)[0]] for row in slow.rows
    }
    assert lenient["wait"] == [False] * 4
    assert lenient["skip"] == lenient["evict"] == [False, False, False, True]
