"""Accepting connections in a thread of their own, also while the process has no descriptor left."""

from __future__ import annotations

import errno
import socket
import time

PAUSE = 0.1
"""Seconds without new connections when the process or the machine is short of something."""
_SHORT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


def accept(listener: socket.socket) -> socket.socket | None:
    """The next connection, waited for; None once the listener was shut down or closed."""
    while True:
        try:
            return listener.accept()[0]
        except OSError as error:
            if not is_passing(error):
                return None


def is_passing(error: OSError) -> bool:
    """Whether an error of `accept` passes, after a pause where that is needed."""
    if error.errno in _SHORT:
        pause()
    return error.errno in _SHORT or error.errno == errno.ECONNABORTED


def pause() -> None:
    """Let others close something."""
    time.sleep(PAUSE)
