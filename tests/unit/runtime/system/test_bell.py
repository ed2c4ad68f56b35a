"""Bells: a descriptor that is readable once rung, and not after it was cleared."""

import os
import select

import pytest

from ringcast.runtime.system.bell import Bell, EventBell, PipeBell

BELLS = [EventBell, PipeBell] if hasattr(os, "eventfd") else [PipeBell]


def is_readable(bell: Bell) -> bool:
    return bool(select.select([bell.fd], [], [], 0)[0])


@pytest.mark.parametrize("make", BELLS)
def test_a_bell_is_rung_and_cleared(make: type[Bell]) -> None:
    bell = make()
    assert not is_readable(bell)
    for _ in range(100_000):  # More than a pipe holds.
        bell.ring()
    assert is_readable(bell)
    bell.clear()
    bell.clear()
    assert not is_readable(bell)
    bell.close()


@pytest.mark.parametrize("make", BELLS)
def test_a_bell_that_is_closed_twice_closes_no_file_of_others(make: type[Bell]) -> None:
    bell = make()
    numbers = {bell.fd, getattr(bell, "_writer", bell.fd)}
    bell.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in numbers]
    assert numbers == set(others), "the kernel gives out the lowest free numbers"
    bell.close()
    for fd in others:
        os.close(fd)  # It is open still.
