"""The swarm: from each seed a random stack, network, workload and list of faults, and two
questions.

Safety: while the faults last, does any guarantee break? Liveness: when they have ended, are all
that live in one view again, and does everything that is sent reach all members, as soon as the
timers of the stack allow? A failure names the seed, and the seed repeats it exactly.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import active_children, parent_process
from random import Random
from time import perf_counter

from ringcast.errors import ConfigError, RingcastError
from ringcast.services.state_requester import BEGIN_TIMEOUT
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.engine.world import World
from ringcast.sim.swarm.actions import Actions, ChaosListener
from ringcast.sim.swarm.chaos import Chaos, end_faults
from ringcast.sim.swarm.draw import FIRST_NAMES
from ringcast.sim.swarm.hostile import STRANGER
from ringcast.sim.swarm.kept_states import KeptStates
from ringcast.sim.swarm.plan import Change, Plan, draw_plan
from ringcast.sim.swarm.recovery_bounds import leaving_seconds, reunion_seconds, settling_seconds

STEPS = (5, 30)
"""How many things happen in one run."""
PAUSES = (0.0, 0.0, 0.0003, 0.002, 0.02, 0.2, 0.2, 1.0, 4.0)
"""Virtual seconds between two of them."""
QUORUM_SECONDS = 5.0
"""Virtual seconds in which the members of one view find out whether they have a majority."""
STATE_SECONDS = 4 * BEGIN_TIMEOUT
"""Virtual seconds in which newcomers have a state once the faults have ended."""
LIAR_TIMEOUTS = 3
"""How many times `change_timeout` a hostile member's proposals may bind the others."""
CHUNK = 4
"""Seeds that a process is given at a time."""


class BrokenState(RingcastError):
    """Members have other states than they should."""


@dataclass
class SeedVerdict:
    """The outcome of one run."""

    seed: int
    problems: list[str] = field(default_factory=list)
    delivered: int = 0
    views: int = 0
    virtual: float = 0.0
    real: float = 0.0
    trace_hash: str = ""
    left_out: str = ""
    """Why the change to all stacks does not fit the one that the seed draws."""


def run_seed(
    seed: int, observer: WorldListener | None = None, change: Change | None = None
) -> SeedVerdict:
    """Run one seed to its end, whatever happens in it."""
    try:
        draw_plan(seed, Random(f"{seed}/swarm"), change)
    except ConfigError as error:
        return SeedVerdict(seed, left_out=str(error))
    return record_seed(seed, observer, change)[1]


def record_seed(
    seed: int, observer: WorldListener | None = None, change: Change | None = None
) -> tuple[Plan, SeedVerdict]:
    """Run one seed; the plan that `replay` repeats it with, and its outcome. Raises ConfigError
    when the change does not fit the seed's stack."""
    rng = Random(f"{seed}/swarm")
    plan = draw_plan(seed, rng, change)
    listener = ChaosListener(observer)
    world = plan.world(listener)
    replicas = KeptStates() if plan.states else None
    chaos = Chaos(world, listener, rng, plan.hostile, replicas)
    counts: list[int] = []

    def count() -> int:
        counts.append(chaos.count())
        return counts[-1]

    def work() -> None:
        _act(chaos, rng)
        _recover(world, chaos.actions, count, _hostile_member(plan))
        _compare_states(world, replicas)

    verdict = _judge(seed, world, work, _hostile_member(plan))
    recorded = tuple(chaos.actions.recorded)
    size = chaos.actions.size
    return replace(plan, size=size, actions=recorded, recovery=tuple(counts)), verdict


def replay(plan: Plan, observer: WorldListener | None = None) -> tuple[Plan, SeedVerdict]:
    """Run a plan; the plan without the actions that did not apply, and the outcome."""
    listener = ChaosListener(observer)
    world = plan.world(listener)
    replicas = KeptStates() if plan.states else None
    actions = Actions(world, listener, plan.size, replicas)
    counts = iter(plan.recovery)

    def work() -> None:
        for line in plan.actions:
            actions.replay(line)
        _recover(world, actions, lambda: next(counts, 1), _hostile_member(plan))
        _compare_states(world, replicas)

    verdict = _judge(plan.seed, world, work, _hostile_member(plan))
    return replace(plan, actions=tuple(actions.recorded)), verdict


def run_seeds(
    first: int, count: int, jobs: int, change: Change | None = None
) -> Iterator[SeedVerdict]:
    """The verdicts of consecutive seeds, in order, from several processes."""
    seeds = range(first, first + count)
    run = partial(run_seed, change=change)
    if jobs <= 1:
        yield from map(run, seeds)
        return
    others = active_children()
    pool = ProcessPoolExecutor(jobs, initializer=_watch_parent)
    try:
        with _no_interrupt():
            verdicts = pool.map(run, seeds, chunksize=CHUNK)
        yield from verdicts
    except BaseException:  # Ctrl-C, or a caller that wants no more: the seeds under way are moot.
        for worker in active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait for the end of this block: an executor that is interrupted while it starts
    its processes loses sight of some, and waits for them without an end."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _watch_parent() -> None:
    """End this worker when its parent does, also by SIGKILL; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def describe(plan: Plan) -> str:
    """The stack and the network of a plan."""
    world = plan.world(None)
    return f"{world.spec}\n{world.network.default}, {world.network.switch}"


def _hostile_member(plan: Plan) -> str:
    return "" if plan.hostile == STRANGER else plan.hostile


def _judge(seed: int, world: World, work: Callable[[], None], liar: str) -> SeedVerdict:
    """The outcome of this work in a world; a stack that raises is a failure like any other.

    liar: the member that has sent what is not true, so that guarantees are not asked for."""
    began = perf_counter()
    verdict = SeedVerdict(seed)
    try:
        work()
    except RingcastError as error:
        verdict.problems.append(f"{type(error).__name__}: {error}")
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
        verdict.problems.append(f"{type(error).__name__} at {where}: {error}")
    if not liar:
        verdict.problems += [str(violation) for violation in world.check()]
    verdict.delivered = sum(len(member.delivered) for member in world.members.values())
    verdict.views = sum(len(member.views) for member in world.members.values())
    verdict.virtual, verdict.real = world.now, perf_counter() - began
    verdict.trace_hash = world.trace_hash
    return verdict


def _act(chaos: Chaos, rng: Random) -> None:
    actions = chaos.actions
    for name in FIRST_NAMES[: rng.randint(2, 5)]:
        actions.do("start", name)
    actions.do("run", rng.choice((0.0, 1.0, 5.0)))
    for _ in range(rng.randint(*STEPS)):
        chaos.act()
        actions.do("run", rng.choice(PAUSES))


def _recover(world: World, actions: Actions, count: Callable[[], int], liar: str) -> None:
    """End the faults; then expect one view, and that everything that is sent arrives.

    liar: the hostile member, if there is one. It starts anew, and the others get the time that it
    may have bound them for."""
    end_faults(world)
    if not world.members:
        return
    if liar in world.members:
        world.members[liar].restart()
        world.run(LIAR_TIMEOUTS * _change_timeout(world))
    left = leaving_seconds(world.spec)
    world.run_until(lambda: not _leaving(world), left, "the leavers to be gone")
    for name in _needed(world):
        if not world.members[name].alive:
            world.members[name].restart()
    what = "all members to be in one view"
    world.run_until(lambda: world.united, reunion_seconds(world), what)
    if not _may_send(world):
        return
    for member in world.running:
        actions.send(member, count())
    for member in world.running:
        assert member.view is not None
        actions.send(member, count(), actions.name(member.view.members[-1]))
    world.settle(settling_seconds(world.spec))


def _compare_states(world: World, replicas: KeptStates | None) -> None:
    """Expect that all newcomers have the state, or know that there is none. Raises BrokenState."""
    if replicas is None or not world.members or not _may_send(world):
        return
    what = "all newcomers to have the state, or to know that there is none"
    world.run_until(lambda: not replicas.searching, STATE_SECONDS, what)
    world.settle(settling_seconds(world.spec))
    if problems := list(replicas.problems()):
        raise BrokenState("; ".join(problems))


def _change_timeout(world: World) -> float:
    seconds = world.spec["membership"].values()["change_timeout"]
    assert isinstance(seconds, float | int)
    return seconds


def _needed(world: World) -> list[str]:
    """The members that have to live so that the others find each other: the seeds, or else any."""
    seeds = world.spec["discovery"].values()["seeds"]
    if isinstance(seeds, tuple) and seeds:
        return [seed for seed in seeds if seed in world.members]
    return [] if world.running else [next(iter(world.members))]


def _may_send(world: World) -> bool:
    """Whether sends go on: not where too many of the last agreed view have crashed."""
    layers = [member.majority for member in world.running if member.majority is not None]
    if not layers:
        return True
    what = "all members to know whether they have a majority"
    world.run_until(lambda: all(layer.is_settled for layer in layers), QUORUM_SECONDS, what)
    return layers[0].has_quorum


def _leaving(world: World) -> bool:
    return any(member.leaving for member in world.running)
