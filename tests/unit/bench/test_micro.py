"""Micro-benchmarks: every case works, and results compare across machines."""

from pathlib import Path

import pytest

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast_bench.micro.ladder import Pair
from ringcast_bench.micro.report import Results, all_cases, ratios, table
from ringcast_bench.micro.timing import Case, time_case

CASES = list(all_cases(512))


def test_the_cases_have_names_of_their_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    kinds = {name.split(":")[0] for name in names}
    assert kinds == {"window", "ranges", "codec", "ladder", "simulator"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_works_and_says_how_many_messages(case: Case) -> None:
    assert case.prepare()() > 0
    assert time_case(case, rounds=1) > 0


def test_two_stacks_without_sockets() -> None:
    pair = Pair(presets.lan())
    pair.stream([b"x"] * 10, 25, None)
    assert pair.taken == 25
    pair.stream([b"x"] * 10, 5, pair.two.env.me)
    assert pair.taken == 30


def results(calibration: float, **cases: float) -> Results:
    return Results(calibration=calibration, cases=cases)


def test_a_slower_machine_is_no_regression() -> None:
    before, now = results(100, a=10, b=10, gone=1), results(200, a=20, b=40, new=1)
    compared = ratios(now, before)
    assert compared == {"a": 1.0, "b": 2.0}
    lines = table(now, compared).splitlines()
    assert lines[1].split() == ["a", "20.0", "1.00"]
    assert lines[3].split() == ["new", "1.0"]


def test_results_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text(results(1.5, a=2.0).to_json())
    assert Results.load(str(path)) == results(1.5, a=2.0)
    path.write_text('{"other": 1}')
    with pytest.raises(ConfigError, match="no results of micro-benchmarks"):
        Results.load(str(path))
    with pytest.raises(ConfigError, match="no results of micro-benchmarks"):
        Results.load(str(tmp_path / "nowhere"))


def test_the_kept_baseline_has_every_case() -> None:
    baseline = Results.load(str(Path(__file__).parents[3] / "bench" / "baseline.json"))
    assert {case.name for case in CASES} == set(baseline.cases)
