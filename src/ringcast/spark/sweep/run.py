"""Runs a grid as one Spark job: all simulations at once, each on its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.errors import LocalError
from ringcast.sim.isolated import DONE, IsolatedResult, run_isolated
from ringcast.sim.trial import Trial
from ringcast.spark.sweep.grid import Grid, Simulation
from ringcast.spark.sweep.lines import GridJudgement, judge
from ringcast.spark.sweep.rows import arrow_table
from ringcast.spark.sweep.schedule import make_tasks
from ringcast.spark.travel import take_along

LOOK_INTERVAL = 0.25
"""Seconds between two looks at how far the job is."""

Progress = Callable[[int, int, int], None]
"""Called now and then with the runs that are done, those among them that went wrong, and all."""

Task = tuple[list[tuple[int, Trial]], float]
"""Trials with their numbers, and the CPU seconds that each may take."""


@dataclass(frozen=True)
class Finished:
    """A run of the grid and what became of it."""

    run: Simulation
    result: IsolatedResult


@dataclass(frozen=True)
class Sweep:
    """What came of a whole grid."""

    grid: Grid
    finished: list[Finished]
    """In the order of the grid."""
    cores: int
    real_seconds: float
    """How long the job took."""
    spark: SparkSession

    @property
    def cpu_seconds(self) -> float:
        """What all simulations took together."""
        return sum(one.result.cpu_seconds for one in self.finished)

    @property
    def ratio_to_ideal(self) -> float:
        """The share of the cores' time that went into simulations; the ideal is 1."""
        return self.cpu_seconds / (self.cores * self.real_seconds)

    @property
    def occupied(self) -> float:
        """The share of the cores' time in which a simulation was running, or waited for other
        work on the same machine."""
        busy = sum(one.result.real_seconds for one in self.finished)
        return busy / (self.cores * self.real_seconds)

    @property
    def wrong(self) -> list[Finished]:
        """The runs that did not end as they should."""
        return [one for one in self.finished if one.result.status != DONE]

    @cached_property
    def judgement(self) -> GridJudgement:
        """Candidates compared: lines over all seeds, which are within the bounds, the best."""
        return judge(self.grid, [(one.run, one.result) for one in self.finished])

    @cached_property
    def frame(self) -> DataFrame:
        """One row per simulation, as a local table."""
        pairs = [(one.run, one.result) for one in self.finished]
        return self.spark.createDataFrame(arrow_table(self.grid, pairs))


def sweep(spark: SparkSession, grid: Grid | Mapping[str, object] | str | Path) -> DataFrame:
    """Run a grid, a file with one or its tables as a dict: one row per simulation.

    All are run once, now, by one job; the table holds what they gave. Raises ConfigError for a grid
    that is wrong.
    """
    return run_grid(spark, as_grid(grid)).frame


def as_grid(grid: Grid | Mapping[str, object] | str | Path) -> Grid:
    """A grid, whatever it is given as."""
    if isinstance(grid, Grid):
        return grid
    return Grid.parse(grid) if isinstance(grid, Mapping) else Grid.load(grid)


def run_grid(spark: SparkSession, grid: Grid, progress: Progress | None = None) -> Sweep:
    """Run a grid to its end. A run that goes wrong says so in its result, and harms no other.

    Raises LocalError when Spark itself gives up.
    """
    runs = list(grid.runs())
    trials = [grid.trial(run) for run in runs]
    context = spark.sparkContext
    take_along(spark)
    numbers = make_tasks(trials, context.defaultParallelism)
    tasks: list[Task] = [
        ([(number, trials[number]) for number in task], grid.cpu_seconds_max) for task in numbers
    ]
    done, wrong = context.accumulator(0), context.accumulator(0)

    def work(task: Task) -> Iterator[tuple[int, IsolatedResult]]:
        numbered, cpu_seconds_max = task
        for number, trial in numbered:
            result = run_isolated(trial, cpu_seconds_max)
            done.add(1)
            wrong.add(int(result.status != DONE))
            yield number, result

    began = time.perf_counter()
    with _watched(progress, lambda: (done.value, wrong.value, len(runs))):
        try:
            results = dict(context.parallelize(tasks, len(tasks)).flatMap(work).collect())
        except (PySparkException, Py4JError) as error:
            raise LocalError(f"Spark gave the sweep up: {_reason(error)}") from error
    seconds = time.perf_counter() - began
    finished = [Finished(run, results[number]) for number, run in enumerate(runs)]
    return Sweep(grid, finished, context.defaultParallelism, seconds, spark)


@contextmanager
def _watched(progress: Progress | None, look: Callable[[], tuple[int, int, int]]) -> Iterator[None]:
    """Tell how far the job is, from a thread of its own, while it runs in this one."""
    if progress is None:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        while not over.wait(LOOK_INTERVAL):
            progress(*look())

    thread = threading.Thread(target=tell, name="ringcast-sweep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    progress(*look())


def _reason(error: Exception) -> str:
    """The first line that says something: the rest is a Java stack."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)
