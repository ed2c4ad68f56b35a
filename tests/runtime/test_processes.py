"""Members in processes of their own: they exchange, leave, are killed, stopped and blocked."""

import signal
import time

import pytest

from tests.runtime.members import Process, hear_all, processes
from tests.runtime.support import SOON

TRANSPORTS = pytest.mark.parametrize("kind", ["multicast", "unicast", "tcp"])


@TRANSPORTS
def test_processes_exchange_messages_and_leave(kind: str) -> None:
    with processes("a", "b", "c", kind=kind) as (a, b, c):
        for process in (a, b, c):
            process.tell(send=2_000, size=1_000)
        for process in (a, b, c):
            hear_all(process, dict.fromkeys("abc", 2_000))
        c.tell(leave=True)
        assert c.hear("left")["left"] == "left"
        a.hear_view("a", "b")
        b.hear_view("a", "b")


@TRANSPORTS
def test_a_sender_is_killed(kind: str) -> None:
    with processes("a", "b", "c", kind=kind) as (a, b, c):
        c.tell(send=1_000_000, size=500)
        a.hear("got")
        c.signal(signal.SIGKILL)
        assert a.hear_view("a", "b")["id"] == b.hear_view("a", "b")["id"]
        a.tell(send=500)
        hear_all(b, {"a": 500})


@TRANSPORTS
def test_the_coordinator_is_killed(kind: str) -> None:
    with processes("a", "b", "c", kind=kind) as (a, b, c):
        a.signal(signal.SIGKILL)
        assert b.hear_view("b", "c")["id"] == c.hear_view("b", "c")["id"]
        b.tell(send=500)
        hear_all(c, {"b": 500})


def test_coordinator_and_successor_are_killed_together() -> None:
    with processes("a", "b", "c", "d") as (a, b, c, d):
        a.signal(signal.SIGKILL)
        b.signal(signal.SIGKILL)
        assert c.hear_view("c", "d")["id"] == d.hear_view("c", "d")["id"]


@TRANSPORTS
def test_a_member_that_was_stopped_comes_back(kind: str) -> None:
    with processes("a", "b", "c", kind=kind) as (a, b, c):
        c.signal(signal.SIGSTOP)
        a.hear_view("a", "b")
        b.hear_view("a", "b")
        c.signal(signal.SIGCONT)
        while c.hear("event")["event"] != "Expelled":
            pass
        merged = [process.hear_view("a", "b", "c")["id"] for process in (a, b, c)]
        assert len(set(merged)) == 1
        c.tell(send=500)
        hear_all(a, {"c": 500})


@pytest.mark.slow
@TRANSPORTS
def test_a_busy_application_is_not_suspected(kind: str) -> None:
    """It is blocked for many times as long as the silence that makes a member suspected."""
    with processes("a", "b", kind=kind) as (a, b):
        b.tell(block=10.0)
        a.tell(send=40_000, size=1_000)
        b.hear("blocked")
        await_blocked(a, by="b")
        heard = hear_all(a, {"a": 40_000}, 10.0 + SOON)
        heard += hear_all(b, {"a": 40_000}, 10.0 + SOON)
        assert any("awake" in report for report in heard)
        assert not any("event" in report or "view" in report for report in heard)
        a.tell(ask=True)
        assert len(told_views(a)) == 2, "its own, and the one with b"


def await_blocked(process: Process, by: str) -> None:
    """Wait until a sender waits for this member."""
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        process.tell(ask=True)
        stats = process.hear("told")["stats"]
        assert isinstance(stats, dict)
        if stats["blocked_senders"] and stats["waits_for"] == [by]:
            return
    raise AssertionError(f"{process.name} does not wait for {by}")


def told_views(process: Process) -> list[str]:
    """The views that a process says it was in."""
    views = process.hear("told")["told"]
    assert isinstance(views, list)
    return views
