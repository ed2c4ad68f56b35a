"""A shared directory in which members say where they are, for those who share a disk.

- One file a member, named by its address, written beside and renamed: nobody reads half of one, and
  nobody needs a lock.
- A member writes its own file before it reads those of others. So of two that start together, at
  least one sees the other, and asks it.
- Whoever is there renews the time of its file now and then. How old the others are is measured
  against that, by the clock of the disk: the clocks of the machines do not matter.
- A file that was not renewed for long is that of a process that died, and is removed. Until then it
  is asked in vain, which does no harm. One that was only stopped writes its file anew.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ringcast.core.address import Address
from ringcast.errors import ConfigError
from ringcast.parts.discovery import is_endpoint

SUFFIX = ".member"
SIZE_MAX = 4_096
"""Bytes of one file; larger ones are not ours."""
NOTICES_MAX = 1_024
"""How many files are read."""

_NAME = re.compile(r"\.?[0-9a-f]{16}\.member")
"""Notices, and those that were never finished."""


class Notice(NamedTuple):
    """What a member says about itself."""

    group: str
    name: str
    endpoint: str
    age: float
    """Seconds since it was last renewed."""


class Noticeboard:
    """One member's place in the directory."""

    def __init__(self, directory: str, me: Address, group: str, name: str, endpoint: str) -> None:
        self._directory = Path(directory)
        self._path = self._directory / f"{me:016x}{SUFFIX}"
        self._text = json.dumps({"group": group, "name": name, "endpoint": endpoint})
        self._group = group

    def post(self) -> None:
        """Say where this member is, or that it is still there. Raises OSError."""
        try:
            os.utime(self._path)
        except FileNotFoundError:
            self._write()

    def read(self, stale_after: float) -> list[Notice]:
        """The members of the group, this one among them; files of the dead are removed.

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
        """This member is gone."""
        with suppress(OSError):
            self._path.unlink()

    def _write(self) -> None:
        draft = self._directory / f".{self._path.name}"
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(draft, "w", opener=lambda path, _: os.open(path, flags, 0o644)) as file:
            file.write(self._text)
        draft.rename(self._path)


def open_board(directory: str, me: Address, group: str, name: str, endpoint: str) -> Noticeboard:
    """A place in the directory, which is made if need be, with a first notice in it.

    Raises ConfigError when nothing can be written there.
    """
    board = Noticeboard(directory, me, group, name, endpoint)
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        board.post()
    except FileExistsError:
        raise ConfigError(
            f"{directory} is a file: name a directory that members can write to"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"nothing can be written to {directory} ({error.strerror}): name a directory that"
            " all members can write to"
        ) from None
    return board


def read_notices(directory: str) -> list[Notice]:
    """All notices, of whatever group, by the clock of this machine. Raises OSError."""
    return [notice for _, notice in _notices(Path(directory), time.time()) if notice.endpoint]


def _notices(directory: Path, now: float) -> Iterator[tuple[Path, Notice]]:
    names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))
    for name in names[:NOTICES_MAX]:
        path = directory / name
        notice = _read(path, now)
        if notice is not None:
            yield path, notice


def _read(path: Path, now: float) -> Notice | None:
    """What a file says, and nothing for what is no notice; None when the file is gone.

    The directory may belong to many: nothing but a small plain file is read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        is_ours = stat.S_ISREG(found.st_mode) and not path.name.startswith(".")
        data = file.read(SIZE_MAX + 1) if is_ours else b""
    texts = _parse(data)
    return Notice(*texts, now - found.st_mtime)


def _parse(data: bytes) -> tuple[str, str, str]:
    """Group, name and endpoint; empty when they are not to be had."""
    try:
        fields = json.loads(data if len(data) <= SIZE_MAX else b"")
        group, name, endpoint = fields["group"], fields["name"], fields["endpoint"]
    except (ValueError, KeyError, TypeError):
        return "", "", ""
    is_text = isinstance(group, str) and isinstance(name, str) and isinstance(endpoint, str)
    return (group, name, endpoint) if is_text and is_endpoint(endpoint) else ("", "", "")
