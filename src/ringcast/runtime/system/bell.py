"""A bell: a descriptor that one thread makes readable for another; an eventfd, else a pipe."""

from __future__ import annotations

import contextlib
import os

HAS_EVENTFD = hasattr(os, "eventfd")
CLOSED = -1
"""Stands for a descriptor that is closed: no file ever has this number."""


class EventBell:
    """An eventfd: one descriptor, and never full."""

    __slots__ = ("fd",)

    def __init__(self) -> None:
        """Raises OSError."""
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def ring(self) -> None:
        """Make the descriptor readable. Safe from any thread."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Make it unreadable again."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)

    def close(self) -> None:
        """Close it. A second time, as in a fork of a process that has left, nothing happens: its
        number may be that of another file by then."""
        fd, self.fd = self.fd, CLOSED
        if fd != CLOSED:
            os.close(fd)


class PipeBell:
    """A pipe, for systems without eventfd."""

    __slots__ = ("_writer", "fd")

    def __init__(self) -> None:
        """Raises OSError."""
        self.fd, self._writer = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._writer, False)

    def ring(self) -> None:
        """Make the descriptor readable. Safe from any thread."""
        with contextlib.suppress(BlockingIOError):  # Full: it is readable already.
            os.write(self._writer, b"\0")

    def clear(self) -> None:
        """Make it unreadable again."""
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self.fd, 65_536)) == 65_536:
                pass

    def close(self) -> None:
        """Close it; a second time nothing happens."""
        fds = self.fd, self._writer
        self.fd = self._writer = CLOSED
        for fd in fds:
            if fd != CLOSED:
                os.close(fd)


Bell = EventBell | PipeBell


def make_bell() -> Bell:
    """The best bell of this system. Raises OSError."""
    return EventBell() if HAS_EVENTFD else PipeBell()
