"""Puts runs together into tasks, so that all cores are busy until the end.

A task of Spark costs some 20 ms beside its work, so short runs share one. Spark starts tasks in
their order: the longest runs come first, and what is left at the end is short. How long a run takes
is guessed from its settings; a wrong guess costs some balance and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringcast.core.wire.outbox import MTU
from ringcast.sim.trial import Trial

TASK_SECONDS = 0.3
"""Runs are put together until a task takes about so long."""
TASKS_TO_A_CORE = 8
"""At least this many, if there are enough runs: otherwise a core may idle long at the end."""

ARRIVAL_SECONDS = 40e-6
"""CPU time for a datagram at a receiver."""
PAIR_SECONDS = 400e-6
"""CPU time for a pair of members in a second: joining, signs of life, acks."""
BYTE_SECONDS = 1e-9


def make_tasks(trials: Sequence[Trial], cores: int) -> list[list[int]]:
    """The numbers of the trials, task by task, the longest trials first."""
    guesses = [guess_seconds(trial) for trial in trials]
    bound = min(TASK_SECONDS, sum(guesses) / (cores * TASKS_TO_A_CORE))
    tasks: list[list[int]] = []
    filled = bound
    for number in sorted(range(len(trials)), key=lambda number: -guesses[number]):
        if filled >= bound:
            tasks.append([])
            filled = 0.0
        tasks[-1].append(number)
        filled += guesses[number]
    return tasks


def guess_seconds(trial: Trial) -> float:
    """The CPU time that a trial takes, roughly."""
    mtu = trial.spec["wire"].values()["mtu"]
    assert isinstance(mtu, int)
    by_size = trial.messages * trial.size / (mtu or MTU)
    datagrams = max(by_size, trial.messages / trial.batch) * (1 + 2 * trial.loss)
    nbytes = trial.messages * trial.size * trial.members
    pairs = trial.members**2 * PAIR_SECONDS * (1 + trial.duration)
    return datagrams * trial.members * ARRIVAL_SECONDS + nbytes * BYTE_SECONDS + pairs
