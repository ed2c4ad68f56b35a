"""The swarm: from each seed a random stack, network, workload and plan of faults, and two
questions.

Safety: while the faults last, does any guarantee break? Liveness: when they have ended, are all
that live in one view again, and does everything that is sent reach everybody, as soon as the timers
of the stack allow? A failure names the seed, and the seed repeats it exactly.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from ringcast.errors import RingcastError
from ringcast.sim.chaos import Chaos, Tap
from ringcast.sim.draw import FIRST_NAMES, draw_bandwidth, draw_link, draw_spec
from ringcast.sim.observer import Observer
from ringcast.sim.patience import leaving_seconds, reunion_seconds, settling_seconds
from ringcast.sim.world import World

STEPS = (5, 30)
"""How many things happen in one run."""
PAUSES = (0.0, 0.0, 0.0003, 0.002, 0.02, 0.2, 0.2, 1.0, 4.0)
"""Virtual seconds between two of them."""
EFFORT_MAX = 300_000
"""More instants and frames than that in one run are a storm."""
CHUNK = 4
"""Seeds that a process is given at a time."""


@dataclass
class Verdict:
    """What came of one seed."""

    seed: int
    problems: list[str] = field(default_factory=list)
    delivered: int = 0
    views: int = 0
    virtual: float = 0.0
    real: float = 0.0
    trace_hash: str = ""


def run_seed(seed: int, observer: Observer | None = None) -> Verdict:
    """One run, whatever happens in it."""
    began = perf_counter()
    rng = Random(f"{seed}/swarm")
    tap = Tap(observer)
    world = _world(seed, rng, tap)
    verdict = Verdict(seed)
    try:
        _run(world, Chaos(world, tap, rng), rng)
    except RingcastError as error:
        verdict.problems.append(f"{type(error).__name__}: {error}")
    except Exception as error:  # A stack that raises is a failure like any other, with a seed.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
        verdict.problems.append(f"{type(error).__name__} at {where}: {error}")
    verdict.problems += [str(violation) for violation in world.check()]
    verdict.delivered = sum(len(member.delivered) for member in world.members.values())
    verdict.views = sum(len(member.views) for member in world.members.values())
    verdict.virtual, verdict.real = world.now, perf_counter() - began
    verdict.trace_hash = world.trace_hash
    return verdict


def run_seeds(first: int, count: int, jobs: int) -> Iterator[Verdict]:
    """The verdicts of so many seeds, in order, from several processes."""
    seeds = range(first, first + count)
    if jobs <= 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_seed, seeds, chunksize=CHUNK)


def describe(seed: int) -> str:
    """The stack and the network that a seed draws."""
    rng = Random(f"{seed}/swarm")
    world = _world(seed, rng, Tap(None))
    return f"{world.spec}\n{world.network.default}, bandwidth {world.network.bandwidth}"


def _world(seed: int, rng: Random, tap: Tap) -> World:
    spec = draw_spec(rng)
    world = World(
        seed,
        spec,
        bandwidth=draw_bandwidth(rng),
        keep=False,
        addresses=rng.choice(("small", "random")),
        observer=tap,
        effort_max=EFFORT_MAX,
    )
    for name, value in draw_link(rng).items():
        world.network.set_all(name, value)
    return world


def _run(world: World, chaos: Chaos, rng: Random) -> None:
    for name in FIRST_NAMES[: rng.randint(2, 5)]:
        world.start(name)
    world.run(rng.choice((0.0, 1.0, 5.0)))
    for _ in range(rng.randint(*STEPS)):
        chaos.act()
        world.run(rng.choice(PAUSES))
    chaos.calm()
    _expect_recovery(world, chaos)


def _expect_recovery(world: World, chaos: Chaos) -> None:
    """After the faults: one view, and everything that is sent arrives."""
    left = leaving_seconds(world.spec)
    world.run_until(lambda: not _leaving(world), left, "the leavers to be gone")
    for name in _needed(world):
        if not world.members[name].alive:
            world.members[name].restart()
    what = "all members to be in one view"
    world.run_until(lambda: world.united, reunion_seconds(world), what)
    for member in world.running:
        member.send(chaos.payloads(member))
    for member in world.running:
        assert member.view is not None
        member.send(chaos.payloads(member), member.view.members[-1])
    world.settle(settling_seconds(world.spec))


def _needed(world: World) -> list[str]:
    """Who has to live so that the others find each other: the seeds, or else anybody."""
    seeds = world.spec["discovery"].values()["seeds"]
    if isinstance(seeds, tuple) and seeds:
        return [seed for seed in seeds if seed in world.members]
    return [] if world.running else [next(iter(world.members))]


def _leaving(world: World) -> bool:
    return any(member.leaving for member in world.running)
