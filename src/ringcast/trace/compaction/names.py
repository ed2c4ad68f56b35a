"""Which files of a trace there are, and which of them a compacted one stands for.

    00000000000000a1-000004-5f3c19d2.parquet            the fifth file of a member
    00000000000000a1-000000to000004-91ab03ce.parquet    its first five, compacted

A compacted file gets its name before the files that it stands for are removed. Where both are
there, because a process died in between, only the compacted one counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NAME = re.compile(
    r"(?P<member>[0-9a-f]{16})-(?P<first>[0-9]{6,18})(to(?P<last>[0-9]{6,18}))?"
    r"-(?P<checksum>[0-9a-f]{8})\.parquet"
)
COMPACTED = r"^[0-9a-f]{16}-[0-9]{6,18}to[0-9]{6,18}-[0-9a-f]{8}[.]parquet$"
"""The same for compacted files only, as Spark understands it."""


class TraceFile(NamedTuple):
    """What the name of a file says."""

    member: str
    first: int
    last: int
    """The number of the last file that it stands for; of a file as it was written, its own."""
    path: Path

    @property
    def is_compacted(self) -> bool:
        """Whether it stands for others."""
        return self.first < self.last


def trace_file(path: Path) -> TraceFile | None:
    """What a name says; None for names of another kind."""
    found = NAME.fullmatch(path.name)
    if found is None:
        return None
    first = int(found["first"])
    return TraceFile(found["member"], first, int(found["last"] or first), path)


def compacted_name(member: str, first: int, last: int, checksum: int) -> str:
    """The name of a file that stands for those of a member from one number to another."""
    return f"{member}-{first:06d}to{last:06d}-{checksum:08x}.parquet"


def covered(paths: Iterable[Path]) -> set[Path]:
    """The files that a compacted one beside them stands for."""
    by_member = defaultdict[tuple[Path, str], list[TraceFile]](list)
    for file in filter(None, map(trace_file, paths)):
        by_member[file.path.parent, file.member].append(file)
    return {path for files in by_member.values() for path in _covered(files)}


def _covered(files: list[TraceFile]) -> Iterable[Path]:
    """Those that lie within another one: sorted, the widest comes first."""
    reached = -1
    for file in sorted(files, key=lambda file: (file.first, -file.last)):
        if file.last <= reached:
            yield file.path
        elif file.is_compacted:
            reached = max(reached, file.last)


def last_number(directory: Path, member: str) -> int:
    """The last number that compacted files of a member stand for; -1 when there are none."""
    files = filter(None, map(trace_file, directory.glob(f"{member}-*to*.parquet")))
    return max((file.last for file in files), default=-1)
