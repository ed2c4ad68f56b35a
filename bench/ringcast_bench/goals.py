"""Goals held against outcomes: each as a ratio, what it should be, and whether it is."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast_bench.figures import Sample
from ringcast_bench.run import ScenarioOutcome
from ringcast_bench.scenarios import Goal

PEERS = "peers"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A goal, and what came of it."""

    scenario: str
    goal: Goal
    against: str
    """Who it was compared with: the best peer by its name."""
    value: float | None
    """None when one of the two has no figure."""
    is_disturbed: bool = False

    @property
    def is_reached(self) -> bool | None:
        """None when it could not be measured."""
        if self.value is None:
            return None
        goal = self.goal
        above = goal.least is None or self.value >= goal.least
        return above and (goal.most is None or self.value <= goal.most)


def judge(outcome: ScenarioOutcome) -> list[Judgement]:
    """All goals of a scenario."""
    return [_judge(outcome, goal) for goal in outcome.scenario.goals]


def best_peer(outcome: ScenarioOutcome, figure: str) -> str:
    """The peer with the largest figure; empty when there is none."""
    figures = {
        row.who: outcome.summary(row.who).figures.get(figure)
        for row in outcome.scenario.rows
        if row.kind == "peer" and row.who in outcome.samples
    }
    known = {who: value for who, value in figures.items() if value is not None}
    return max(known, key=lambda who: known[who], default="")


def _judge(outcome: ScenarioOutcome, goal: Goal) -> Judgement:
    against = best_peer(outcome, goal.figure) if goal.against == PEERS else goal.against
    ours = outcome.summary(goal.who)
    theirs = outcome.summary(against) if against else Sample()
    value = ours.figures.get(goal.figure)
    if goal.against and value is not None:
        other = theirs.figures.get(goal.figure)
        value = value / other if other else None
    return Judgement(
        scenario=outcome.scenario.name,
        goal=goal,
        against=against or goal.against,
        value=value,
        is_disturbed=value is not None and (ours.is_disturbed or theirs.is_disturbed),
    )
