"""Tells the story of the race and its fix: all schedules counted, one of each failure shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ringcast.ringbuffer.checker import (
    CheckerVerdict,
    Ring,
    Run,
    Schedule,
    ScheduleEnding,
    Threads,
    explore,
    replay,
)
from ringcast.ringbuffer.faulty import AnyNull, LowFirst, NaiveAdd, all_removes
from ringcast.ringbuffer.ring import RingBuffer

NOTE = Threads(adds=(5,), present=(5,))
"""The scenario of the design note: HD=4, HR=5, T1 adds 5 once more while T2 removes it."""

TWO_COPIES = Threads(adds=(5, 5))
"""Two copies of a message that is not there yet come at once, while a third thread removes."""

PRESENT = tuple(Threads(adds=(5,) * n, removes=r, present=(5,)) for n in (1, 2, 3) for r in (1, 2))
"""Copies of a message that is there."""

ABSENT = tuple(Threads(adds=(5,) * n, removes=r) for n in (1, 2, 3) for r in (1, 2))
"""Copies of a message that is not there yet."""

DIFFERENT = tuple(Threads(adds=(5, 6, 7)[:n], removes=r) for n in (2, 3) for r in (1, 2))
"""A message each."""

NEXT_LAP = tuple(
    Threads(adds=adds, removes=r, present=(5,), capacity=capacity)
    for capacity, laps in ((1, (6, 5, 6)), (2, (7, 5, 7)))
    for adds in (laps[:1], laps[:2], laps)
    for r in (1, 2)
)
"""Messages that want the place of one that is being removed, and a copy of that one."""

STABLE = (
    Threads(adds=(5, 6), removes=2, present=(5, 6), capacity=2, stable=6),
    Threads(adds=(7, 7), removes=3, present=(5, 6), capacity=2, stable=6),
    Threads(adds=(7, 5), removes=3, present=(5, 6), capacity=2, stable=6),
    Threads(adds=(6, 7), removes=2, present=(5,), capacity=1, stable=5),
)
"""A ring that keeps what it has delivered until another thread declares it stable."""

ALL = PRESENT + ABSENT + DIFFERENT + NEXT_LAP + STABLE
Write = Callable[[str], None]


def main(write: Write = print) -> int:
    """Tell the story; 0 if it ends as it should: the wrong orders are caught, the ring is right."""
    write("1. The naive add reads HD once. The design note's race:\n")
    naive = _tell(write, NaiveAdd, NOTE)
    write("\n2. The four steps of the note, while copies of a message that is there come:\n")
    letter = _table(write, AnyNull, PRESENT)
    write(
        "\n3. The same four steps, when two copies of a message come at once and it is not there:\n"
    )
    copies = _tell(write, AnyNull, TWO_COPIES)
    write("\n4. RingBuffer: the four steps, and the CAS is on the null that #2 has read:\n")
    ring = _table(write, RingBuffer, ALL)
    write("\n5. What each order of the three steps of remove breaks:\n")
    orders = [_order(write, order, ring_type) for order, ring_type in all_removes().items()]
    write("\n6. What stable() breaks if it writes LOW before it nulls:\n")
    low_first = _tell(write, LowFirst, Threads(adds=(6,), present=(5,), capacity=1, stable=5))
    caught = naive and copies and all(orders[1:]) and low_first
    return 0 if caught and not (letter or ring or orders[0]) else 1


def show(run: Run, schedule: Schedule) -> list[str]:
    """The schedule as lines: a column per thread, then the marks and what lies in the ring.

    The run must be new; the schedule is run on it.
    """
    rows = [[*(actor.title for actor in run.actors), "LOW  HD  HR  ring"]]
    rows.append([*("" for _ in run.actors), _marks(run)])
    for actor in schedule:
        results = len(run.actors[actor].results)
        done = run.step(actor)
        if len(run.actors[actor].results) > results:
            done += f" -> {_brief(run.actors[actor].results[-1].value)}"
        rows.append(
            [*(done if one == actor else "" for one in range(len(run.actors))), _marks(run)]
        )
    widths = [max(map(len, column)) + 3 for column in zip(*rows, strict=True)]
    lines = ["".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    numbers = ["", "", *map(str, range(1, len(rows)))]
    return [f"{number:>5}  {line}" for number, line in zip(numbers, lines, strict=False)]


def show_deliveries(run: Run) -> str:
    """What the finished run has delivered, and what one thread takes in two more laps."""
    seen: set[int] = set()
    names: list[str] = []
    for message in (*run.taken(), *run.afterwards()):
        names.append(_brief(message) + (" AGAIN" if message.seqno in seen else ""))
        seen.add(message.seqno)
    return f"delivered then and in two more laps: {', '.join(names)}"


def _tell(write: Write, ring_type: type[Ring], scenario: Threads) -> list[ScheduleEnding]:
    """One scenario, and a schedule that comes to the worst of its endings."""
    verdict = explore(scenario, ring_type)
    write(_row(verdict))
    for ending in verdict.breaches[:1]:
        write("")
        run = replay(scenario, ring_type, ())
        for line in show(run, verdict.examples[ending]):
            write(line)
        write(f"       {show_deliveries(run)}")
    return verdict.breaches


def _table(
    write: Write, ring_type: type[Ring], scenarios: Iterable[Threads]
) -> list[ScheduleEnding]:
    """A line for each scenario and one for all of them."""
    endings: Counter[ScheduleEnding] = Counter()
    for scenario in scenarios:
        verdict = explore(scenario, ring_type)
        endings.update(verdict.endings)
        write(_row(verdict))
    write(f"  {endings.total():,} schedules in all: {_counts(endings)}")
    return [ending for ending in endings if ending is not ScheduleEnding.GOOD]


def _order(write: Write, order: tuple[str, ...], ring_type: type[Ring]) -> list[ScheduleEnding]:
    """A line for an order of steps: what it comes to in all scenarios that nullify."""
    endings: Counter[ScheduleEnding] = Counter()
    for scenario in ALL:
        if scenario.stable is None and len(scenario.adds) < 3:
            endings.update(explore(scenario, ring_type).endings)
    write(f"  {', '.join(order)}: {_counts(endings)}")
    return [ending for ending in endings if ending is not ScheduleEnding.GOOD]


def _row(verdict: CheckerVerdict) -> str:
    figures = f"{verdict.schedules:>15,} schedules, {verdict.states:>5,} states"
    return f"  {verdict.scenario!s:<64} {figures}: {_counts(verdict.endings)}"


def _counts(endings: Counter[ScheduleEnding]) -> str:
    if endings.keys() == {ScheduleEnding.GOOD}:
        return "all good"
    return "; ".join(f"in {endings[e]:,} {e.value}" for e in ScheduleEnding if endings[e])


def _marks(run: Run) -> str:
    low, delivered, high = run.ring.marks
    contents = (cell.content for cell in run.ring._cells)
    ring = "  ".join(_brief(content[0]) if content else "." for content in contents)
    return f"{low:>3} {delivered:>3} {high:>3}  {ring}"


def _brief(value: object) -> str:
    return f"{value[0]}/{value[1]}" if isinstance(value, tuple) else str(value)
