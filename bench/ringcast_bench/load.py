"""What else the machine does while something is measured: figures taken meanwhile say so."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

DISTURBED = 0.15
"""Cores that others may use before a figure counts as disturbed."""

_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL = 2
"""The process whose children are threads of the kernel."""
PROC = Path("/proc")


@dataclass(frozen=True)
class Load:
    """The processor's time used until now, by all and by us, in seconds."""

    at: float
    machine: float
    """User, system and stolen time of all processors. Time in interrupts is left out: some kernels
    count it to the process as well, and some do not."""
    ours: float
    """This process and all children that have ended."""
    others: dict[str, float] = field(default_factory=dict)
    """Every process that can be seen but this one, by its id and start."""


def look(ours: Iterable[int] = (), proc: Path = PROC) -> Load:
    """The load until now; `ours` are processes that go on and belong to the benchmark."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(one.ru_utime + one.ru_stime for one in used)
    return Load(monotonic(), _machine(proc), own, _others({os.getpid(), *ours}, proc))


def other_cores(before: Load, after: Load) -> float:
    """How many cores others have used between the two looks.

    Two estimates, of which the larger counts: what the whole machine did less what we did, which
    sees other containers too, and the sum over all processes that were there at both looks.
    """
    seconds = after.at - before.at
    if seconds <= 0:
        return 0.0
    rest = after.machine - before.machine - (after.ours - before.ours)
    seen = sum(used - before.others.get(who, used) for who, used in after.others.items())
    return max(0.0, rest, seen) / seconds


def _machine(proc: Path) -> float:
    try:
        words = (proc / "stat").read_text().split(maxsplit=9)
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(int, words[1:9])
    return (user + nice + system + steal) / _TICKS


def _others(ours: set[int], proc: Path) -> dict[str, float]:
    found = {}
    for path in proc.iterdir() if proc.is_dir() else ():
        if path.name.isdigit() and int(path.name) not in ours:
            try:
                words = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # It has ended.
                continue
            if int(words[1]) == _KERNEL:  # The kernel's work is not counted as another process's.
                continue
            found[f"{path.name} {words[19]}"] = (int(words[11]) + int(words[12])) / _TICKS
    return found
