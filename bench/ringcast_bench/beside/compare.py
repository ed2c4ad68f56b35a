"""Runs scenarios in this tree and in another one by turns, and compares turn by turn.

The speed of a machine changes within minutes, so what counts is the ratio within a turn, and the
median of those ratios.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from ringcast_bench.beside.trees import Tree
from ringcast_bench.figures import Figures, Sample, ratio
from ringcast_bench.namespace import Namespace
from ringcast_bench.process import Program
from ringcast_bench.run import Say, ScenarioOutcome, run_row, run_scenario
from ringcast_bench.scenarios import Row, Scenario
from ringcast_bench.table import align

OURS = "this tree"
STANDARD = "1-3-1k,1-1-1k,4-4-1k,1-3-100,1-3-100m,round-trip"
"""The scenarios that are compared unless others are named."""
CPU = ("sender_cpu_us", "receiver_cpu_us")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A row in both trees."""

    scenario: str
    who: str
    theirs: float = 0.0
    """Messages per second, or the median round trip in seconds."""
    ours: float = 0.0
    speeds: tuple[float, ...] = ()
    """Per turn: the speed of this tree as a multiple of the other's."""
    cpu: tuple[float, ...] = ()
    """CPU per message as a multiple of the other's, at the sender and at the receiver."""
    is_time: bool = False
    is_disturbed: bool = False
    problem: str = ""
    """Why there are no figures."""
    has_failed: bool = False

    @property
    def speed(self) -> float | None:
        """The median over all turns; None if there is none."""
        return median(self.speeds) if self.speeds else None

    def is_below(self, least: float) -> bool:
        """Whether this tree is slower than that, or has failed."""
        return self.has_failed or (self.speed is not None and self.speed < least)


def compare(
    namespace: Namespace,
    tree: Tree,
    scenarios: Sequence[Scenario],
    *,
    repeats: int,
    quick: bool,
    say: Say,
) -> Iterator[Comparison]:
    """Every row of Ringcast, `repeats` times in each tree."""
    run = partial(_run, namespace, tree)
    for scenario in scenarios:
        rows = tuple(row for row in scenario.rows if row.kind == "ringcast")
        for row in rows:
            pair = (replace(row, who=f"{row.who}, {tree.name}"), row)
            both = replace(scenario, rows=pair, goals=())
            outcome = run_scenario(both, run, repeats=repeats, quick=quick, say=say)
            yield compared(outcome)


def _run(namespace: Namespace, tree: Tree, scenario: Scenario, row: Row, quick: bool) -> Sample:
    theirs, ours = scenario.rows
    if row is ours:
        return run_row(namespace, scenario, row, quick)
    program = Program(tree.module, tree.environment, partial(tree.lines, scenario.name, ours.who))
    assert row is theirs
    return run_row(namespace, scenario, row, quick, program)


def compared(outcome: ScenarioOutcome) -> Comparison:
    """What came of two rows, the first of which is the other tree's."""
    theirs, ours = (row.who for row in outcome.scenario.rows)
    bare = Comparison(scenario=outcome.scenario.name, who=ours)
    failed = outcome.summary(theirs).failed or outcome.summary(ours).failed
    missing = outcome.missing.get(theirs) or outcome.missing.get(ours)
    if failed or missing:
        return replace(bare, problem=failed or missing or "", has_failed=bool(failed))
    turns = list(zip(outcome.samples[theirs], outcome.samples[ours], strict=True))
    quiet = [turn for turn in turns if not any(sample.is_disturbed for sample in turn)]
    pairs = [(their.figures, our.figures) for their, our in quiet or turns]
    is_time = outcome.scenario.play == "ping"
    figure = "p50" if is_time else "rate"
    if any(figure not in figures for figures in pairs[0]):
        return replace(bare, problem="it has no speed")
    return replace(
        bare,
        theirs=median(their[figure] for their, _ in pairs),
        ours=median(our[figure] for _, our in pairs),
        speeds=tuple(_speed(their, our, figure, is_time) for their, our in pairs),
        cpu=tuple(median(ratio(our, their, cpu) or 0.0 for their, our in pairs) for cpu in CPU),
        is_time=is_time,
        is_disturbed=not quiet,
    )


def _speed(theirs: Figures, ours: Figures, figure: str, is_time: bool) -> float:
    return theirs[figure] / ours[figure] if is_time else ours[figure] / theirs[figure]


def table(comparisons: Sequence[Comparison], name: str) -> str:
    """One line per row, and remarks."""
    head = ["", "", name, OURS, "× speed", "least", "most", "× sender CPU", "× receiver CPU"]
    lines = [head]
    remarks = []
    for one in comparisons:
        if one.speed is None:
            words = "failed" if one.has_failed else "left out"
            remarks.append(f"  {words}: {one.scenario}, {one.who} ({one.problem})")
            continue
        numbers = (one.speed, min(one.speeds), max(one.speeds), *one.cpu)
        values = [_amount(value, one.is_time) for value in (one.theirs, one.ours)]
        mark = " *" if one.is_disturbed else ""
        lines.append([one.scenario, one.who + mark, *values, *(f"{n:.2f}" for n in numbers)])
    if any(one.is_disturbed for one in comparisons):
        remarks.append("  * disturbed: others used the machine in every turn")
    return "\n".join([*align(lines, left=2), *remarks])


def _amount(value: float, is_time: bool) -> str:
    if is_time:
        return f"{1e6 * value:,.1f} µs"
    return f"{value:,.0f}" if value >= 1_000 else f"{value:,.2f}"
