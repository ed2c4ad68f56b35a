"""Runs the tasks of a sweep: by a context of this process, or by a frame over Spark Connect."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from ringcast.sim.isolated import DONE, IsolatedResult, run_isolated
from ringcast.sim.trial import Trial, TrialOutcome
from ringcast.spark.travel import take_along

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_INTERVAL = 0.25
"""Seconds between two looks at how far the job is."""

Progress = Callable[[int, int, int], None]
"""Called now and then with the runs that are done, those among them that went wrong, and all."""

Task = tuple[list[tuple[int, Trial]], float]
"""Trials with their numbers, and the CPU seconds that each may take."""

Results = dict[int, IsolatedResult]


def run_by_context(
    spark: SparkSession, tasks: Sequence[Task], progress: Progress | None
) -> Results:
    """Run tasks as one job of a session of this process."""
    context = spark.sparkContext
    take_along(spark)
    done, wrong = context.accumulator(0), context.accumulator(0)
    total = sum(len(numbered) for numbered, _ in tasks)

    def work(task: Task) -> Iterator[tuple[int, IsolatedResult]]:
        numbered, cpu_seconds_max = task
        for number, trial in numbered:
            result = run_isolated(trial, cpu_seconds_max)
            done.add(1)
            wrong.add(int(result.status != DONE))
            yield number, result

    with _watched(progress, lambda: (done.value, wrong.value, total)):
        return dict(context.parallelize(tasks, len(tasks)).flatMap(work).collect())


def run_by_frame(spark: SparkSession, tasks: Sequence[Task], progress: Progress | None) -> Results:
    """Run tasks over Spark Connect. Results arrive as they are done, and that is the progress."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for place in batch.column(0).to_pylist():
                numbered, cpu_seconds_max = tasks[place or 0]
                for number, trial in numbered:
                    told = json.dumps(asdict(run_isolated(trial, cpu_seconds_max)))
                    yield pa.RecordBatch.from_pydict({"number": [number], "told": [told]})

    # A range of n rows in n partitions has one row in each.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    total = sum(len(numbered) for numbered, _ in tasks)
    results: Results = {}
    for row in numbers.mapInArrow(work, "number long, told string").toLocalIterator():
        results[row["number"]] = _result(row["told"])
        if progress is not None:
            wrong = sum(result.status != DONE for result in results.values())
            progress(len(results), wrong, total)
    return results


def _result(text: str) -> IsolatedResult:
    told = json.loads(text)
    outcome = told.pop("outcome")
    return IsolatedResult(**told, outcome=None if outcome is None else TrialOutcome(**outcome))


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
