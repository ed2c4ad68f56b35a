"""A poller: many descriptors behind one that can itself be waited for; epoll, else kqueue."""

from __future__ import annotations

import contextlib
import select
import sys
from typing import Any, Protocol

from ringcast.errors import ConfigError

READ, WRITE = 1, 4
"""The masks of epoll."""
EVENTS_MAX = 256


class Poller(Protocol):
    """What the TCP transport needs of the kernel."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch a descriptor."""
        ...

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch it for something else."""
        ...

    def unregister(self, fd: int, /) -> None:
        """Watch it no longer."""
        ...

    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """The descriptors that are ready, each with what it is ready for."""
        ...

    def fileno(self) -> int:
        """The descriptor to wait for."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def make_poller() -> Poller:
    """The best poller of this system. Raises OSError, ConfigError."""
    if hasattr(select, "epoll"):
        return select.epoll()
    if hasattr(select, "kqueue"):
        return KqueuePoller()
    raise ConfigError(
        f"TCP groups need epoll or kqueue, and {sys.platform} has neither: use another transport"
    )


class KqueuePoller:
    """kqueue with the verbs of epoll, for macOS and BSD."""

    def __init__(self) -> None:
        """Raises OSError."""
        self._kernel: Any = select  # Its names differ between systems.
        self._queue = self._kernel.kqueue()
        self._masks: dict[int, int] = {}

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch a descriptor."""
        self.modify(fd, eventmask)

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch it for something else."""
        before, self._masks[fd] = self._masks.get(fd, 0), eventmask
        kernel = self._kernel
        filters = ((READ, kernel.KQ_FILTER_READ), (WRITE, kernel.KQ_FILTER_WRITE))
        for mask, which in filters:
            if (before ^ eventmask) & mask:
                flag = kernel.KQ_EV_ADD if eventmask & mask else kernel.KQ_EV_DELETE
                self._queue.control([kernel.kevent(fd, which, flag)], 0, 0)

    def unregister(self, fd: int, /) -> None:
        """Watch it no longer; one that is closed is forgotten by the kernel itself."""
        with contextlib.suppress(OSError):
            self.modify(fd, 0)
        self._masks.pop(fd, None)

    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """The descriptors that are ready, each with what it is ready for."""
        ready: dict[int, int] = {}
        for event in self._queue.control(None, EVENTS_MAX, max(timeout, 0.0)):
            is_read = event.filter == self._kernel.KQ_FILTER_READ
            ready[event.ident] = ready.get(event.ident, 0) | (READ if is_read else WRITE)
        return list(ready.items())

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return int(self._queue.fileno())

    def close(self) -> None:
        """Let go of it."""
        self._queue.close()
