"""Histories of simulated groups: what really happened in a world, and what its own checks say."""

import random
import tempfile
from functools import cache
from pathlib import Path

from ringcast.sim.draw import draw_spec
from ringcast.sim.promises import Promises, promises_of
from ringcast.sim.swarm import run_seed
from ringcast.spec import StackSpec
from ringcast.trace.schema import Row
from ringcast.trace.simulated import SimulatedTrace
from ringcast.trace.table import read_rows


def stack_of(seed: int) -> StackSpec:
    """The stack that the swarm draws from this seed."""
    return draw_spec(random.Random(f"{seed}/swarm"))


@cache
def simulated_history(seed: int, *, digests: bool = True) -> tuple[Row, ...]:
    """The traces of one seed of the swarm: joins, crashes, partitions, pauses, bad networks.

    Members have other addresses in every history.
    """
    with tempfile.TemporaryDirectory() as place:
        trace = SimulatedTrace(place, digests=digests)
        verdict = run_seed(seed, trace)
        assert verdict.problems == [], f"seed {seed}"
        trace.close(settled=True)
        return tuple(_renamed(row, seed) for row in read_rows(Path(place)))


def whole_seeds(count: int) -> list[int]:
    """The first seeds whose stacks promise all that a stack can promise."""
    seeds = (seed for seed in range(10_000) if promises_of(stack_of(seed)) == Promises())
    return [next(seeds) for _ in range(count)]


def _renamed(row: Row, seed: int) -> Row:
    """The row with addresses that no other seed has."""

    def other(address: int | None) -> int | None:
        return None if address is None else (address * 1_000_003 + seed * 7_919) % 2**64

    row = row._replace(
        member=other(row.member) or 0,
        view_by=other(row.view_by) or 0,
        sender=other(row.sender),
        peer=other(row.peer),
    )
    if row.members is None:
        return row
    return row._replace(members=tuple(other(member) or 0 for member in row.members))
