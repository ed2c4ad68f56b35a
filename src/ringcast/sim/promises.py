"""What a stack promises, read from its settings: the checks excuse nothing else."""

from __future__ import annotations

from typing import NamedTuple

from ringcast.spec import StackSpec


class Promises(NamedTuple):
    """The guarantees that depend on settings."""

    agreement: bool = True
    """Survivors deliver the same messages of a crashed sender."""
    complete: bool = True
    """Nothing is skipped."""
    loopback: bool = True
    """Own messages come back to the own application."""


def promises_of(spec: StackSpec) -> Promises:
    """The promises of a stack with these settings."""
    multicast = spec["multicast"].values()
    skips = "slow" in spec and spec["slow"].values()["policy"] == "skip"
    return Promises(
        agreement=bool(multicast.get("retain", True)),
        complete="large" not in spec and not skips,
        loopback=bool(multicast["loopback"]),
    )
