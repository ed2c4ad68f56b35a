"""Figures of runs: of one from what its processes said, of several as medians, and their ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from ringcast_bench.job import Job, Report
from ringcast_bench.load import DISTURBED
from ringcast_bench.messages import LARGE

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of a row."""

    figures: Figures = field(default_factory=dict)
    other_cores: float = 0.0
    """What the machine did besides."""
    failed: str = ""

    @property
    def is_disturbed(self) -> bool:
        """Whether something else ran meanwhile."""
        return self.other_cores > DISTURBED


def summarize(samples: Sequence[Sample]) -> Sample:
    """The medians of the samples that nothing has disturbed, or of all if there are none.

    One that failed makes all of them fail: a row that loses a message now and then does not count.
    """
    for sample in samples:
        if sample.failed:
            return sample
    quiet = [sample for sample in samples if not sample.is_disturbed] or list(samples)
    names = quiet[0].figures if quiet else {}
    figures = {name: median(sample.figures[name] for sample in quiet) for name in names}
    return Sample(figures=figures, other_cores=median([s.other_cores for s in quiet] or [0.0]))


def ratio(one: Figures, other: Figures, figure: str) -> float | None:
    """One as a multiple of the other; None where there is nothing to compare with."""
    if figure not in one or not other.get(figure):
        return None
    return one[figure] / other[figure]


def measure(jobs: Sequence[Job], played: Sequence[Report], used: Sequence[Report]) -> Figures:
    """The figures of one run."""
    figures = _rates(jobs, played) | _times(played) | _idleness(played, used)
    for side, roles in SIDES.items():
        places = [n for n, job in enumerate(jobs) if job.role in roles]
        if places:
            figures |= _costs(side, places, jobs, played, used)
    if jobs[0].size >= LARGE:
        figures["sender_messages"] = 1 + figures["sender_grown"] / jobs[0].size
    return figures


SIDES = {"sender": ("sender", "both", "ping"), "receiver": ("receiver", "both", "pong")}


def _rates(jobs: Sequence[Job], played: Sequence[Report]) -> Figures:
    """Messages and bytes per second at each receiver, until the last of them had everything."""
    began = [number(p["began"]) for p in played if "began" in p]
    ended = [number(p["ended"]) for p in played if "ended" in p]
    counts = [number(p["count"]) for p in played if "count" in p]
    if not began or not ended:
        return {}
    seconds = max(ended) - min(began)
    rate = min(counts) / seconds
    return {"rate": rate, "bytes": rate * jobs[0].size, "seconds": seconds}


def _times(played: Sequence[Report]) -> Figures:
    """Round trips, or how long a join took."""
    names = ("p50", "p99", "join")
    return {name: number(p[name]) for p in played for name in names if name in p}


def _idleness(played: Sequence[Report], used: Sequence[Report]) -> Figures:
    """What a member costs that does nothing, the worst of all."""
    idle = [(number(p["idle"]), u) for p, u in zip(played, used, strict=True) if p.get("idle")]
    if not idle:
        return {}
    return {
        "cpu_percent": max(100 * number(u["cpu"]) / seconds for seconds, u in idle),
        "rss": max(number(u["rss"]) for _, u in idle),
    }


def _costs(
    side: str,
    places: Sequence[int],
    jobs: Sequence[Job],
    played: Sequence[Report],
    used: Sequence[Report],
) -> Figures:
    """CPU microseconds a message, and memory, of the processes of one side."""
    messages = sum(number(played[n].get("count", jobs[n].count)) for n in places)
    cpu = sum(number(used[n]["cpu"]) for n in places)
    return {
        f"{side}_cpu_us": 1e6 * cpu / max(1.0, messages),
        f"{side}_rss": max(number(used[n]["rss"]) for n in places),
        f"{side}_grown": max(number(used[n]["grown"]) for n in places),
    }


def number(value: object) -> float:
    """A number that came as JSON."""
    assert isinstance(value, int | float), value
    return float(value)


def percentiles(times: Sequence[float]) -> Report:
    """The middle, and what one of a hundred exceeds, in seconds."""
    ordered = sorted(times)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
    }
