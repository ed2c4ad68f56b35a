"""Histories of simulated groups: what really happened in a world, and what its own checks say."""

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count, islice, pairwise
from pathlib import Path

from ringcast import presets
from ringcast.guarantees import Promises, promises_of
from ringcast.sim import World
from ringcast.sim.swarm.draw import draw_hostile, draw_spec
from ringcast.sim.swarm.hostile import STRANGER
from ringcast.sim.swarm.run import run_seed
from ringcast.sim.trace import SimulatedTrace
from ringcast.spec import StackSpec
from ringcast.trace.judging.history import History
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.schema import Row
from ringcast.trace.table import read_rows
from ringcast.trace.violations import Violation


def stack_of(seed: int) -> StackSpec:
    """The stack that the swarm draws from this seed."""
    return draw_spec(random.Random(f"{seed}/swarm"))


def simulated_history(seed: int, *, digests: bool = True) -> tuple[Row, ...]:
    """The traces of one seed of the swarm: joins, crashes, partitions, pauses, bad networks.

    Members have other addresses in every history.
    """
    rows = _simulated(seed)
    return rows if digests else tuple(row._replace(digest=None) for row in rows)


@cache
def _simulated(seed: int) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory() as place:
        trace = SimulatedTrace(place)
        verdict = run_seed(seed, trace)
        assert verdict.problems == [], f"seed {seed}"
        trace.close(settled=True)
        return tuple(_renamed(row, seed) for row in read_rows(Path(place)))


@cache
def ordered_history(seed: int, *, ordered: bool = True) -> tuple[Row, ...]:
    """The traces of a group with total order in which a member joins and the sequencer crashes;
    `ordered` is False for the same group without it."""
    spec = presets.lan().with_total_order() if ordered else presets.lan()
    with tempfile.TemporaryDirectory() as place:
        trace = SimulatedTrace(place)
        world = World(seed=seed, spec=spec, loss=0.05, observer=trace)
        members = world.join("a", "b", "c", "d")
        for step in range(30):
            for member in (member for member in members if member.alive):
                member.send([b"x"] * 5)
            if step == 5:
                members[3].send(bytes(20_000))
            world.run(0.002)
            if step == 10:
                world.start("e")
            if step == 20:
                members[0].crash()
        world.settle(60)
        trace.close(settled=True)
        return tuple(read_rows(Path(place)))


def reordered(rows: Iterable[Row], rng: random.Random) -> tuple[Violation, list[Row]]:
    """A history in which one member took two runs of different senders the other way round, and
    how one of these two is told."""
    history = list(rows)
    progress = History(history).summary.progress
    taken = defaultdict[tuple[int, ViewKey], list[Row]](list)
    for row in history:
        if row.place is not None:
            taken[row.member, (row.view, row.view_by)].append(row)
    along = Counter((view, part.next) for (_, view), part in progress.items() if not part.crashed)
    pairs = [
        (one, other)
        for (member, view), own in taken.items()
        if along[view, progress[member, view].next] > 2 and not progress[member, view].crashed
        for one, other in pairwise(sorted(own, key=lambda row: row.place or 0))
        if one.sender != other.sender
    ]
    one, other = rng.choice(pairs)
    place = one.place or 0
    swapped = {
        one: one._replace(place=place + other.count),
        other: other._replace(place=place),
    }
    group = one.member, (one.view, one.view_by), one.sender or 0
    reach = History(history).summary.delivered[group]
    told = Violation("another-order", one.member, *group[1], one.sender, None, *reach)
    return told, [swapped.get(row, row) for row in history]


def honest_seeds() -> Iterator[int]:
    """The seeds whose members say what is true, so that guarantees are asked for."""
    return (seed for seed in count() if draw_hostile(seed) in ("", STRANGER))


def whole_seeds(number: int) -> list[int]:
    """The first seeds whose stacks promise all that a stack can promise."""
    whole = (seed for seed in honest_seeds() if promises_of(stack_of(seed)) == Promises())
    return list(islice(whole, number))


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
