"""Bells: a descriptor that is readable once rung, and not after it was cleared."""

import select

import pytest

from ringcast.runtime.system.bell import Bell, EventBell, PipeBell


def is_readable(bell: Bell) -> bool:
    return bool(select.select([bell.fd], [], [], 0)[0])


@pytest.mark.parametrize("make", [EventBell, PipeBell])
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
