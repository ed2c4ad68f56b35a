"""A crash that the system reports is noticed at once; a connection that breaks harms nobody."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ringcast import presets
from ringcast.control.discovery import Discovery
from ringcast.control.failure_detector import FailureDetector
from ringcast.spec import StackSpec
from ringcast.transports import Udp
from tests.runtime.members import Process
from tests.runtime.support import SOON, group_name

PATIENT = FailureDetector(interval=1.0, timeout=600.0)
"""Silence alone would be noticed after ten minutes."""


def tcp(seed: str | None) -> StackSpec:
    found = Discovery(
        multicast=False,
        seeds=() if seed is None else (seed,),
        timeout=0.1,
        interval=0.05,
        when_alone="create" if seed is None else "wait",
    )
    return presets.tcp(when_alone="create").replace(PATIENT, found)


def udp(seed: str | None) -> StackSpec:
    return presets.loopback().replace(PATIENT)


@contextmanager
def group_of(spec: Callable[[str | None], StackSpec], *names: str) -> Iterator[list[Process]]:
    group, started = group_name(), list[Process]()
    try:
        seed = None
        for name in names:
            member = Process(group, name, spec(seed))
            started.append(member)
            member.endpoint = str(member.hear("joined", 2 * SOON)["endpoint"])
            seed = seed or member.endpoint
        for member in started:
            member.hear_view(*names, seconds=2 * SOON)
        yield started
    finally:
        for member in started:
            member.end()


@pytest.mark.parametrize("spec", [tcp, udp])
def test_a_killed_process_is_out_of_the_view_long_before_its_silence_would_be_noticed(
    spec: Callable[[str | None], StackSpec],
) -> None:
    with group_of(spec, "a", "b", "c", "d", "e") as (a, b, c, d, e):
        c.signal(signal.SIGKILL)
        for member in (a, b, d, e):
            member.hear_view("a", "b", "d", "e", seconds=2 * SOON)
        a.signal(signal.SIGKILL)
        b.signal(signal.SIGKILL)
        for member in (d, e):
            member.hear_view("d", "e", seconds=2 * SOON)


def test_a_process_that_starts_again_at_the_same_port_takes_the_place_of_the_dead_one() -> None:
    with group_of(udp, "a", "b", "c") as started:
        b = started[1]
        endpoint, view = b.endpoint, b.stays[-1].view
        b.end()
        port = int(endpoint.rpartition(":")[2])
        again = Process(b.group, "b", udp(None).replace(Udp(bind="127.0.0.1", port=port)))
        started.append(again)
        assert again.hear("joined", 2 * SOON)["endpoint"] == endpoint
        report = again.hear_view("a", "b", "c", seconds=2 * SOON)
        assert report["id"] != view
