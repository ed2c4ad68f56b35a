"""Finds in the figures of a run what plots need: names, totals, lines over time, views."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ringcast.spark.audit.figures import Measures
from ringcast.spark.report.charts import Series, Span, TimeMark
from ringcast.spark.report.member_names import member_names
from ringcast.spark.report.scale import seconds
from ringcast.spark.report.svg import COLOURS
from ringcast.trace.schema import Row, unsigned
from ringcast.trace.violations import Violation

CHANGES_SHOWN = 2
"""Members that a mark names."""


@dataclass(frozen=True)
class Findings:
    """What the page of an audit is made of, as plain data."""

    counts: dict[str, int]
    violations: Sequence[tuple[Violation, Sequence[dict[str, Any]]]]
    """Each with rows that show it."""
    measures: Measures
    installs: Sequence[Row]
    """The views, as members installed them."""
    closings: Sequence[Row] = ()
    """Where members closed."""
    capacity: int | None = None
    doubts: Sequence[tuple[str, Sequence[int], str]] = ()
    """What is the matter with whose traces, and what that means for the verdict."""
    root_causes: Sequence[str] = ()
    """What explains many violations at once."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """How often each cause was found."""


class PlotData:
    """The figures of a run, by what plots ask for. Times are seconds since the run began."""

    def __init__(self, findings: Findings) -> None:
        self.installs, self.closings = findings.installs, findings.closings
        self.clock = findings.measures.clock
        self.end = max((self.clock.end - self.clock.start) / 1e6, 1e-6)
        self.names = member_names(findings.installs)
        self.members = sorted(self.names, key=lambda member: (self.names[member], member))
        self._whole: dict[str, dict[tuple[int | None, int | None], float]] = defaultdict(dict)
        self._timed: dict[str, dict[int | None, dict[int, float]]] = defaultdict(dict)
        for figure, member, peer, at, value in findings.measures.figures:
            if at is None:
                self._whole[figure][member, peer] = value
            else:
                self._timed[figure].setdefault(member, {})[at] = value

    def name(self, member: int) -> str:
        """The name of a member; its address where no name is known."""
        return self.names.get(member, f"{unsigned(member):x}")

    def total(self, figure: str) -> float:
        """A figure of the whole run; 0 if there is none."""
        return self._whole[figure].get((None, None), 0.0)

    def has(self, figure: str) -> bool:
        """Whether there is such a figure of the whole run."""
        return (None, None) in self._whole[figure]

    def pairs(self, figure: str) -> dict[tuple[int, int | None], float]:
        """A figure of the whole run, by member and peer."""
        return {(m, p): v for (m, p), v in self._whole[figure].items() if m is not None}

    def worst(self, figure: str) -> dict[int, float]:
        """The largest value of each member, over its peers."""
        worst: dict[int, float] = {}
        for (member, _), value in self.pairs(figure).items():
            worst[member] = max(worst.get(member, value), value)
        return worst

    def over_time(self, figure: str, member: int | None = None) -> list[tuple[float, float | None]]:
        """A figure in each interval, of a member or of all; None where there is none."""
        found = self._timed[figure].get(member, {})
        starts = range(self.clock.start, self.clock.end + 1, self.clock.width)
        return [((at - self.clock.start) / 1e6, found.get(at)) for at in starts]

    def by_member(self, figure: str) -> list[Series]:
        """A line for each member that has this figure; the last ones are left out if too many."""
        having = [member for member in self.members if member in self._timed[figure]]
        return [Series(self.name(m), self.over_time(figure, m)) for m in having[:COLOURS]]

    def rates(self, figure: str) -> list[Series]:
        """The same of rates: nothing between the first value and the last one means zero."""
        return [Series(name, _filled(points)) for name, points in self.by_member(figure)]

    def marks(self) -> list[TimeMark]:
        """When views were first installed, but for the first of all, and who came or went."""
        firsts: dict[tuple[int, int], Row] = {}
        for row in sorted(self.installs, key=lambda row: row.at):
            firsts.setdefault((row.view, row.view_by), row)
        views = list(firsts.values())
        return [
            TimeMark(
                (row.at - self.clock.start) / 1e6,
                f"view {row.view}: {self._changes(before, row)}",
            )
            for before, row in pairwise(views)
        ]

    def _changes(self, before: Row, now: Row) -> str:
        """Who came and who went between two views, in a few words."""
        old, new = set(before.members or ()), set(now.members or ())
        closed = {row.member for row in self.closings}
        came = [f"{self.name(member)} joined" for member in sorted(new - old, key=self.name)]
        gone = [
            f"{self.name(member)} {'left' if member in closed else 'gone'}"
            for member in sorted(old - new, key=self.name)
        ]
        told = [*gone, *came]
        more = f" and {len(told) - CHANGES_SHOWN} more" if len(told) > CHANGES_SHOWN else ""
        return ", ".join(told[:CHANGES_SHOWN]) + more or f"by {self.name(now.view_by)}"

    def spans(self, shown: Sequence[int]) -> Iterator[Span]:
        """The time that each of these members spent in each view."""
        views = sorted({(row.view, row.view_by) for row in self.installs})
        colours = {view: number for number, view in enumerate(views)}
        for place, member in enumerate(shown):
            own = sorted((row for row in self.installs if row.member == member), key=_by_view)
            for row, following in zip(own, [*own[1:], None], strict=False):
                end, fate = self._end(row, following)
                start = (row.at - self.clock.start) / 1e6
                named = ", ".join(self.name(other) for other in row.members or ())
                hint = f"view {row.view} by {self.name(row.view_by)}: {named}; {fate}"
                colour = colours[row.view, row.view_by]
                yield Span(place, start, end, str(row.view), colour, hint)

    def _end(self, row: Row, following: Row | None) -> tuple[float, str]:
        """When a member's time in a view ended, and how."""
        if following is not None:
            end = (following.at - self.clock.start) / 1e6
            return end, f"went on to view {following.view} after {seconds(end)}"
        for closing in self.closings:
            if (closing.member, closing.view, closing.view_by) == (
                row.member,
                row.view,
                row.view_by,
            ):
                end = (closing.at - self.clock.start) / 1e6
                return end, f"closed after {seconds(end)}"
        heard = [*self._heard(row.member), row.at]
        end = (max(heard) - self.clock.start) / 1e6
        return min(end, self.end), f"crashed, or not heard of any more after {seconds(end)}"

    def _heard(self, member: int) -> Iterator[int]:
        """The ends of the intervals in which a member did something."""
        for figure in ("delivered_messages_per_second", "sent_messages_per_second"):
            for at in self._timed[figure].get(member, ()):
                yield at + self.clock.width


def _filled(points: Sequence[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    known = [place for place, (_, value) in enumerate(points) if value is not None]
    inside = range(known[0], known[-1]) if known else range(0)
    return [(x, 0.0 if y is None and i in inside else y) for i, (x, y) in enumerate(points)]


def _by_view(row: Row) -> tuple[int, int]:
    return row.view, row.at
