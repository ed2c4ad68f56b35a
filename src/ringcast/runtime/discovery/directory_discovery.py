"""Discovery by a shared directory: each member writes a file there that has its endpoint.

- One file per member, named by its address, written aside and renamed: no reader sees half of one,
  and no lock is needed.
- A member writes its own file before it reads those of others. So of two that start together, at
  least one sees the other, and asks it.
- A member renews the time of its file at each look. The age of other files is measured against
  that, by the clock of the disk: the clocks of the machines do not matter.
- A file that was not renewed for long belongs to a process that died, and is removed. Until then it
  is asked without an answer. A process that was only stopped writes its file again.
"""

from __future__ import annotations

import json
import os
import random
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ringcast.control.discovery import Sighting, is_endpoint
from ringcast.core.model.address import Address
from ringcast.errors import ConfigError
from ringcast.runtime.discovery.method import Searcher

SUFFIX = ".member"
SIZE_MAX = 4_096
"""Bytes of one file; larger ones belong to others."""
NOTICES_MAX = 1_024
"""Files that are read at one look."""
LOOK_SECONDS = 0.2
"""Seconds between two looks while there is no group yet."""
STALE_AFTER = 12
"""A file that was not renewed for this many times `Discovery.refresh` belongs to a dead process."""

_NAME = re.compile(r"\.?[0-9a-f]{16}\.member")
"""Files of members, and those that were never finished."""


class SharedDirectory:
    """Looks at one directory (a `DiscoveryMethod`)."""

    pause = LOOK_SECONDS

    def __init__(self, directory: str, searcher: Searcher) -> None:
        """Raises ConfigError when the directory cannot be written to."""
        peer = searcher.peer
        self._entry = open_directory(
            directory, peer.address, searcher.group, peer.name, peer.endpoint
        )
        self._stale_after = STALE_AFTER * searcher.spec.refresh

    def announce(self) -> None:
        """Write or renew this member's file. Raises OSError."""
        self._entry.post()

    def look(self) -> Sighting:
        """The endpoints of the group's members. Raises OSError."""
        notices = self._entry.read(self._stale_after)
        return Sighting(tuple(notice.endpoint for notice in notices))

    def close(self) -> None:
        """Remove this member's file."""
        self._entry.remove()


class Notice(NamedTuple):
    """What the file of a member says."""

    group: str
    name: str
    endpoint: str
    age: float
    """Seconds since it was last renewed."""


class DirectoryEntry:
    """One member's file in the directory."""

    def __init__(self, directory: str, me: Address, group: str, name: str, endpoint: str) -> None:
        self._directory = Path(directory)
        self._path = self._directory / f"{me:016x}{SUFFIX}"
        self._text = json.dumps({"group": group, "name": name, "endpoint": endpoint})
        self._group = group

    def post(self) -> None:
        """Write or renew this member's file. Raises OSError."""
        try:
            os.utime(self._path)
        except FileNotFoundError:
            self._write()

    def read(self, stale_after: float) -> list[Notice]:
        """The members of the group, with this one; removes files of dead processes.

        Raises OSError when the directory cannot be read.
        """
        now = self._path.stat().st_mtime
        found = []
        for path, notice in _notices(self._directory, now):
            if notice.age > stale_after:
                with suppress(OSError):
                    path.unlink()
            elif notice.endpoint and notice.group == self._group:
                found.append(notice)
        return found

    def remove(self) -> None:
        """Remove this member's file."""
        with suppress(OSError):
            self._path.unlink()

    def _write(self) -> None:
        draft = self._directory / f".{self._path.name}"
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(draft, "w", opener=lambda path, _: os.open(path, flags, 0o644)) as file:
            file.write(self._text)
        draft.rename(self._path)


def open_directory(
    directory: str, me: Address, group: str, name: str, endpoint: str
) -> DirectoryEntry:
    """This member's file in the directory, both created if needed.

    The folder around the directory has to exist: it may be a disk that is not mounted.

    Raises ConfigError when the directory cannot be written to.
    """
    entry = DirectoryEntry(directory, me, group, name, endpoint)
    try:
        Path(directory).mkdir(exist_ok=True)
        entry.post()
    except FileExistsError:
        raise ConfigError(
            f"{directory} is a file: name a directory that members can write to"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"nothing can be written to {directory} ({error.strerror}): name a directory that"
            " all members can write to"
        ) from None
    return entry


def read_notices(directory: str) -> list[Notice]:
    """All notices, of whatever group, by the clock of this machine. Raises OSError."""
    return [notice for _, notice in _notices(Path(directory), time.time()) if notice.endpoint]


def _notices(directory: Path, now: float) -> Iterator[tuple[Path, Notice]]:
    names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))
    if len(names) > NOTICES_MAX:  # Others each time, so that none is always left out.
        names = random.sample(names, NOTICES_MAX)
    for name in names:
        path = directory / name
        notice = _read(path, now)
        if notice is not None:
            yield path, notice


def _read(path: Path, now: float) -> Notice | None:
    """What a file says, with empty fields for a foreign file; None when the file is gone.

    Others may write to the directory: nothing but a small plain file is read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        is_ours = stat.S_ISREG(found.st_mode) and not path.name.startswith(".")
        data = os.read(fd, SIZE_MAX + 1) if is_ours else b""
    except OSError:
        return None
    finally:
        os.close(fd)
    return Notice(*notice_in(data), now - found.st_mtime)


def notice_in(data: bytes) -> tuple[str, str, str]:
    """Group, name and endpoint of a file's content; empty when it does not have them."""
    try:
        fields = json.loads(data if len(data) <= SIZE_MAX else b"")
        group, name, endpoint = fields["group"], fields["name"], fields["endpoint"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", "", ""
    is_text = isinstance(group, str) and isinstance(name, str) and isinstance(endpoint, str)
    return (group, name, endpoint) if is_text and is_endpoint(endpoint) else ("", "", "")
