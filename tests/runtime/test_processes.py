"""Members in processes of their own: killed, stopped, blocked, coming and going under load."""

import signal

import pytest

from tests.runtime.support import SPECS, Process, processes

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


def test_a_busy_application_is_not_suspected() -> None:
    """It is blocked for several times as long as the silence that makes a member suspected."""
    with processes("a", "b") as (a, b):
        b.tell(block=3.0)
        a.tell(send=30_000, size=1_000)
        b.hear("blocked")
        hear_all(a, {"a": 30_000})
        report = hear_all(b, {"a": 30_000})
        assert not any("event" in line or "view" in line for line in report)


def test_joins_and_leaves_under_load() -> None:
    with processes("a", "b") as (a, b):
        a.tell(send=20_000_000, size=100)
        a.hear("got")
        for number in range(4):
            name = f"j{number}"
            guest = Process(b.group, name, SPECS["multicast"](None))
            try:
                guest.hear_view("a", "b", name)
                guest.hear("got")
                guest.tell(leave=True)
                guest.hear("left")
                b.hear_view("a", "b")
            finally:
                guest.end()


def hear_all(process: Process, wanted: dict[str, int]) -> list[dict[str, object]]:
    """Until so many messages of each were taken, all of them in order; everything that was said."""
    heard: list[dict[str, object]] = []
    missing = dict(wanted)
    while missing:
        report = process.hear("")
        heard.append(report)
        if "got" in report:
            assert report["in_order"], (
                f"{process.name} got messages of {report['from']} out of order"
            )
            name, count = str(report["from"]), report["got"]
            assert isinstance(count, int)
            if count >= missing.get(name, count + 1):
                del missing[name]
    return heard
