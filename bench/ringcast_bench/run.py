"""Runs scenarios: every row in turn, then all again, so that what changes hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory

from ringcast_bench.figures import Sample, measure, summarize
from ringcast_bench.flood import Flood
from ringcast_bench.job import BenchFailure, Job, Missing
from ringcast_bench.load import look, other_cores
from ringcast_bench.namespace import Firewall, Namespace
from ringcast_bench.peers.brokers import Broker
from ringcast_bench.process import OWN, Child, Program, hear_all
from ringcast_bench.scenarios import Row, Scenario

RUN_SECONDS = 90.0
"""How long one run may take before it has failed."""

Say = Callable[[str], None]
RunRow = Callable[[Scenario, Row, bool], Sample]
"""Runs one row once; the flag is for a quick run. Raises Missing."""


@dataclass(frozen=True, kw_only=True)
class ScenarioOutcome:
    """What came of a scenario."""

    scenario: Scenario
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    """By row."""
    missing: dict[str, str] = field(default_factory=dict)
    """Rows that were left out, with the reason."""

    @property
    def has_failed(self) -> bool:
        """Whether a row lost something, or did not come to its end."""
        return any(sample.failed for samples in self.samples.values() for sample in samples)

    def summary(self, who: str) -> Sample:
        """The medians of a row."""
        return summarize(self.samples.get(who, ()))


def run_scenario(
    scenario: Scenario, run: RunRow, *, repeats: int, quick: bool, say: Say
) -> ScenarioOutcome:
    """All rows, interleaved, `repeats` times."""
    outcome = ScenarioOutcome(scenario=scenario)
    for repeat in range(1, repeats + 1):
        for row in scenario.rows:
            if row.who in outcome.missing:
                continue
            say(f"{scenario.name}: {row.who}, {repeat} of {repeats}")
            try:
                sample = run(scenario, row, quick)
            except Missing as error:
                outcome.missing[row.who] = str(error)
            else:
                outcome.samples.setdefault(row.who, []).append(sample)
    return outcome


def run_row(
    namespace: Namespace, scenario: Scenario, row: Row, quick: bool, program: Program = OWN
) -> Sample:
    """One run of one row. Raises Missing."""
    jobs = jobs_of(scenario, row, quick)
    before = look(namespace.pids)
    failed, figures = "", {}
    try:
        with (
            TemporaryDirectory(prefix="ringcast-bench-") as place,
            Broker(row.contestant, namespace.enter) as broker,
            Firewall(namespace, row.firewall),
            Flood(namespace, row.flood),
        ):
            trace = place if row.trace else ""
            jobs = [replace(job, broker=broker.url, trace=trace) for job in jobs]
            figures = run_jobs(jobs, namespace.enter, program=program)
    except BenchFailure as error:
        failed = str(error)
    others = other_cores(before, look(namespace.pids))
    return Sample(figures=figures, other_cores=others, failed=failed)


def run_jobs(
    jobs: Sequence[Job],
    enter: Sequence[str],
    seconds: float = RUN_SECONDS,
    program: Program = OWN,
) -> dict[str, float]:
    """Start the processes, lead them through their verbs, end them. Raises BenchFailure and
    Missing."""
    until = time.monotonic() + seconds
    lines = program.lines(list(jobs))
    children: list[Child] = []
    try:
        for job, line in zip(jobs, lines, strict=True):
            children.append(Child(job, enter, program, line))
        open_all(children, until)
        for child in reversed(children):  # Senders last, when all others listen.
            child.tell({"go": True})
        awaited = [child for child in children if not child.job.pause]
        played = hear_all(awaited, "played", until)
        for child in awaited:
            child.tell({"stop": True})
        used = hear_all(awaited, "used", until)
        return measure([child.job for child in awaited], played, used)
    finally:
        for child in children:
            child.end()


def open_all(children: Sequence[Child], until: float) -> None:
    """Open all, the first one before the others, and wait until each can reach each."""
    first, *others = children
    first.tell({})
    opened = hear_all([first], "opened", until)
    for child in others:
        child.tell(opened[0])
    opened += hear_all(others, "opened", until)
    for child in children:
        child.tell({"others": opened})
    hear_all(children, "ready", until)


ROLES = {
    "stream": ("sender", "receiver"),
    "everybody": ("both", "both"),
    "ping": ("ping", "pong"),
    "join": ("idle", "joiner"),
    "idle": ("idle", "idle"),
    "form": ("form", "form"),
}
"""What senders and receivers do, by what is played."""


def jobs_of(scenario: Scenario, row: Row, quick: bool) -> list[Job]:
    """What each process of a run has to do; senders come first."""
    count = max(1, round((scenario.quick if quick else scenario.count) * row.share))
    first, second = ROLES[scenario.play]
    roles = [first] * scenario.senders + [second] * scenario.receivers
    if scenario.play == "everybody":
        roles = roles[: scenario.senders]
    last = len(roles) - 1
    if row.viewer:
        roles.append("viewer")
    return [
        Job(
            contestant=row.contestant,
            role=role,
            index=index,
            senders=scenario.senders,
            receivers=scenario.receivers,
            size=scenario.size,
            count=0 if role == "idle" and scenario.play == "join" else count,
            api=row.viewer if role == "viewer" else row.api,
            to_all=row.to_all,
            random=row.random,
            closed=row.closed,
            spec="" if row.spec is None else row.spec.to_toml(),
            pause=row.pause if index == last else 0.0,
        )
        for index, role in enumerate(roles)
    ]
