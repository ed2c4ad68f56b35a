"""The audit as one call: from a trace to a verdict, with violations, their rows, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegralType

from ringcast.errors import ConfigError
from ringcast.spark.audit import tables
from ringcast.spark.audit.evidence import SHOWN, evidence
from ringcast.spark.audit.figures import Measures, all_figures, measure
from ringcast.spark.audit.finding.find import Finder
from ringcast.spark.audit.root_causes import DOUBLES, root_causes
from ringcast.spark.schema import TRACE
from ringcast.trace.rules import Rules
from ringcast.trace.schema import COLUMNS, LATER, unsigned
from ringcast.trace.violations import CAUSES, GUARANTEES, Violation

CLEAN, BROKEN = "clean", "broken"

VIOLATIONS = {
    "guarantee": pa.string(),
    "cause": pa.string(),
    **tables.longs("member", "view", "view_by", "sender", "peer", "first", "last"),
    "what": pa.string(),
    "rows": pa.list_(pa.struct(list(SHOWN.items()))),
}


def audit(
    trace: DataFrame,
    *,
    capacity: int | None = None,
    skips: bool = True,
    skew_us: int = 0,
    waits: bool = True,
    agrees: bool = True,
    ordered: bool = False,
    majority: bool = False,
    limit: int = 1_000,
) -> Report:
    """Check the guarantees over the traces of all members, and measure the run.

    What is owed depends on the stack: `ringcast.trace.rules` explains `capacity` to `majority`, and
    makes them from a spec, as in `audit(trace, **rules_of(spec)._asdict())`. At most `limit`
    violations come with their rows. Raises ConfigError when `trace` is not a trace, or says nothing
    about any view.
    """
    missing = [name for name, _ in COLUMNS if name not in trace.columns]
    if lacking := [name for name in missing if name not in LATER]:
        raise ConfigError(f"This is not a trace of Ringcast: it has no column '{lacking[0]}'.")
    trace = _with_types(trace)
    if missing:  # Spark Connect takes no empty list.
        trace = trace.withColumns({name: F.lit(None).cast("long") for name in missing})
    finder = Finder(trace, Rules(capacity, skips, skew_us, waits, agrees, ordered, majority))
    found = finder.find()
    if not found and not finder.installs:
        raise ConfigError(
            "This trace says nothing about any view, so there is nothing to judge: it has no rows, "
            "or only some of those that members wrote."
        )
    return Report(finder, found, limit)


def _with_types(trace: DataFrame) -> DataFrame:
    """The trace with whole numbers as long as its own. Raises ConfigError for other types."""
    found = {field.name: field.dataType for field in trace.schema}
    other = {
        field.name: (found[field.name], field.dataType)
        for field in TRACE
        if field.name in found and _plain(found[field.name]) != field.dataType
    }
    for name, (kind, right) in other.items():
        if not (isinstance(kind, IntegralType) and isinstance(right, IntegralType)):
            raise ConfigError(
                f"This is not a trace of Ringcast: its column '{name}' is of another type, "
                f"{kind.simpleString()} for {right.simpleString()}."
            )
    cast = {name: F.col(name).cast(right) for name, (_, right) in other.items()}
    return trace.withColumns(cast) if cast else trace


def _plain(kind: DataType) -> DataType:
    """The type, whether or not it says that there are no nulls."""
    return ArrayType(kind.elementType) if isinstance(kind, ArrayType) else kind


class Report:
    """What an audit found."""

    def __init__(self, finder: Finder, found: Sequence[Violation], limit: int) -> None:
        self._trace, self._rules = finder.trace, finder.rules
        self._limit = limit
        self.found = list(found)
        """The violations as plain data, at most twenty alike of a member, view and sender."""
        self.causes = {name: finder.causes[name] for name in CAUSES if finder.causes[name]}
        """How often each guarantee was broken in which way, a key of `CAUSES`; empty is good."""
        counts = Counter[str]()
        for cause, count in self.causes.items():
            counts[CAUSES[cause].guarantee] += count
        self.counts = {name: counts[name] for name in GUARANTEES if counts[name]}
        """How often each guarantee was broken; empty is good."""
        self._members, self._latencies = finder.members, finder.latencies
        self.installs, self.closings = finder.installs, finder.closings
        """Which member installed which view, and where it closed."""

    @property
    def verdict(self) -> str:
        """`clean` or `broken`."""
        return BROKEN if self.found else CLEAN

    @cached_property
    def names(self) -> dict[int, str]:
        """What people call the members, by their addresses as they stand in the trace."""
        pairs = [zip(row.members or (), row.names or (), strict=False) for row in self.installs]
        return dict(pair for row in pairs for pair in row)

    @property
    def untraced(self) -> list[int]:
        """Members of some view that left no trace at all: nothing is known of what they did."""
        return sorted({m for row in self.installs for m in row.members or ()} - self._members)

    @property
    def root_causes(self) -> list[str]:
        """What explains many violations at once, in sentences; look there first."""
        doubles = any(self.causes.get(cause) for cause in DOUBLES)
        shown = self.shown if doubles else ()
        skew_us = self._rules.skew_us
        return root_causes(self.installs, self._latencies, skew_us, self.name, shown)

    def name(self, member: int) -> str:
        """The name of a member; its address where no name is known."""
        return self.names.get(member) or f"{unsigned(member):x}"

    @property
    def unfinished(self) -> list[int]:
        """Members whose traces just end: they are taken to have crashed, and owe nothing there."""
        closed = {row.member for row in self.closings}
        return sorted({row.member for row in self.installs} - closed)

    @property
    def doubts(self) -> list[tuple[str, list[int], str]]:
        """Of whom the verdict says less than of the others: why, who, and what that means."""
        doubts = [
            ("no trace", self.untraced, "what they delivered is not known"),
            ("trace ends", self.unfinished, "taken to have crashed, or to have left early"),
        ]
        return [doubt for doubt in doubts if doubt[1]]

    @cached_property
    def shown(self) -> list[tuple[Violation, list[dict[str, Any]]]]:
        """The violations, at most `limit`, each with the rows that show it."""
        told = self.found[: self._limit]
        rows = evidence(self._trace, told) if told else {}
        return [(violation, rows.get(number, [])) for number, violation in enumerate(told)]

    @cached_property
    def violations(self) -> DataFrame:
        """The same as a local table."""
        data = (
            (
                *(v.guarantee, v.cause, v.member, v.view, v.view_by, v.sender, v.peer),
                *(v.first, v.last, v.what, rows),
            )
            for v, rows in self.shown
        )
        return tables.local(self._trace.sparkSession, VIOLATIONS, data)

    @cached_property
    def measures(self) -> Measures:
        """The figures as plain data, of a large group those that a page shows. Computed when first
        asked for: it takes a few more scans."""
        return measure(self._trace, self.installs)

    @cached_property
    def figures(self) -> DataFrame:
        """All figures as a table: figure, member, peer, at, value."""
        return all_figures(self._trace, self.measures, self.installs)

    def html(self) -> str:
        """The whole report as a page in one piece, with plots."""
        from ringcast.spark.audit.page import audit_page
        from ringcast.spark.audit.page_data import Findings

        capacity = self._rules.capacity
        findings = Findings(
            *(self.counts, self.shown, self.measures, self.installs, self.closings, capacity),
            *(self.doubts, self.root_causes, self.causes),
        )
        return audit_page(findings)

    def write_html(self, path: str | Path) -> Path:
        """Write the page to a file; raises ConfigError when that can't be."""
        place = Path(path)
        try:
            place.write_text(self.html(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"No report can be written to {place}: {error.strerror}.") from error
        return place

    def __str__(self) -> str:
        if not self.counts:
            return "clean: no guarantee was broken"
        told = ", ".join(f"{name} ({count})" for name, count in self.counts.items())
        return f"broken: {told}"
