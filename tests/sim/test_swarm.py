"""A slice of the swarm: random stacks, networks, faults and workloads, with every guarantee
checked.

`make swarm SEEDS=2000` runs more of them. A failure names the command that repeats it.
"""

from argparse import Namespace
from functools import partial
from random import Random

import pytest

from ringcast.cli.main import main
from ringcast.cli.stack import changed_spec
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


def test_a_change_is_made_to_every_stack_that_can_have_it() -> None:
    change = partial(
        changed_spec, arguments=Namespace(added=["Sequencer"], dropped=[], settings=[])
    )
    verdicts = list(run_seeds(0, 12, jobs=1, change=change))
    assert 0 < sum(bool(verdict.left_out) for verdict in verdicts) < 12
    for verdict in verdicts:
        assert verdict.problems == []
        if not verdict.left_out:
            spec = draw_plan(verdict.seed, Random(f"{verdict.seed}/swarm"), change).spec
            assert "Sequencer" in [type(protocol).__name__ for protocol in spec]


def test_some_runs_have_a_state() -> None:
    drawn = [draw_plan(seed, Random(f"{seed}/swarm")).states for seed in range(50)]
    assert 3 < sum(drawn) < 25


def test_seeds_whose_stacks_cannot_have_a_protocol_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--with", "Sequencer", "--first", "4", "--seeds", "2", "--jobs", "1"]
    assert main(["swarm", *arguments]) == 0
    assert "1 left out, whose stacks cannot have that" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("--with=Sequencer", "set NakAck3.loopback to True"),
        ("--with=Nonsense", "there is no protocol Nonsense"),
        ("--set=Flow.max_credits=-4", "Flow.max_credits is -4"),
        ("--without=Nonsense", "the stack has no Nonsense"),
    ],
)
def test_a_change_that_no_stack_can_have_is_a_mistake(
    change: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["swarm", change, "--first", "4", "--seeds", "1", "--jobs", "1"]) == 2
    told = capsys.readouterr().err
    assert "no stack of these seeds can have that" in told
    assert reason in told
