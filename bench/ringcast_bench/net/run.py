"""Runs a row on a bridge of its own: builds it, plays for the scenario's time, takes it down."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from ringcast_bench.figures import Figures, Sample
from ringcast_bench.job import BenchFailure, Job
from ringcast_bench.load import look, other_cores
from ringcast_bench.messages import LARGE
from ringcast_bench.net.bridge import Bridge, address
from ringcast_bench.net.figures import NetRun, measure
from ringcast_bench.net.network import Network
from ringcast_bench.process import Child, hear_all
from ringcast_bench.run import jobs_of, open_all
from ringcast_bench.scenarios import Row, Scenario

START_SECONDS = 30.0
"""How long the members of a row may take to find each other, and to report."""
ENDLESS = 1 << 62
QUICK_SIZE = 10_000_000
"""Bytes of a large message in a quick run."""
SECOND_MULTICAST = "239.77.7.8"
"""The multicast address of a second group."""

Placed = tuple[int, Job]
"""A member of the bridge, and what runs there."""


def run_row(scenario: Scenario, row: Row, quick: bool) -> Sample:
    """One run of one row. Raises Missing when the network cannot be built here."""
    network = row.network
    assert network is not None
    groups = place(scenario, row, quick)
    before = look()
    failed, figures = "", {}
    members = 1 + max(member for group in groups for member, _ in group)
    mtus = [network.mtu] * (members - 1) + [network.last_mtu or network.mtu]
    with Bridge(mtus) as bridge:
        prepare(bridge, network, members)
        before = look(bridge.pids)
        try:
            figures = play(bridge, network, groups)
        except BenchFailure as error:
            failed = str(error)
        others = other_cores(before, look(bridge.pids))
    return Sample(figures=figures, other_cores=others, failed=failed)


def place(scenario: Scenario, row: Row, quick: bool) -> list[list[Placed]]:
    """The groups of a row: which job runs at which member. The last receivers share a link."""
    seconds = float(scenario.quick if quick else scenario.count)
    jobs = [_timed(job, seconds, quick) for job in jobs_of(scenario, row, quick)]
    if row.network is not None and row.network.apart:
        jobs[-1] = replace(jobs[-1], lenient=True)
    if not row.beside:
        return [[(member, _at(job, row, member)) for member, job in enumerate(jobs)]]
    second = replace(row, contestant=row.beside)
    if "Udp" in (row.spec or ()) and row.spec is not None:
        second = replace(second, spec=row.spec.replace("Udp", multicast=SECOND_MULTICAST))
    others = [
        replace(_timed(job, seconds, quick), group="second")
        for job in jobs_of(scenario, second, quick)
    ]
    return [
        [(0, _at(jobs[0], row, 0)), (2, _at(jobs[1], row, 2))],
        [(1, _at(others[0], second, 1)), (2, _at(others[1], second, 2))],
    ]


def prepare(bridge: Bridge, network: Network, members: int) -> None:
    """Shape the links, lose packets, switch offload off."""
    if not network.offload:
        bridge.switch_offload_off()
    if network.permille:
        bridge.lose(network.permille)
    last = members - 1
    for member in range(1, members):
        rate = (network.last_rate if member == last else 0) or network.rate
        if rate:
            bridge.shape_to(member, rate, network.queue)
    if network.sender_rate:
        bridge.shape_from(0, network.sender_rate, network.queue)
    if network.last_port_mtu:
        bridge.set_port_mtu(last, network.last_port_mtu)


def play(bridge: Bridge, network: Network, groups: Sequence[Sequence[Placed]]) -> Figures:
    """Start the processes, lead them through their verbs, end them. Raises BenchFailure."""
    seconds = groups[0][0][1].seconds
    until = time.monotonic() + START_SECONDS
    children: list[list[Child]] = []
    ended = threading.Event()
    try:
        for group in groups:
            children.append([])
            for member, job in group:
                children[-1].append(Child(job, bridge.enter(member)))
            open_all(children[-1], until)
        every = [child for group in children for child in group]
        sent = bridge.sent()
        for child in reversed(every):  # Senders last, when all others listen.
            child.tell({"go": True})
        changing = threading.Thread(
            target=_change, args=(bridge, network, seconds, ended), name="changes", daemon=True
        )
        changing.start()
        reports = hear_all(every, "played", time.monotonic() + seconds + START_SECONDS)
        sent = bridge.sent() - sent
        played = dict(zip(every, reports, strict=True))
        results = [[NetRun(child.job, played[child]) for child in group] for group in children]
        return measure(network, results, sent, seconds)
    finally:
        ended.set()
        for group_children in children:
            for child in group_children:
                child.end()


def _change(bridge: Bridge, network: Network, seconds: float, ended: threading.Event) -> None:
    """Let the network's changes happen when it is their time."""
    began = time.monotonic()
    last = len(bridge.pids) - 2
    for change in network.changes:
        if ended.wait(max(0.0, began + change.at * seconds - time.monotonic())):
            return
        if change.rate:
            for member in range(1, last + 1):
                bridge.shape_to(member, change.rate, network.queue)
        if change.mtu:
            bridge.set_mtu(last, change.mtu)
        if change.sender_mtu:
            bridge.set_mtu(0, change.sender_mtu)


def _timed(job: Job, seconds: float, quick: bool) -> Job:
    size = min(job.size, QUICK_SIZE) if quick and job.size >= LARGE else job.size
    return replace(job, count=ENDLESS, seconds=seconds, size=size)


def _at(job: Job, row: Row, member: int) -> Job:
    """The job, bound to the address of a member."""
    host = address(member)
    spec = "" if row.spec is None else row.spec.replace("Udp", bind=host).to_toml()
    return replace(job, host=host, spec=spec)
