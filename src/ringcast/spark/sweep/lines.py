"""Compares candidates: a line for each in each scene, over all seeds; the worst seed counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ringcast.sim.isolated import DONE, IsolatedResult
from ringcast.spark.sweep.figures import FIGURES, Bound, measured
from ringcast.spark.sweep.grid import Candidate, Grid, Simulation

TINY = 1e-9
"""Stands for zero in a geometric mean."""


@dataclass(frozen=True)
class Line:
    """A candidate in a scene, over all seeds."""

    candidate: Candidate
    scene: dict[str, object]
    scene_number: int
    statuses: Counter[str]
    figures: dict[str, float | None]
    """The worst of all seeds; None where a run has no such figure."""
    exceeded: tuple[Bound, ...]
    """The bounds that are meant for this scene and do not hold."""

    @property
    def wrong(self) -> int:
        """How many runs did not end as they should."""
        return self.statuses.total() - self.statuses[DONE]

    @property
    def is_good(self) -> bool:
        """Whether every run ended as it should, within the bounds."""
        return not self.wrong and not self.exceeded


@dataclass(frozen=True)
class GridJudgement:
    """The settings within the bounds, and the best of them."""

    lines: list[Line]
    """Scene by scene, and candidate by candidate."""
    within: list[Candidate]
    """The best first."""
    scores: dict[int, float]
    """The figure to be best at, of each candidate by its number: the geometric mean over the
    scenes, so that a large group does not outweigh a small one."""

    @property
    def best(self) -> Candidate | None:
        """The best of those within the bounds, if there is one."""
        return self.within[0] if self.within else None

    def of(self, candidate: Candidate) -> list[Line]:
        """The lines of one candidate."""
        return [line for line in self.lines if line.candidate.number == candidate.number]


def judge(grid: Grid, results: Sequence[tuple[Simulation, IsolatedResult]]) -> GridJudgement:
    """Compare all candidates of a grid that was run."""
    cells: dict[tuple[int, int], list[tuple[Simulation, IsolatedResult]]] = {}
    for run, result in results:
        cells.setdefault((run.scene_number, run.candidate.number), []).append((run, result))
    lines = [_line(grid, cell) for cell in cells.values()]
    scores = {c.number: _score(grid, lines, c) for c in grid.candidates}
    bad = {line.candidate.number for line in lines if not line.is_good}
    within = [c for c in grid.candidates if c.number not in bad]
    sign = -1 if grid.best.more_is_better else 1
    # Equals stay in the order of the grid.
    within.sort(key=lambda candidate: sign * scores[candidate.number])
    return GridJudgement(lines, within, scores)


def _line(grid: Grid, cell: Sequence[tuple[Simulation, IsolatedResult]]) -> Line:
    run = cell[0][0]
    outcomes = [None if result.outcome is None else result.outcome for _, result in cell]
    figures: dict[str, float | None] = dict.fromkeys(FIGURES)
    known = [measured(outcome) for outcome in outcomes if outcome is not None]
    for name, figure in FIGURES.items():
        values = [value for values in known if (value := values[name]) is not None]
        if len(values) == len(cell):
            figures[name] = figure.worst(values)
    exceeded = tuple(
        bound
        for bound in grid.bounds
        if bound.applies(run.scene) and not bound.holds(figures[bound.figure.name])
    )
    statuses = Counter(result.status for _, result in cell)
    return Line(run.candidate, dict(run.scene), run.scene_number, statuses, figures, exceeded)


def _score(grid: Grid, lines: Sequence[Line], candidate: Candidate) -> float:
    own = [line for line in lines if line.candidate.number == candidate.number]
    values = [line.figures[grid.best.name] for line in own]
    known = [max(value, TINY) for value in values if value is not None]
    if len(known) < len(values) or not known:
        return -math.inf if grid.best.more_is_better else math.inf
    return math.exp(sum(map(math.log, known)) / len(known))
