"""Runs a grid as one Spark job: all simulations at once, each on its own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.errors import LocalError
from ringcast.sim.isolated import DONE, IsolatedResult
from ringcast.spark.jobs import count_cores, described, is_remote
from ringcast.spark.sweep.execute import Progress, Task, run_by_context, run_by_frame
from ringcast.spark.sweep.grid import Grid, Simulation
from ringcast.spark.sweep.lines import GridJudgement, judge
from ringcast.spark.sweep.rows import arrow_table
from ringcast.spark.sweep.schedule import make_tasks


@dataclass(frozen=True)
class Finished:
    """A run of the grid and what became of it."""

    run: Simulation
    result: IsolatedResult


@dataclass(frozen=True)
class Sweep:
    """The results of a whole grid."""

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
    cores = count_cores(spark)
    numbers = make_tasks(trials, cores)
    tasks: list[Task] = [
        ([(number, trials[number]) for number in task], grid.cpu_seconds_max) for task in numbers
    ]
    began = time.perf_counter()
    with described(spark, f"ringcast sweep: {len(runs):,} simulations"):
        try:
            work = run_by_frame if is_remote(spark) else run_by_context
            results = work(spark, tasks, progress)
        except (PySparkException, Py4JError) as error:
            raise LocalError(f"Spark gave the sweep up: {_reason(error)}") from error
    seconds = time.perf_counter() - began
    finished = [Finished(run, results[number]) for number, run in enumerate(runs)]
    return Sweep(grid, finished, cores, seconds, spark)


def _reason(error: Exception) -> str:
    """The first line that says something: the rest is a Java stack."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)
