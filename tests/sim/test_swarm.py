"""A slice of the swarm: random stacks, networks, faults and workloads, with every guarantee
checked.

`make swarm SEEDS=2000` runs more of them. A failure names the command that repeats it.
"""

from random import Random

import pytest

from ringcast.sim.swarm.plan import draw_plan
from ringcast.sim.swarm.run import describe, run_seed, run_seeds
from tests.seeds import quick_first

SLICES = 10
SEEDS_EACH = 20


@pytest.mark.parametrize("part", quick_first(range(SLICES), 1))
def test_a_slice_of_the_swarm_breaks_no_guarantee(part: int) -> None:
    first = part * SEEDS_EACH
    verdicts = list(run_seeds(first, SEEDS_EACH, jobs=1))
    failed = [v for v in verdicts if v.problems]
    commands = [
        f"ringcast swarm --first {v.seed} --seeds 1 --show: {v.problems[0]}" for v in failed
    ]
    assert not failed, "\n".join(commands)
    # A run that delivers nothing and changes no view would find nothing.
    assert sum(verdict.delivered for verdict in verdicts) > 4_000
    assert sum(verdict.views for verdict in verdicts) > 200


def test_a_seed_repeats_itself() -> None:
    first, second = run_seed(5), run_seed(5)
    assert first.trace_hash == second.trace_hash
    assert first.delivered == second.delivered


def test_a_seed_says_what_it_draws() -> None:
    one, other = (describe(draw_plan(seed, Random(f"{seed}/swarm"))) for seed in (1, 2))
    assert "Membership(" in one
    assert one != other
