"""How long groups take to form: all members join at the same moment, each in its own process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringcast import StackSpec, presets
from ringcast_bench.job import Job
from ringcast_bench.load import DISTURBED, look, other_cores
from ringcast_bench.namespace import Namespace
from ringcast_bench.run import run_jobs

SIZES = (2, 10, 50)
SECONDS_MAX = 180.0
"""How long the largest may take, with the start of its processes."""


@dataclass(frozen=True, kw_only=True)
class Formed:
    """A group that has formed."""

    members: int
    seconds: float
    """From the first that wants to join to the last that sees all in one view."""
    other_cores: float

    @property
    def is_disturbed(self) -> bool:
        """Whether something else ran meanwhile."""
        return self.other_cores > DISTURBED


def form(
    sizes: Sequence[int], namespace: Namespace, spec: StackSpec | None = None
) -> Iterator[Formed]:
    """Groups of these sizes, one after the other. Raises BenchFailure when one does not form."""
    stack = (presets.loopback() if spec is None else spec).to_toml()
    for size in sizes:
        jobs = [
            Job(contestant="ringcast", role="form", index=index, senders=size, spec=stack)
            for index in range(size)
        ]
        before = look(namespace.pids)
        figures = run_jobs(jobs, namespace.enter, SECONDS_MAX)
        others = other_cores(before, look(namespace.pids))
        yield Formed(members=size, seconds=figures["seconds"], other_cores=others)
