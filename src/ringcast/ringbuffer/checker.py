"""Runs every interleaving of add and remove, so that the RingBuffer's steps are shown to be right.

An operation is a generator of atomic steps; an actor is a thread that runs some of them one after
the other; a schedule says whose step is next. `explore` goes through all schedules of a scenario,
depth first. A generator cannot be copied, so a branch is reached by replaying the path to it.
Millions of schedules pass through a few thousand states, and what can follow depends on the state
alone: the ring, what each operation returned and, for those under way, the instruction at which
their frame stands and its locals. So each state is gone through once, and the schedules that pass
through it are counted instead of run again.

At the end of each schedule one thread uses the ring for two more laps. What a race has left behind
turns up there: a message that is delivered again, a place that takes nothing any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from types import GeneratorType
from typing import NamedTuple, TypeAlias

from ringcast.ringbuffer.ring import Cell, RingBuffer, Steps

Ring: TypeAlias = "RingBuffer[Added]"
Schedule: TypeAlias = tuple[int, ...]
"""The actor whose step is next, by its place in the run."""

DUPLICATE_STEPS = ("#2 read element", "#4 CAS(null, element)")
"""An add that ends after one of these took its message for a duplicate."""


class ScheduleEnding(Enum):
    """What a schedule comes to; of several the first in this list."""

    TWICE = "a message is delivered twice"
    ACCEPTED_TWICE = "a message is accepted twice"
    LOST = "a message is lost or out of order"
    BLOCKED = "a place takes no message any more"
    REFUSED = "a new message is refused as a duplicate"
    MARKS = "not LOW <= HD <= HR <= LOW + capacity"
    GOOD = "nothing is wrong"


class Added(NamedTuple):
    """What is added: its seqno and the thread that brought it."""

    seqno: int
    by: str


@dataclass(frozen=True, kw_only=True)
class Threads:
    """What the threads do: each add is a thread, all removes are one, and `stable` is one more."""

    adds: tuple[int, ...]
    removes: int = 1
    present: tuple[int, ...] = ()
    start: int = 4
    capacity: int = 4
    stable: int | None = None
    """If given, the ring does not nullify, and a thread calls stable() with it."""

    def __str__(self) -> str:
        there = f"{', '.join(map(str, self.present)) or 'nothing'} there"
        adds = ", ".join(f"add({seqno})" for seqno in self.adds)
        stable = "" if self.stable is None else f", stable({self.stable})"
        return f"capacity {self.capacity}, {there}: {adds}, {self.removes} x remove(){stable}"


@dataclass
class CheckerVerdict:
    """What all the schedules of a scenario come to."""

    scenario: Threads
    states: int = 0
    endings: Counter[ScheduleEnding] = field(default_factory=Counter)
    """How many schedules come to what."""
    examples: dict[ScheduleEnding, Schedule] = field(default_factory=dict)
    """A schedule for each ending, with few changes of thread."""

    @property
    def schedules(self) -> int:
        """How many schedules there are."""
        return self.endings.total()

    @property
    def breaches(self) -> list[ScheduleEnding]:
        """The endings that are not good, the worst first."""
        return [
            ending
            for ending in ScheduleEnding
            if self.endings[ending] and ending is not ScheduleEnding.GOOD
        ]

    def include(self, actor: int, branch: CheckerVerdict) -> None:
        """Add the schedules of the branch that begins with a step of the actor."""
        self.endings.update(branch.endings)
        for ending, rest in branch.examples.items():
            example = (actor, *rest)
            if ending not in self.examples or _changes(example) < _changes(self.examples[ending]):
                self.examples[ending] = example


def explore(scenario: Threads, ring_type: type[Ring] = RingBuffer) -> CheckerVerdict:
    """Run every schedule of the scenario on rings of this type."""
    known: dict[Hashable, CheckerVerdict] = {}

    def visit(run: Run, path: Schedule) -> CheckerVerdict:
        state = run.state()
        if state in known:
            return known[state]
        verdict = known[state] = CheckerVerdict(scenario)
        choices = run.ready()
        if not choices:
            ending = run.ending()
            verdict.endings[ending], verdict.examples[ending] = 1, ()
        for choice in choices:
            # The first branch goes on with this run, the others begin anew.
            branch = run if choice == choices[0] else replay(scenario, ring_type, path)
            branch.step(choice)
            verdict.include(choice, visit(branch, (*path, choice)))
        return verdict

    verdict = visit(Run(scenario, ring_type), ())
    verdict.states = len(known)
    return verdict


def replay(scenario: Threads, ring_type: type[Ring], schedule: Schedule) -> Run:
    """A run that has gone through the schedule."""
    run = Run(scenario, ring_type)
    for actor in schedule:
        run.step(actor)
    return run


class Run:
    """One execution of a scenario: the ring, the actors, and whether the marks were ever wrong."""

    def __init__(self, scenario: Threads, ring_type: type[Ring]) -> None:
        ring = ring_type(scenario.capacity, scenario.start, nullify=scenario.stable is None)
        for seqno in scenario.present:
            ring.add(seqno, Added(seqno, "T0"))
        self.scenario, self.ring, self.marks_wrong = scenario, ring, False
        self.adders = {
            Added(seqno, f"T{number}"): Actor(
                f"T{number} add({seqno})", ring.add_steps(seqno, Added(seqno, f"T{number}"))
            )
            for number, seqno in enumerate(scenario.adds, 1)
        }
        number = len(self.adders) + 1
        removes = (ring.remove_steps() for _ in range(scenario.removes))
        self.remover = Actor(f"T{number} remove()", *removes)
        self.actors = [*self.adders.values(), self.remover]
        if scenario.stable is not None:
            stable = ring.stable_steps(scenario.stable)
            self.actors.append(Actor(f"T{number + 1} stable({scenario.stable})", stable))

    def ready(self) -> list[int]:
        """The actors that have a step to do."""
        return [place for place, actor in enumerate(self.actors) if actor.step]

    def step(self, actor: int) -> str:
        """Do the next step of the actor; its name."""
        done = self.actors[actor].advance()
        low, delivered, high = self.ring.marks
        self.marks_wrong |= not low <= delivered <= high <= low + self.ring.capacity
        return done

    def state(self) -> Hashable:
        """All that the rest of the run depends on."""
        cells: dict[int, int] = {}

        def name(value: object) -> Hashable:
            # A cell is what is in it and who else holds it; the ring is told below.
            if isinstance(value, Cell):
                return cells.setdefault(id(value), len(cells)), value.content
            if isinstance(value, RingBuffer):
                return None
            assert isinstance(value, int | str | tuple), "A local is kept that may change unseen."
            return value

        places = tuple(name(cell) for cell in self.ring._cells)
        actors = tuple(actor.state(name) for actor in self.actors)
        return self.ring.marks, self.marks_wrong, places, actors

    def ending(self) -> ScheduleEnding:
        """What the finished run comes to. Uses the ring up."""
        taken = self.taken() + self.afterwards()
        seqnos = [message.seqno for message in taken]
        in_order = list(range(self.scenario.start + 1, self.scenario.start + 1 + len(taken)))
        accepted = [Added(seqno, "T0") for seqno in self.scenario.present]
        accepted += [message for message, adder in self.adders.items() if adder.results[0].value]
        copies = Counter(message.seqno for message in accepted)
        checks = {
            ScheduleEnding.TWICE: len(set(seqnos)) < len(seqnos),
            ScheduleEnding.ACCEPTED_TWICE: len(copies) < len(accepted),
            ScheduleEnding.LOST: not set(accepted) <= set(taken) or seqnos != in_order,
            ScheduleEnding.BLOCKED: len(taken) < 2 * self.ring.capacity,
            ScheduleEnding.MARKS: self.marks_wrong,
            ScheduleEnding.REFUSED: any(
                adder.results[0].after in DUPLICATE_STEPS and not copies[message.seqno]
                for message, adder in self.adders.items()
            ),
            ScheduleEnding.GOOD: True,
        }
        return next(ending for ending in ScheduleEnding if checks[ending])

    def taken(self) -> list[Added]:
        """What the remover has taken."""
        values = (result.value for result in self.remover.results)
        return [value for value in values if isinstance(value, Added)]

    def afterwards(self) -> list[Added]:
        """What one thread takes from the ring now and in two more laps."""
        ring = self.ring
        taken = ring.remove_many(ring.capacity)
        for _ in range(2):
            ring.stable(ring.delivered)
            for seqno in range(ring.low + 1, ring.low + ring.capacity + 1):
                ring.add(seqno, Added(seqno, "later"))
            taken += ring.remove_many(ring.capacity)
        return taken


class Returned(NamedTuple):
    """What an operation returned, and after which step."""

    after: str
    value: object


class Actor:
    """A thread: operations that are run one after the other, a step at a time."""

    def __init__(self, title: str, *operations: Steps[object]) -> None:
        self.title = title
        self.results: list[Returned] = []
        self.step: str | None = None
        """The step that it does next, or None when it is through."""
        self._operations = list(operations)
        self._proceed("")

    def advance(self) -> str:
        """Do the next step; its name."""
        assert self.step is not None, "An actor that is through has no next step."
        done = self.step
        self._proceed(done)
        return done

    def _proceed(self, done: str) -> None:
        """Run up to the next step, be it of this operation or of the next one."""
        self.step = None
        while self._operations and self.step is None:
            try:
                self.step = next(self._operations[0])
            except StopIteration as end:
                self.results.append(Returned(done, end.value))
                self._operations.pop(0)

    def state(self, name: Callable[[object], Hashable]) -> Hashable:
        """The results, and where the operation under way stands."""
        results = tuple(self.results)
        steps = self._operations[0] if self._operations else None
        if not isinstance(steps, GeneratorType) or (frame := steps.gi_frame) is None:
            return results
        # Sorted: the order of the locals depends on when they were last looked at.
        variables = sorted(frame.f_locals.items())
        return results, frame.f_lasti, tuple((key, name(value)) for key, value in variables)


def _changes(schedule: Schedule) -> int:
    return sum(one != other for one, other in pairwise(schedule))
