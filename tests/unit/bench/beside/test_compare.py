"""Two trees side by side: ratios turn by turn, times the other way round, what does not count."""

import re
from dataclasses import replace

import pytest

from ringcast_bench.beside.compare import STANDARD, Comparison, compared, table
from ringcast_bench.figures import Figures, Sample
from ringcast_bench.run import ScenarioOutcome
from ringcast_bench.scenarios import SCENARIOS, Row, Scenario

ROWS = tuple(Row(who=who, contestant="ringcast") for who in ("ringcast, old", "ringcast"))
STREAM = Scenario(name="1-1-1k", title="", rows=ROWS, count=1, quick=1)


def samples(figure: str, *values: float, others: float = 0.0, cpu: float = 1.0) -> list[Sample]:
    costs: Figures = {"sender_cpu_us": cpu, "receiver_cpu_us": 2 * cpu}
    return [Sample(figures={figure: value, **costs}, other_cores=others) for value in values]


def outcome(theirs: list[Sample], ours: list[Sample], play: str = "stream") -> ScenarioOutcome:
    both = {"ringcast, old": theirs, "ringcast": ours}
    return ScenarioOutcome(scenario=replace(STREAM, play=play), samples=both)


def test_the_speed_is_the_median_of_the_turns() -> None:
    # The machine became slower from turn to turn, for both alike.
    theirs, ours = samples("rate", 100, 50, 10), samples("rate", 90, 50, 8, cpu=1.5)
    one = compared(outcome(theirs, ours))
    assert one.speeds == (0.9, 1.0, 0.8)
    assert one.speed == 0.9
    assert (one.theirs, one.ours) == (50, 50)
    assert one.cpu == (1.5, 1.5)
    assert one.is_below(0.91)
    assert not one.is_below(0.9)


def test_a_shorter_round_trip_is_a_higher_speed() -> None:
    one = compared(outcome(samples("p50", 80e-6), samples("p50", 100e-6), "ping"))
    assert one.speed == pytest.approx(0.8)
    assert "80.0 µs   100.0 µs     0.80" in table([one], "old")


def test_disturbed_turns_count_only_where_all_are() -> None:
    theirs = samples("rate", 100) + samples("rate", 100, others=1.0)
    half = compared(outcome(theirs, samples("rate", 90, 10)))
    assert half.speeds == (0.9,)
    assert not half.is_disturbed
    every = compared(outcome(theirs[1:], samples("rate", 90)))
    assert every.speeds == (0.9,)
    assert every.is_disturbed
    assert "disturbed" in table([every], "old")
    assert "disturbed" not in table([half], "old")


def test_what_failed_or_is_missing_has_no_speed() -> None:
    failed = compared(outcome(samples("rate", 1), [Sample(failed="lost one")]))
    assert failed.speed is None
    assert failed.is_below(0.0)
    missing = compared(
        ScenarioOutcome(scenario=STREAM, missing={"ringcast, old": "old has no such row"})
    )
    assert missing.speed is None
    assert not missing.is_below(1.0)
    idle = compared(outcome(samples("cpu_percent", 1), samples("cpu_percent", 1), "idle"))
    assert not idle.is_below(1.0)
    text = table([failed, missing, idle], "old")
    assert "failed: 1-1-1k, ringcast (lost one)" in text
    assert "left out: 1-1-1k, ringcast (old has no such row)" in text
    assert "left out: 1-1-1k, ringcast (it has no speed)" in text


def test_a_line_has_both_trees_and_all_ratios() -> None:
    one = Comparison(
        scenario="1-3-1k",
        who="ringcast",
        theirs=1_000_000,
        ours=950_000,
        speeds=(0.9, 0.95, 1.0),
        cpu=(1.1, 1.2),
    )
    head, line = table([one], "5c47a75").splitlines()
    heads = ["5c47a75", "this tree", "× speed", "least", "most", "× sender CPU", "× receiver CPU"]
    assert re.split(" {2,}", head.strip()) == heads
    cells = ["1-3-1k", "ringcast", "1,000,000", "950,000", "0.95", "0.90", "1.00", "1.10", "1.20"]
    assert line.split() == cells


def test_the_standard_scenarios_exist() -> None:
    assert set(STANDARD.split(",")) <= {scenario.name for scenario in SCENARIOS}
