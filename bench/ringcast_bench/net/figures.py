"""Figures of a run on the bridge, from the samples that its processes took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from ringcast_bench.figures import Figures, number
from ringcast_bench.job import Job, Report
from ringcast_bench.messages import LARGE
from ringcast_bench.net.network import Network

SETTLE_SECONDS = 5.0
"""How long a sender may take to follow a link that changes, and at most half of the time."""

Series = list[tuple[float, float]]
"""Times, and how many messages had been received."""


@dataclass(frozen=True)
class NetRun:
    """What one process did."""

    job: Job
    report: Report

    @property
    def began(self) -> float:
        """When it began."""
        return number(self.report["began"])

    @property
    def received(self) -> Series:
        """Its messages over time; empty for processes that only send."""
        return [
            (number(sample["at"]), number(sample["received"]))
            for sample in self._samples()
            if "received" in sample and self.job.role != "sender"
        ]

    def range_of(self, what: str) -> float:
        """The difference between the largest and the smallest value of something."""
        values = [number(sample[what]) for sample in self._samples() if what in sample]
        return max(values, default=0.0) - min(values, default=0.0)

    def _samples(self) -> list[Report]:
        return cast(list[Report], self.report["samples"])


def measure(
    network: Network, groups: Sequence[Sequence[NetRun]], sent: int, seconds: float
) -> Figures:
    """The figures of a run; `sent` are the bytes that all interfaces sent meanwhile."""
    first = groups[0]
    size = first[0].job.size
    rates = [rate_of(group) for group in groups]
    messages = sum(max(s[-1][1] for p in group if (s := p.received)) for group in groups)
    figures = {
        "rate": rates[0],
        "bytes": rates[0] * size,
        "overhead": sent / (max(1.0, messages) * size),
    }
    members = [p for group in groups for p in group if p.job.contestant == "ringcast"]
    if members:
        figures["views"] = max(p.range_of("view") for p in members if not p.job.lenient)
        figures["suspicions"] = max(p.range_of("suspected") for p in members)
    if network.narrowest and len(groups) == 1:
        figures["used"] = 8 * size * rates[0] / network.narrowest
    if len(groups) > 1:
        figures |= {"rate": sum(rates), "bytes": sum(rates) * size, "jain": jain(rates)}
        figures["share"] = rates[0] / max(1.0, rates[1])
    if network.changes:
        figures |= _after_changes(network, first, seconds)
    if any((network.changes, network.last_port_mtu)):
        figures["late"] = rate_of(first, from_=2 / 3)
    return figures


def rate_of(group: Sequence[NetRun], from_: float = 0.0) -> float:
    """Messages per second at the slowest receiver that counts, in the last part of the run.

    Large messages count up to the arrival of the last one, since few of them arrive.
    """
    began = min(p.began for p in group)
    rates = []
    for player in group:
        series = player.received
        if not series or player.job.lenient:
            continue
        ended = series[-1][0]
        if player.job.size >= LARGE:
            rises = [late[0] for early, late in pairwise(series) if late[1] > early[1]]
            ended = rises[-1] if rises else ended
        start = began + from_ * (ended - began)
        rates.append(between(series, start, ended))
    return min(rates)


def between(series: Series, start: float, end: float) -> float:
    """Messages per second between two times."""
    early = [count for at, count in series if at <= start]
    late = [count for at, count in series if at <= end]
    return (max(late, default=0.0) - max(early, default=0.0)) / max(1e-9, end - start)


def jain(rates: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    squares = len(rates) * sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / squares if squares else 0.0


def _after_changes(network: Network, group: Sequence[NetRun], seconds: float) -> Figures:
    """How far the link is used after it has become narrow, and after it is wide again."""
    began = min(p.began for p in group)
    figures = {}
    ends = [*(change.at for change in network.changes[1:]), 1.0]
    rate = network.rate
    for change, end in zip(network.changes, ends, strict=True):
        if not change.rate:
            continue
        name = "used_down" if change.rate < rate else "used_up"
        rate = change.rate
        settle = min(SETTLE_SECONDS, (end - change.at) * seconds / 2)
        start, stop = began + change.at * seconds + settle, began + end * seconds
        receivers = [series for p in group if (series := p.received)]
        slowest = min(between(series, start, stop) for series in receivers)
        figures[name] = 8 * group[0].job.size * slowest / rate
    return figures
