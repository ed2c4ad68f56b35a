"""A place to wait: for a transport, for a time, or for a bell that any other thread can ring."""

from __future__ import annotations

import contextlib
import math
import os
import select
from collections.abc import Sequence


def two_seats(fds: Sequence[int]) -> tuple[Seat, Seat]:
    """Two places to wait for the same. Raises OSError, and then there is none."""
    first = Seat(fds)
    try:
        return first, Seat(fds)
    except OSError:
        first.close()
        raise


class Seat:
    """Where one thread at a time waits. `ring` is safe from any thread until `close`."""

    def __init__(self, fds: Sequence[int]) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._all = [*fds, self._bell]
        self._poll = select.poll()
        for fd in self._all:
            self._poll.register(fd, select.POLLIN)
        self._bell_poll = select.poll()
        self._bell_poll.register(self._bell, select.POLLIN)
        self._precise = max(self._all) < 1024
        """Whether select() can be used, which waits for microseconds and not for milliseconds."""

    def wait(self, timeout: float) -> bool:
        """Until something has come, the bell rings or the time is over; whether something came."""
        if self._precise:
            limit = None if timeout == math.inf else max(timeout, 0.0)
            ready, _, _ = select.select(self._all, (), (), limit)
        else:
            limit = None if timeout == math.inf else math.ceil(max(timeout, 0.0) * 1000)
            ready = [fd for fd, _ in self._poll.poll(limit)]
        if self._bell not in ready:
            return bool(ready)
        self._quiet()
        return len(ready) > 1

    def look(self) -> bool:
        """Whether something has come, or the bell has rung, without waiting."""
        return bool(self._poll.poll(0))

    def rest(self, timeout: float) -> None:
        """Until the bell rings or the time is over, whatever comes."""
        if self._precise:
            ready, _, _ = select.select([self._bell], (), (), max(timeout, 0.0))
        else:
            self._bell_poll.poll(math.ceil(max(timeout, 0.0) * 1000))
            ready = [self._bell]
        if ready:
            self._quiet()

    def ring(self) -> None:
        """Make `wait` or `rest` return, now or the next time."""
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Let go of the bell."""
        os.close(self._bell)

    def _quiet(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
