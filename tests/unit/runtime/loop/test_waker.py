"""Waiting for something that comes, for a bell, or for a time."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from ringcast.runtime.loop.waker import Waker


@pytest.fixture
def wire() -> Iterator[tuple[Waker, socket.socket]]:
    """A waker, and what it hears."""
    mine, other = socket.socketpair()
    with mine, other:
        waker = Waker([mine.fileno()])
        yield waker, other
        waker.close()


def test_it_returns_when_something_comes(wire: tuple[Waker, socket.socket]) -> None:
    waker, other = wire
    other.send(b"x")
    assert waker.wait(float("inf"))


def test_it_returns_when_the_bell_rings_and_only_once(wire: tuple[Waker, socket.socket]) -> None:
    waker, _ = wire
    waker.wake()
    waker.wake()
    assert not waker.wait(float("inf"))
    start = time.monotonic()
    assert not waker.wait(0.01)
    assert time.monotonic() - start >= 0.009


def test_a_look_waits_for_nothing(wire: tuple[Waker, socket.socket]) -> None:
    waker, other = wire
    assert not waker.poll()
    other.send(b"x")
    assert waker.poll()
    assert waker.wait(float("inf"))


def test_rest_hears_the_bell_only(wire: tuple[Waker, socket.socket]) -> None:
    waker, other = wire
    other.send(b"x")
    start = time.monotonic()
    waker.wait_for_wake(0.01)
    assert time.monotonic() - start >= 0.009
    waker.wake()
    waker.wait_for_wake(60.0)
    assert time.monotonic() - start < 30.0


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="needs eventfd")
def test_descriptors_beyond_what_select_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = socket.socketpair()
    high = os.dup2(mine.fileno(), 1_500) if can_open(1_500) else mine.fileno()
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    high_bell = os.dup2(bell, 1_501) if can_open(1_501) else os.dup(bell)
    os.close(bell)
    monkeypatch.setattr(os, "eventfd", lambda *_: high_bell)
    with mine, other:
        waker = Waker([high])
        try:
            waker.wait_for_wake(0.001)
            waker.wake()
            waker.wait_for_wake(60.0)
            assert not waker.wait(0.001)
            other.send(b"x")
            assert waker.wait(float("inf"))
        finally:
            waker.close()
            if high != mine.fileno():
                os.close(high)


def can_open(fd: int) -> bool:
    """Whether a descriptor of this number is allowed."""
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] > fd
