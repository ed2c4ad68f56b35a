"""What a soak is: how long, how many, how much, and what counts as growth."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ringcast import presets
from ringcast.control.failure_detector import FailureDetector
from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError
from ringcast.layers.faults import Faults
from ringcast.spec import StackSpec

MARKER = ".ringcast-soak"
"""Marks a directory that a soak made, and that the next one may clear."""
TRANSPORTS = ("tcp", "udp")


@dataclass(frozen=True, kw_only=True)
class SoakPlan:
    """One soak."""

    out: Path
    minutes: float = 10.0
    seed: int = 1
    steady: int = 4
    """Members that live from the beginning to the end; their memory is watched."""
    guests: int = 4
    """Members at the most that come and go besides."""
    rate: int = 500
    """Messages that each member sends per second."""
    size: int = 200
    loss: float = 0.02
    """The chance that a datagram is thrown away on arrival."""
    transport: str = "tcp"
    added: tuple[Spec, ...] = ()
    """Protocols that the stack has besides; what they promise is checked as well."""
    network: bool = False
    """Whether each member has a network namespace of its own, with links that fail."""
    audit: bool = False
    """Whether the continuous audit on Spark watches as well; traces are kept then."""
    memory_growth: int = 16 << 20
    """Bytes by which a steady member may grow after the first minute."""
    file_growth: int = 4
    """Descriptors that it may have more at the end than at the beginning, in the same company."""

    def __post_init__(self) -> None:
        if self.minutes <= 0:
            raise ConfigError(f"--minutes is {self.minutes:g}: give more than 0")
        if not 2 <= self.steady <= 20 or not 1 <= self.guests <= 20:
            raise ConfigError("give 2 to 20 steady members, and 1 to 20 guests")
        if not 1 <= self.rate <= 100_000 or not 1 <= self.size <= 10_000:
            raise ConfigError("give a rate of 1 to 100,000 messages, and 1 to 10,000 bytes")
        if not 0 <= self.loss <= 0.5:
            raise ConfigError(f"--loss is {self.loss:g}: give a chance from 0 to 0.5")
        if self.transport not in TRANSPORTS:
            raise ConfigError(f"--transport is {self.transport}: give {' or '.join(TRANSPORTS)}")

    @property
    def trace(self) -> Path:
        """Where all members write their traces; what is checked is removed."""
        return self.out / "trace"

    @property
    def logs(self) -> Path:
        """Where members complain, if they have to."""
        return self.out / "logs"

    @property
    def disk(self) -> Path:
        """Where some members have a small disk of their own; nothing is written here."""
        return self.out / "disk"

    @property
    def spec(self) -> Path:
        """The stack of all members."""
        return self.out / "stack.toml"

    def spec_at(self, port: int, address: str = "") -> Path:
        """The stack of a member that listens at this port, 0 for any, and at this address."""
        changes: dict[str, object] = {"port": port} if port else {}
        if address:
            changes["bind"] = address
        if not changes:
            return self.spec
        place = self.out / f"stack-{address}-{port}.toml"
        stack = self.stack()
        place.write_text(stack.replace(stack["transport"].changed(changes)).to_toml())
        return place

    def stack(self) -> StackSpec:
        """Members on this machine, found by a shared directory or by multicast."""
        if self.transport == "udp":
            stack = presets.loopback()
        else:
            stack = presets.tcp(file=str(self.out / "members"))
        quick = FailureDetector(interval=0.25, timeout=2.0, verify=0.5)
        return stack.replace(quick).insert(Faults(loss=self.loss), *self.added)


def prepare(plan: SoakPlan) -> None:
    """Make the directory, or clear what an earlier soak has left there. Raises ConfigError."""
    out, marker = plan.out, plan.out / MARKER
    try:
        if out.exists() and not marker.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"{out} is not empty, and not of a soak: name another with --out")
        for place in (plan.trace, plan.logs, out / "members", out / "alarms"):
            shutil.rmtree(place, ignore_errors=True)
        for place in (plan.trace, plan.logs):
            place.mkdir(parents=True)
        plan.disk.mkdir(exist_ok=True)
        marker.touch()
        plan.spec.write_text(plan.stack().to_toml())
    except OSError as error:
        raise ConfigError(f"nothing can be written to {out}: {error.strerror}") from None
