"""`ringcast sweep`: a grid of simulations, fanned out by Spark, and the best settings in it."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from time import monotonic

from ringcast.cli.progress import ProgressTicker

LINE_SECONDS = 5.0
"""Seconds between two lines of progress, where standard error is not a terminal."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast sweep`."""
    parser.description = (
        "Runs the simulator over a grid of settings, networks and seeds, as one Spark job, and says"
        "\nwhich settings are best within the bounds that the grid sets. docs/sweep.md describes"
        "\nthe file. The exit status is 0 when some settings are within the bounds and no"
        "\nsimulation broke a guarantee or failed, 1 when not, and 2 when the grid is wrong."
    )
    parser.add_argument("grid", metavar="FILE.toml", help="the grid")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write all runs as Parquet, a page with plots, and the best settings as best.toml",
    )
    parser.add_argument(
        "--master", metavar="URL", help="a Spark cluster, spark://host:7077 (this machine)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(arguments: Namespace) -> int:
    """Run it; 0 when there are settings within the bounds."""
    from ringcast.spark import session
    from ringcast.spark.sweep import Grid, run_grid, text, write

    grid = Grid.load(arguments.grid)
    place = write.prepare(arguments.out) if arguments.out else None
    print(f"Starting Spark on {arguments.master or 'this machine'} ...", file=sys.stderr)
    spark = session(arguments.master)
    progress = _Progress()
    try:
        done = run_grid(spark, grid, progress.tell)
    finally:
        progress.close()
        spark.stop()
    files = [] if place is None else [str(file) for file in write.write(done, place)]
    if arguments.json:
        print(json.dumps(text.plain(done) | {"files": files}, indent=2))
    else:
        print("\n".join([*text.report(done), *(f"written: {file}" for file in files)]))
    return 0 if text.is_success(done) else 1


class _Progress:
    """How far the sweep is, on standard error: one line that changes, or a line now and then."""

    def __init__(self) -> None:
        self._ticker = ProgressTicker()
        self._next = monotonic()
        self._told = -1

    def tell(self, done: int, wrong: int, total: int) -> None:
        amiss = f", {wrong:,} not as they should" if wrong else ""
        line = f"{done:,} of {total:,} simulations{amiss}"
        if sys.stderr.isatty():
            self._ticker.say(line)
        elif done != self._told and (monotonic() >= self._next or done == total):
            self._told, self._next = done, monotonic() + LINE_SECONDS
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        self._ticker.close()
