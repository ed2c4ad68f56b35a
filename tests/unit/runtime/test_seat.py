"""Waiting for something that comes, for a bell, or for a time."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from ringcast.runtime.seat import Seat


@pytest.fixture
def wire() -> Iterator[tuple[Seat, socket.socket]]:
    """A seat, and what it hears."""
    mine, other = socket.socketpair()
    with mine, other:
        seat = Seat([mine.fileno()])
        yield seat, other
        seat.close()


def test_it_returns_when_something_comes(wire: tuple[Seat, socket.socket]) -> None:
    seat, other = wire
    other.send(b"x")
    assert seat.wait(float("inf"))


def test_it_returns_when_the_bell_rings_and_only_once(wire: tuple[Seat, socket.socket]) -> None:
    seat, _ = wire
    seat.ring()
    seat.ring()
    assert not seat.wait(float("inf"))
    start = time.monotonic()
    assert not seat.wait(0.01)
    assert time.monotonic() - start >= 0.009


def test_a_look_waits_for_nothing(wire: tuple[Seat, socket.socket]) -> None:
    seat, other = wire
    assert not seat.look()
    other.send(b"x")
    assert seat.look()
    assert seat.wait(float("inf"))


def test_rest_hears_the_bell_only(wire: tuple[Seat, socket.socket]) -> None:
    seat, other = wire
    other.send(b"x")
    start = time.monotonic()
    seat.rest(0.01)
    assert time.monotonic() - start >= 0.009
    seat.ring()
    seat.rest(60.0)
    assert time.monotonic() - start < 30.0


def test_descriptors_beyond_what_select_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = socket.socketpair()
    high = os.dup2(mine.fileno(), 1_500) if can_open(1_500) else mine.fileno()
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    high_bell = os.dup2(bell, 1_501) if can_open(1_501) else os.dup(bell)
    os.close(bell)
    monkeypatch.setattr(os, "eventfd", lambda *_: high_bell)
    with mine, other:
        seat = Seat([high])
        try:
            seat.rest(0.001)
            seat.ring()
            seat.rest(60.0)
            assert not seat.wait(0.001)
            other.send(b"x")
            assert seat.wait(float("inf"))
        finally:
            seat.close()
            if high != mine.fileno():
                os.close(high)


def can_open(fd: int) -> bool:
    """Whether a descriptor of this number is allowed."""
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] > fd
