"""What one process of a benchmark has to do, and the four verbs that everything measured has."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Protocol

Report = dict[str, object]
"""What a process says, as JSON."""

WAIT = 60.0
"""Seconds that a process waits for whatever has to come; then the run has failed."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The part of one process in one run."""

    contestant: str
    """Who is measured: a name of `child.CONTESTANTS`."""
    role: str = "receiver"
    """"sender", "receiver", "both", "ping", "pong", "idle", "joiner", "form", "witness" or
    "viewer"."""
    index: int = 0
    """Which of all processes of the run this one is; senders come first."""
    senders: int = 1
    receivers: int = 1
    size: int = 1_000
    """Bytes of a message."""
    count: int = 1_000
    """Messages of each sender; round trips, joins, or seconds for the idle."""
    api: str = "batch"
    """"batch", "sync" or "async": how messages are given and taken; for a viewer, "looks" or
    "idle"."""
    spec: str = ""
    """The stack as TOML, for Ringcast."""
    pause: float = 0.0
    """Seconds that the application takes for each message that it receives."""
    to_all: bool = False
    """Whether pings go to all members, or to the one that answers."""
    random: bool = False
    """Whether messages have nothing in common."""
    trace: str = ""
    """Where the trace of a member goes; empty for none."""
    closed: bool = False
    """Whether the group has a key."""
    group: str = "bench"
    """The name of the group, so that two can be measured at once."""
    host: str = "127.0.0.1"
    """The address to bind to."""
    seconds: float = 0.0
    """How long the job takes at most; 0 when it ends with its messages."""
    lenient: bool = False
    """Whether messages may be missing: the policy for slow members may skip or evict this one."""
    broker: str = ""
    """Where the broker is reached, for peers that need one."""

    def to_json(self) -> str:
        """One line for the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Job:
        """The job of such a line."""
        return cls(**json.loads(line))


class Contestant(Protocol):
    """One side of what is measured. The verbs come in this order, each once."""

    def open(self, first: Report) -> Report:
        """Open sockets; `first` is what process 0 said here. Says how others reach this one."""
        ...

    def meet(self, others: list[Report]) -> None:
        """Know what all processes said when they opened; returns when messages would arrive."""
        ...

    def play(self) -> Report:
        """Do the job, with the clock running. Raises BenchFailure when a message is lost."""
        ...

    def close(self) -> None:
        """Let everything go."""
        ...


class Counted(Contestant, Protocol):
    """A contestant whose progress can be read while it plays, from another thread."""

    def progress(self) -> dict[str, int]:
        """What it has now: "received" messages, the number of its "view", members "suspected"."""
        ...


class BenchFailure(Exception):
    """A run that does not count, with the reason."""


class Missing(Exception):
    """What was to be measured is not installed here."""
