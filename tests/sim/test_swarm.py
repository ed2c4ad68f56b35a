"""A slice of the swarm: random stacks, networks, faults and workloads, with every guarantee
checked.

`make swarm SEEDS=2000` runs more of them. A failure names the command that repeats it.
"""

import pytest

from ringcast.sim.swarm import describe, run_seed, run_seeds

SLICES = 10
SEEDS_EACH = 20


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_a_slice(part: int) -> None:
    first = part * SEEDS_EACH
    failed = [v for v in run_seeds(first, SEEDS_EACH, jobs=1) if v.problems]
    commands = [
        f"ringcast swarm --first {v.seed} --seeds 1 --show: {v.problems[0]}" for v in failed
    ]
    assert not failed, "\n".join(commands)


def test_a_seed_repeats_itself() -> None:
    first, second = run_seed(5), run_seed(5)
    assert first.trace_hash == second.trace_hash
    assert first.delivered == second.delivered


def test_a_seed_says_what_it_draws() -> None:
    assert "Membership(" in describe(1)
    assert describe(1) != describe(2)


def test_the_swarm_does_something() -> None:
    """A run that delivers nothing and changes no view would find nothing."""
    verdicts = list(run_seeds(0, 5, jobs=1))
    assert sum(verdict.delivered for verdict in verdicts) > 1_000
    assert sum(verdict.views for verdict in verdicts) > 50
