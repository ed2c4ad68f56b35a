"""How fast the simulator is: messages delivered for each second of real time, in one process."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.sim.trial import Trial, run
from ringcast.spec import StackSpec


@dataclass(frozen=True)
class Speed:
    """The speed of one run."""

    batch: int
    delivered: int
    real_seconds: float

    @property
    def per_second(self) -> float:
        """Messages delivered to applications, over all members, for each real second."""
        return self.delivered / self.real_seconds


def measure(
    spec: StackSpec,
    *,
    batch: int,
    messages: int,
    members: int = 4,
    size: int = 100,
    repeats: int = 3,
) -> Speed:
    """The best of some runs without loss, every guarantee checked in each."""
    trial = Trial(spec=spec, members=members, messages=messages, size=size, batch=batch)
    outcomes = [run(trial) for _ in range(repeats)]
    for outcome in outcomes:
        assert outcome.complete, outcome
    best = min(outcomes, key=lambda outcome: outcome.real_seconds)
    return Speed(batch, best.delivered, best.real_seconds)
