"""Writes what a sweep found to a directory: the table, the page, and the best settings."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from ringcast.errors import ConfigError
from ringcast.runtime.ops.writable import check_writable
from ringcast.spark.sweep import text
from ringcast.spark.sweep.grid import Candidate
from ringcast.spark.sweep.page import sweep_page
from ringcast.spark.sweep.rows import arrow_table
from ringcast.spark.sweep.run import Sweep

RUNS, PAGE, BEST = "runs.parquet", "sweep.html", "best.toml"


def prepare(directory: str | Path) -> Path:
    """Make the directory; before the sweep, which takes a while. Raises ConfigError."""
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        check_writable(place)
    except FileExistsError as error:
        raise ConfigError(f"{place} is a file: name a directory for the results") from error
    except OSError as error:
        raise ConfigError(f"no results can be written to {place}: {error.strerror}") from error
    return place


def write(sweep: Sweep, place: Path) -> list[Path]:
    """Write all of it; the files. The best settings of an earlier sweep do not stay there."""
    pairs = [(one.run, one.result) for one in sweep.finished]
    files = [place / RUNS, place / PAGE]
    best = sweep.judgement.best
    try:
        pq.write_table(arrow_table(sweep.grid, pairs), place / RUNS)
        (place / PAGE).write_text(sweep_page(sweep), encoding="utf-8")
        (place / BEST).unlink(missing_ok=True)
        if best is not None:
            (place / BEST).write_text(best_toml(sweep, best), encoding="utf-8")
            files.append(place / BEST)
    except OSError as error:
        raise ConfigError(f"no results can be written to {place}: {error.strerror}") from error
    return files


def best_toml(sweep: Sweep, best: Candidate) -> str:
    """The best settings as a stack that `--spec` and `join(spec=…)` load, and how it did."""
    said = [text.verdict(sweep), *text.heading(sweep.grid)]
    for line in sweep.judgement.of(best):
        scene = sweep.grid.scene_label(line.scene)
        told = ", ".join(f"{name} {value}" for name, value in text.figures(line).items())
        said.append(f"{scene}: {told}" if scene else told)
    return "".join(f"# {line}\n" for line in said) + "\n" + best.spec.to_toml()
