"""Waker: a thread waits for descriptors or a time, and any other thread can wake it."""

from __future__ import annotations

import math
import select
from collections.abc import Sequence

from ringcast.runtime.system.bell import make_bell


def two_wakers(fds: Sequence[int]) -> tuple[Waker, Waker]:
    """Two wakers for the same descriptors. Raises OSError, and then holds none."""
    first = Waker(fds)
    try:
        return first, Waker(fds)
    except OSError:
        first.close()
        raise


class Waker:
    """One thread at a time waits; `wake` is safe from any thread until `close`."""

    def __init__(self, fds: Sequence[int]) -> None:
        self._bell = make_bell()
        self._all = [*fds, self._bell.fd]
        self._poll = select.poll()
        for fd in self._all:
            self._poll.register(fd, select.POLLIN)
        self._wake_poll = select.poll()
        self._wake_poll.register(self._bell.fd, select.POLLIN)
        self._precise = max(self._all) < 1024
        """Whether select() can be used: it has microseconds, poll() has milliseconds."""

    def wait(self, timeout: float) -> bool:
        """Wait for a readable descriptor, `wake` or the timeout; whether one is readable."""
        if self._precise:
            limit = None if timeout == math.inf else max(timeout, 0.0)
            ready, _, _ = select.select(self._all, (), (), limit)
        else:
            limit = None if timeout == math.inf else math.ceil(max(timeout, 0.0) * 1000)
            ready = [fd for fd, _ in self._poll.poll(limit)]
        if self._bell.fd not in ready:
            return bool(ready)
        self._clear()
        return len(ready) > 1

    def poll(self) -> bool:
        """Whether a descriptor is readable or `wake` was called, without waiting."""
        return bool(self._poll.poll(0))

    def wait_for_wake(self, timeout: float) -> None:
        """Wait for `wake` or the timeout, and ignore the descriptors."""
        if self._precise:
            ready, _, _ = select.select([self._bell.fd], (), (), max(timeout, 0.0))
        else:
            self._wake_poll.poll(math.ceil(max(timeout, 0.0) * 1000))
            ready = [self._bell.fd]
        if ready:
            self._clear()

    def wake(self) -> None:
        """Make `wait` or `wait_for_wake` return, now or the next time."""
        self._bell.ring()

    def close(self) -> None:
        """Close the bell."""
        self._bell.close()

    def _clear(self) -> None:
        self._bell.clear()
