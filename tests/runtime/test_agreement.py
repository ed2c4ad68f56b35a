"""Killed, stopped, coming and going under full load: those who stay agree on everything.

Each member sums up what it delivered in each view; members that go on together have to have
the same sums. Every wait has the documented bound, and some seconds for a slow machine.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from ringcast.control.discovery import Discovery
from ringcast.control.membership.settings import Membership
from tests.runtime.members import (
    Process,
    await_one_view,
    expect_agreement,
    hear_all,
    processes,
)
from tests.runtime.support import QUICK, SPECS

TRANSPORTS = pytest.mark.parametrize("kind", ["multicast", "tcp"])

SLOW_MACHINE = 20.0
CRASH = 2 * QUICK.interval + QUICK.timeout + QUICK.verify + Membership().gather
"""Seconds from a crash to the view without the dead, with a view change of some round trips."""
MERGE = 1.5 * 0.5 + Membership().gather
"""Seconds from the end of a partition to one view; the stacks of these tests ask twice a second."""
LEAVE = Membership().drain_timeout + Membership().leave_timeout

MANY = 5_000
"""Reports come after this many messages, since there are a lot."""


@contextmanager
def under_load(
    kind: str, *names: str, senders: Sequence[str] | None = None
) -> Iterator[list[Process]]:
    """Members in one view that send as fast as they can; every one has got messages of all."""
    with processes(*names, kind=kind, every=MANY) as members:
        sending = [m for m in members if senders is None or m.name in senders]
        for member in sending:
            member.tell(flood=500)
        for member in members:
            hear_all(member, {m.name: MANY for m in sending}, 2 * SLOW_MACHINE)
        yield members


def finish(*members: Process) -> None:
    """All stop to send, and leave one after the other: nobody hangs."""
    for member in members:
        member.tell(calm=True)
    for member in members:
        member.tell(leave=True)
        assert member.hear("left", LEAVE + SLOW_MACHINE)["left"] == "left"


def expect_view(members: Sequence[Process], seconds: float) -> None:
    """All come to one view with each other, and nobody else, within these seconds."""
    await_one_view(members, seconds + SLOW_MACHINE)


@TRANSPORTS
def test_a_sender_is_killed(kind: str) -> None:
    with under_load(kind, *"abcd", senders="ac") as (a, b, c, d):
        c.signal(signal.SIGKILL)
        expect_view([a, b, d], CRASH)
        finish(a, b, d)
        assert expect_agreement([a, b, c, d]) >= 5


@TRANSPORTS
def test_the_coordinator_is_killed(kind: str) -> None:
    with under_load(kind, *"abcd", senders="ac") as (a, b, c, d):
        a.signal(signal.SIGKILL)
        expect_view([b, c, d], CRASH)
        finish(b, c, d)
        assert expect_agreement([a, b, c, d]) >= 5


@TRANSPORTS
def test_a_sender_and_the_coordinator_are_killed_within_a_second(kind: str) -> None:
    with under_load(kind, *"abcde") as (a, b, c, d, e):
        d.signal(signal.SIGKILL)
        b.hear("got", SLOW_MACHINE)
        a.signal(signal.SIGKILL)
        expect_view([b, c, e], 2 * CRASH)
        finish(b, c, e)
        assert expect_agreement([a, b, c, d, e]) >= 5


@TRANSPORTS
def test_a_member_is_stopped_for_longer_than_the_timeout(kind: str) -> None:
    with under_load(kind, *"abcd", senders="ad") as (a, b, c, d):
        d.signal(signal.SIGSTOP)
        expect_view([a, b, c], CRASH)
        d.signal(signal.SIGCONT)
        expect_view([a, b, c, d], MERGE)
        finish(a, b, c, d)
        assert expect_agreement([a, b, c, d]) >= 8


@TRANSPORTS
def test_the_coordinator_is_stopped_for_longer_than_the_timeout(kind: str) -> None:
    with under_load(kind, *"abc", senders="ab") as (a, b, c):
        a.signal(signal.SIGSTOP)
        expect_view([b, c], CRASH)
        a.signal(signal.SIGCONT)
        expect_view([a, b, c], MERGE)
        finish(a, b, c)
        assert expect_agreement([a, b, c]) >= 5


@pytest.mark.slow
@pytest.mark.timeout(300)
@TRANSPORTS
def test_twenty_joins_and_leaves_under_full_load(kind: str) -> None:
    with under_load(kind, *"abc") as hosts:
        seed = None
        if kind == "tcp":
            hosts[0].tell(ask=True)
            stats = hosts[0].hear("told", SLOW_MACHINE)["stats"]
            assert isinstance(stats, dict)
            seed = str(stats["endpoint"])
        guests: list[Process] = []
        for number in range(20):
            guest = Process(hosts[0].group, f"g{number}", SPECS[kind](seed), every=MANY)
            guests.append(guest)
            try:
                expect_view([*hosts, guest], Discovery().timeout)
                guest.hear("got", SLOW_MACHINE)
                guest.tell(leave=True)
                assert guest.hear("left", LEAVE + SLOW_MACHINE)["left"] == "left"
                expect_view(hosts, Membership().gather)
            finally:
                guest.end()
        finish(*hosts)
        assert expect_agreement([*hosts, *guests]) >= 3 * 40
