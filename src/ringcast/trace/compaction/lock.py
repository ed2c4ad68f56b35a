"""Keeps compaction and audits of one directory apart; the members that write need no lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOCK = ".lock"
"""Spark leaves out names that begin with a dot."""


@contextmanager
def reading(directories: Iterable[Path]) -> Iterator[None]:
    """Keep compaction away from some directories; waits for one that is under way.

    A directory in which nothing can be written has no lock: nothing can be compacted there either.
    """
    with ExitStack() as stack:
        for directory in sorted(set(directories)):
            try:
                fd = os.open(
                    directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
                )
            except OSError:
                continue
            stack.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_SH)
        yield
