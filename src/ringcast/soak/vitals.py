"""The memory and the descriptors of processes over time, and whether they stay what they were."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1 << 20


class Sign(NamedTuple):
    """What a process has at a moment."""

    memory: int
    """Bytes in memory."""
    files: int
    """Open descriptors."""


@dataclass
class Vitals:
    """The signs of some processes, by when they were taken."""

    names: Sequence[str]
    rows: list[tuple[str, Mapping[str, Sign]]] = field(default_factory=list)
    """A label, and the signs of each process."""

    def take(self, label: str, pids: Mapping[str, int]) -> str:
        """Look at all of them; the row as a line."""
        signs = {name: read_sign(pid) for name, pid in pids.items()}
        self.rows.append((label, signs))
        return self._line(label, signs)

    def table(self) -> list[str]:
        """All rows as lines for people."""
        head = "".join(f"{name:>16}" for name in self.names)
        lines = [f"{'':<12}{head}", f"{'':<12}" + f"{'MB    files':>16}" * len(self.names)]
        return [*lines, *(self._line(label, signs) for label, signs in self.rows)]

    def plain(self) -> list[dict[str, object]]:
        """All rows as plain data."""
        return [
            {"at": label, "members": {name: sign._asdict() for name, sign in signs.items()}}
            for label, signs in self.rows
        ]

    def growth(self, memory: int, files: int, warm: int) -> Iterator[str]:
        """What has grown by more than this, in sentences.

        Memory: from the row `warm`, when everything has been used once. Descriptors: from the first
        row, since the company is the same again in the last one.
        """
        if len(self.rows) <= warm:
            return
        (_, first), (since, settled), (_, last) = self.rows[0], self.rows[warm], self.rows[-1]
        for name in self.names:
            grown = last[name].memory - settled[name].memory
            if grown > memory:
                yield (
                    f"the memory of {name} grew by {grown / MEGABYTE:.1f} MB since {since}: at most"
                    f" {memory / MEGABYTE:.0f} are allowed"
                )
            more = last[name].files - first[name].files
            if more > files:
                yield f"{name} has {more} descriptors more than at the beginning: at most {files}"

    def _line(self, label: str, signs: Mapping[str, Sign]) -> str:
        cells = "".join(f"{sign.memory / MEGABYTE:>8.1f}{sign.files:>8}" for sign in signs.values())
        return f"{label:<12}{cells}"


def read_sign(pid: int) -> Sign:
    """What a process has now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Sign(pages * PAGE, len(os.listdir(f"/proc/{pid}/fd")))
