"""The figures by which runs are compared, and the bounds that a user sets to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.sim.trial import TrialOutcome
from ringcast.spark.report.scale import Format, nbytes, number, seconds


@dataclass(frozen=True)
class SweepFigure:
    """One number of a run."""

    name: str
    about: str
    unit: Format = number
    more_is_better: bool = False

    def worst(self, values: list[float]) -> float:
        """The value that counts against the settings."""
        return min(values) if self.more_is_better else max(values)


def _share(value: float) -> str:
    return f"{value:.2%}"


FIGURES = {
    figure.name: figure
    for figure in (
        SweepFigure("p50", "latency that half of the deliveries do not exceed", seconds),
        SweepFigure("p99", "latency that 99 % of the deliveries do not exceed", seconds),
        SweepFigure("max", "the longest latency", seconds),
        SweepFigure("throughput", "messages a virtual second", more_is_better=True),
        SweepFigure("resent", "messages sent again, as a share of all sent", _share),
        SweepFigure("control", "control frames for each delivered message"),
        SweepFigure("window_bytes", "the most that the windows of a member held", nbytes),
        SweepFigure("views", "views that were installed while the run went on"),
    )
}
"""Every figure by the name that it has in a grid."""


def measured(outcome: TrialOutcome) -> dict[str, float | None]:
    """The figures of one run."""
    return {
        "p50": outcome.latency_p50,
        "p99": outcome.latency_p99,
        "max": outcome.latency_max,
        "throughput": outcome.throughput,
        "resent": outcome.retransmitted / outcome.sent if outcome.sent else None,
        "control": outcome.control_per_delivered,
        "window_bytes": float(outcome.window_bytes_max),
        "views": float(outcome.views),
    }


@dataclass(frozen=True)
class Bound:
    """What a figure has to be, in some of the networks and loads or in all."""

    figure: SweepFigure
    limit: float
    where: tuple[tuple[str, tuple[object, ...]], ...] = ()
    """Names of networks' and loads' settings with the values for which the bound is meant."""

    def applies(self, scene: Mapping[str, object]) -> bool:
        """Whether the bound is meant for this network and load."""
        return all(scene[name] in values for name, values in self.where)

    def holds(self, value: float | None) -> bool:
        """Whether a value is within the bound; none is not."""
        if value is None:
            return False
        return value >= self.limit if self.figure.more_is_better else value <= self.limit

    def __str__(self) -> str:
        least = "at least" if self.figure.more_is_better else "at most"
        said = f"{self.figure.name} {least} {self.figure.unit(self.limit)}"
        parts = [f"{name} {' or '.join(map(shown, values))}" for name, values in self.where]
        return f"{said} with {', '.join(parts)}" if parts else said


def shown(value: object) -> str:
    """A value of a grid, for people."""
    if isinstance(value, tuple):
        numbers = all(isinstance(part, float) for part in value) and len(value) == 2
        parts = [f"{part:g}" if isinstance(part, float) else str(part) for part in value]
        return ("-" if numbers else ", ").join(dict.fromkeys(parts)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)
