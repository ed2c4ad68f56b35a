"""A plan repeats the seed that it was recorded from, also when it has been written and read."""

from pathlib import Path

import pytest

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.sim.swarm.plan import Plan, load_plan
from ringcast.sim.swarm.run import record_seed, replay


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_replay_of_a_recorded_seed_is_the_same_run(seed: int) -> None:
    plan, verdict = record_seed(seed)
    read = Plan.from_json(plan.to_json())
    assert read == plan
    played, again = replay(read)
    assert again.trace_hash == verdict.trace_hash
    assert played == plan


def test_actions_that_do_not_apply_are_left_out() -> None:
    odd = ("start a", "start a", "send z 1", "resume a", "undrop", "partition a z", "start b")
    small = Plan(seed=1, spec=presets.lan(), addresses="small", link={}, switch={}, actions=odd)
    played, verdict = replay(small)
    assert played.actions == ("start a", "start b")
    assert verdict.problems == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"spec": ["[Nothing]"], "link": {}}'])
def test_what_is_not_a_plan_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="not a plan"):
        load_plan(str(path))
    with pytest.raises(ConfigError, match="cannot read the plan"):
        load_plan(str(tmp_path / "none.json"))
