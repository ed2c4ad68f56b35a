"""Recovery: seal what a dead recorder left, as it would have done itself."""

from __future__ import annotations

import time
from pathlib import Path

from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files, is_at, sentences
from ringcast.journal.format.layout import Layout, journal_at
from ringcast.journal.format.manifest import RECOVERED, Segment
from ringcast.journal.write.retention import finish_removals
from ringcast.journal.write.seal import Clock, seal_log


def recover(
    directory: str | Path, *, files: Files | None = None, now: Clock | None = None
) -> list[Segment]:
    """Seal the logs of recorders that no longer live; returns the segments that were made.

    A recorder that lives holds the lock of its log and is left alone, so this may run at any time,
    and at several places at once. Call it before a recorder starts. Raises ConfigError when there
    is no journal, JournalFull or JournalError when the disk fails; it may then be called again.
    JournalError also for a log that cannot be read, which stays as it is.
    """
    files = files or Files()
    layout = journal_at(directory)
    with sentences(layout.root):
        finish_removals(files, layout)
        sealed: list[Segment | None] = []
        problems: list[JournalError] = []
        for name in layout.log_names():
            try:
                sealed.append(_recover_log(files, layout, name, now or wall_us))
            except JournalError as error:  # The others can be sealed all the same.
                problems.append(JournalError(f"{layout.log(name)}: {error}"))
    if problems:
        raise problems[0]
    return [segment for segment in sealed if segment is not None]


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def _recover_log(files: Files, layout: Layout, name: str, now: Clock) -> Segment | None:
    path = layout.log(name)
    try:
        fd = files.open(path)
    except FileNotFoundError:  # Another process has just recovered it.
        return None
    try:
        if not files.lock(fd) or not is_at(fd, path):
            return None
        return seal_log(files, layout, name, ended=RECOVERED, now=now)
    finally:
        files.close(fd)
