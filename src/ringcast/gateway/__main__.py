"""The gateway's process: `python -m ringcast.gateway`, with its settings on standard input.

The process that holds the lock is the gateway with these settings. It frees the lock before it
leaves the group, so that a client that comes too late starts another at once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import sys
from pathlib import Path
from typing import TextIO

from ringcast.errors import RingcastError
from ringcast.gateway.client import LOCK, LOG, SOCKET
from ringcast.gateway.server import Gateway
from ringcast.gateway.settings import Settings


def main() -> int:
    """Be the gateway, unless there is one already."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    try:
        settings = Settings.from_json(sys.stdin.read())
        path_base = settings.path_base()
    except RingcastError as error:
        print(error, file=sys.stderr)
        return 2
    lock = _lock(path_base.with_suffix(LOCK))
    if lock is None:
        return 0
    with lock:
        listener = _listen(path_base.with_suffix(SOCKET))
        gateway = Gateway(settings, listener, lambda: _give_up(path_base, lock))
        failure = gateway.run()
    if failure is not None:
        print(failure, file=sys.stderr)
    return 0 if failure is None else 1


def _lock(path: Path) -> TextIO | None:
    """The file, locked until it is closed; None when another process has it, or just had it."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None


def _listen(path: Path) -> socket.socket:
    """A socket that listens; what a dead gateway has left there is removed."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)
    return listener


def _give_up(path_base: Path, lock: TextIO) -> None:
    """Leave nothing behind. The lock goes last: the next gateway makes all of it anew."""
    for ending in (SOCKET, LOG, LOCK):
        path_base.with_suffix(ending).unlink(missing_ok=True)
    lock.close()


if __name__ == "__main__":
    sys.exit(main())
