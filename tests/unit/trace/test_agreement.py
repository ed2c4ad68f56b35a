"""The checks over traces and those of the simulator agree, on invented and on simulated histories,
good ones and such that were spoilt in every way."""

import random
from itertools import islice

import pytest

from ringcast.trace.check import check
from ringcast.trace.rules import rules_of
from ringcast.trace.schema import Row
from tests.seeds import quick_first
from tests.unit.trace.histories import good_history
from tests.unit.trace.replay import NAMED_BY, kind_of, replay
from tests.unit.trace.simulations import (
    honest_seeds,
    simulated_history,
    stack_of,
    whole_seeds,
)
from tests.unit.trace.spoils import SPOILS, UNSEEN, spoil

WAYS = sorted(set(SPOILS) - set(UNSEEN))
SEEDS = whole_seeds(16)
HONEST = list(islice(honest_seeds(), 20))


def invented(seed: int) -> list[Row]:
    return good_history(seed, skips=False)


def simulated(seed: int, *, digests: bool = False) -> list[Row]:
    """What happened in a world; spoils cut runs anew, for which they would need the payloads."""
    return list(simulated_history(SEEDS[seed % len(SEEDS)], digests=digests))


@pytest.mark.parametrize("seed", range(40))
def test_both_find_nothing_in_good_histories(seed: int) -> None:
    assert check(invented(seed)) == []
    assert replay(invented(seed)) == []


@pytest.mark.parametrize("seed", quick_first(range(len(SEEDS)), 6))
def test_both_find_nothing_in_what_a_world_did(seed: int) -> None:
    rows = simulated(seed, digests=True)
    assert check(rows, skips=False) == []
    assert replay(rows) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first(HONEST, 6))
def test_the_traces_of_any_stack_are_clean_by_its_own_rules(seed: int) -> None:
    assert check(simulated_history(seed), **rules_of(stack_of(seed))._asdict()) == []


@pytest.mark.parametrize("seed", quick_first(HONEST, 4))
def test_traces_that_end_anywhere_are_clean(seed: int) -> None:
    """As those of a group that runs: each member has written up to a moment of its own."""
    rows, rng = simulated_history(seed), random.Random(seed)
    first, last = (extreme(row.at for row in rows) for extreme in (min, max))
    for one_moment in (False, True):
        for _ in range(4):
            shared = rng.uniform(first, last)
            until = {
                member: shared - rng.uniform(0, 10_000_000)
                if one_moment
                else rng.uniform(first, last + 1)
                for member in sorted({row.member for row in rows})
            }
            written = [row for row in rows if row.at <= until[row.member]]
            assert check(written, **rules_of(stack_of(seed))._asdict()) == []


@pytest.mark.parametrize("way", WAYS)
def test_both_find_what_was_spoilt_in_invented_histories(way: str) -> None:
    assert sum(agree(invented(seed), seed, way) for seed in range(25)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("enough", quick_first([4, len(SEEDS)], 1))
@pytest.mark.parametrize("way", WAYS)
def test_both_find_what_was_spoilt_in_simulated_histories(way: str, enough: int) -> None:
    """In this many worlds that have a place for it, or in all that have one."""
    digests = way == "contents"
    tried = (agree(simulated(seed, digests=digests), seed, way) for seed in range(len(SEEDS)))
    assert any(list(islice(filter(None, tried), enough)))


def agree(rows: list[Row], seed: int, way: str) -> bool:
    """Spoil a history and ask both; whether it has a place for this."""
    spoilt = spoil(rows, random.Random(seed), way)
    if spoilt is None:
        return False
    found = {violation.guarantee for violation in check(spoilt.rows)}
    seen = {kind_of(violation) for violation in replay(spoilt.rows)}
    assert spoilt.guarantee in found, f"seed {seed}"
    assert seen & NAMED_BY[spoilt.guarantee], f"seed {seed}: {seen}"
    return True
