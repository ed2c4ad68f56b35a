"""Goals, tables and JSON of outcomes: ratios, what is left out, failed or disturbed."""

import json

from ringcast_bench.figures import Sample
from ringcast_bench.goals import best_peer, judge
from ringcast_bench.run import ScenarioOutcome
from ringcast_bench.scenarios import Goal, Row, Scenario
from ringcast_bench.table import data_of, goals_text, text_of

SCENARIO = Scenario(
    name="one",
    title="everything at once",
    rows=(
        Row(who="raw", contestant="raw-multicast", kind="raw"),
        Row(who="ringcast", contestant="ringcast"),
        Row(who="slowmq", contestant="pyzmq", kind="peer"),
        Row(who="fastmq", contestant="zenoh", kind="peer"),
        Row(who="badmq", contestant="nats", kind="peer"),
        Row(who="nomq", contestant="redis", kind="peer"),
    ),
    goals=(
        Goal(least=0.8),
        Goal(against="peers", least=3.0),
        Goal(against="", figure="rss", most=60e6),
        Goal(against="badmq", least=1.0),
    ),
    count=1,
    quick=1,
)


def sample(rate: float, others: float = 0.0) -> Sample:
    return Sample(figures={"rate": rate, "rss": 30e6}, other_cores=others)


def outcome(ringcast: float = 90, others: float = 0.0) -> ScenarioOutcome:
    return ScenarioOutcome(
        scenario=SCENARIO,
        samples={
            "raw": [sample(100)],
            "ringcast": [sample(ringcast, others)],
            "slowmq": [sample(10)],
            "fastmq": [sample(25)],
            "badmq": [Sample(failed="lost one")],
        },
        missing={"nomq": "no redis-server here"},
    )


def test_the_best_peer_is_the_fastest_that_lost_nothing() -> None:
    assert best_peer(outcome(), "rate") == "fastmq"
    assert best_peer(ScenarioOutcome(scenario=SCENARIO), "rate") == ""


def test_goals_are_reached_or_not_or_not_measured() -> None:
    reached = [judgement.is_reached for judgement in judge(outcome())]
    assert reached == [True, True, True, None]
    missed = judge(outcome(ringcast=70))
    assert [judgement.is_reached for judgement in missed] == [False, False, True, None]
    assert [judgement.against for judgement in missed] == ["raw", "fastmq", "", "badmq"]


def test_a_goal_knows_that_it_was_disturbed() -> None:
    disturbed = [judgement.is_disturbed for judgement in judge(outcome(others=0.5))]
    assert disturbed == [True, True, True, False]
    assert "yes *" in goals_text([outcome(others=0.5)])


def test_the_table_says_all_there_is_to_say() -> None:
    text = text_of(outcome(others=0.5))
    lines = text.splitlines()
    assert lines[0] == "one: everything at once"
    assert lines[1].split() == ["messages/s", "member", "MB", "×", "raw", "×", "best", "peer"]
    assert lines[3].split() == ["ringcast", "*", "90", "30", "0.90", "3.60"]
    assert "left out: nomq (no redis-server here)" in text
    assert "failed and not counted: badmq (lost one)" in text
    assert "disturbed: others used 0.50 cores while ringcast ran" in text


def test_the_goals_have_ratios_and_units() -> None:
    lines = goals_text([outcome()]).splitlines()
    assert lines[1].split() == ["one", "ringcast", "raw", "0.90", "×", "≥", "0.80", "×", "yes"]
    assert lines[3].split()[-6:] == ["30.00", "MB", "≤", "60.00", "MB", "yes"]
    assert lines[4].endswith("not measured")
    assert goals_text([]) == ""


def test_plain_data_has_each_run_and_survives_json() -> None:
    data = json.loads(json.dumps(data_of(outcome(others=0.5))))
    assert data["rows"]["raw"]["runs"][0]["figures"]["rate"] == 100
    assert data["rows"]["ringcast"]["disturbed"] is True
    assert data["rows"]["ringcast"]["ratios"] == {"raw": 0.9, "best peer": 3.6}
    assert data["rows"]["badmq"]["ratios"] == {"raw": None, "best peer": None}
    assert data["rows"]["badmq"]["failed"] == "lost one"
    assert data["rows"]["nomq"] == {"kind": "peer", "missing": "no redis-server here"}
    assert [goal["reached"] for goal in data["goals"]] == [True, True, True, None]
