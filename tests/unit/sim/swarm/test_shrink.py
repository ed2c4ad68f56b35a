"""A failing seed is shrunk to a few actions that fail in the same way, and can be replayed."""

from pathlib import Path

import pytest

from ringcast.cli.main import main
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.sim.swarm.plan import load_plan
from ringcast.sim.swarm.run import record_seed
from ringcast.sim.swarm.shrink import kind_of
from tests.protections import duplicates_are_handed_up

SEEDS = range(20)
ACTIONS_MIN = 20
"""A plan that fails after fewer actions has little to leave out."""


@pytest.fixture
def failing_seed(monkeypatch: pytest.MonkeyPatch) -> int:
    """A seed that fails, because receivers forget what they have handed up already."""
    monkeypatch.setattr(ReceiveWindow, "put", ReceiveWindow.put)  # So that it is restored.
    duplicates_are_handed_up()
    for seed in SEEDS:
        plan, verdict = record_seed(seed)
        if verdict.problems and len(plan.actions) >= ACTIONS_MIN:
            return seed
    raise AssertionError(f"no seed in {SEEDS} fails")


@pytest.mark.slow
def test_a_failing_seed_shrinks_to_a_third_of_its_actions_and_the_plan_repeats_the_failure(
    failing_seed: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, verdict = record_seed(failing_seed)
    assert main(["swarm", "--shrink", str(failing_seed)]) == 0
    printed, told = capsys.readouterr()
    assert f"of {len(plan.actions)} actions are left" in told
    (tmp_path / "plan.json").write_text(printed)

    assert main(["swarm", "--replay", str(tmp_path / "plan.json")]) == 1
    problems = capsys.readouterr().out.splitlines()
    assert kind_of(verdict.problems[0]) in map(kind_of, problems)
    shrunk = load_plan(str(tmp_path / "plan.json"))
    assert 0 < len(shrunk.actions) <= len(plan.actions) / 3
    assert len(shrunk.link) < len(plan.link)

    assert main(["swarm", "--replay", str(tmp_path / "plan.json"), "--show"]) == 1
    assert " → all " in capsys.readouterr().out


def test_a_seed_that_does_not_fail_is_not_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swarm", "--shrink", "2"]) == 1
    assert "does not fail" in capsys.readouterr().err


def test_problems_are_of_one_kind_when_only_times_members_and_numbers_differ() -> None:
    one = "9.051160 d: was given b's messages 3-4, though 4 was its last"
    other = "0.601673 e: was given d's messages 1-1, though 2 was its last"
    assert kind_of(one) == kind_of(other)
    assert kind_of(one) != kind_of("Timeout: waited 3 simulated seconds in vain for this")
