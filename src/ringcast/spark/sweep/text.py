"""What a sweep found, in words for a terminal and as plain data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringcast.sim.isolated import BROKEN, FAILED
from ringcast.spark.sweep.figures import FIGURES, shown
from ringcast.spark.sweep.grid import Candidate, Grid
from ringcast.spark.sweep.lines import Line
from ringcast.spark.sweep.run import Finished, Sweep

LINES_MAX = 60
"""Lines of the table that are printed; the files have all."""
WRONG_MAX = 10

COLUMNS = ("p50", "p99", "max", "throughput", "resent", "control", "window_bytes")


def is_success(sweep: Sweep) -> bool:
    """Whether some settings are within the bounds, and no run broke a guarantee or failed.

    Runs that did not deliver everything in time are a finding about their settings, no failure.
    """
    bad = [one for one in sweep.finished if one.result.status in (BROKEN, FAILED)]
    return sweep.judgement.best is not None and not bad


def report(sweep: Sweep) -> Iterator[str]:
    """All of it, line by line."""
    yield from heading(sweep.grid)
    yield ""
    yield from table(sweep)
    yield ""
    yield from wrong(sweep)
    yield efficiency(sweep)
    yield verdict(sweep)


def heading(grid: Grid) -> Iterator[str]:
    """How large the grid is, and what is the same in all runs."""
    parts = (len(grid.candidates), len(grid.scenes), len(grid.seeds))
    words = ("settings", "networks and loads", "seeds")
    counted = " × ".join(f"{part:,} {word}" for part, word in zip(parts, words, strict=True))
    yield f"{grid.count:,} simulations: {counted}"
    yield f"the same in all: {fixed(grid)}"
    for line in grid.refused[:WRONG_MAX]:
        yield f"left out: {line}"
    if len(grid.refused) > WRONG_MAX:
        yield f"left out: {len(grid.refused) - WRONG_MAX:,} combinations more"


def fixed(grid: Grid) -> str:
    """What does not vary, in words."""
    stacks = [grid.stacks[0].label] if len(grid.stacks) == 1 else []
    axes = [axis for axis in (*grid.settings, *grid.scene_axes) if not axis.varies]
    return ", ".join([*stacks, *(f"{a.name} {shown(a.values[0])}" for a in axes if a.values[0])])


def table(sweep: Sweep) -> Iterator[str]:
    """A line for each candidate in each scene; the worst seed counts."""
    heads = [*names(sweep.grid), *COLUMNS, ""]
    lines = sweep.judgement.lines
    rows = [cells(sweep, line) for line in lines[:LINES_MAX]]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(lines) > LINES_MAX:
        yield f"… and {len(lines) - LINES_MAX:,} lines more: --out DIR writes all of them"


def cells(sweep: Sweep, line: Line) -> list[str]:
    """The cells of a line: what varies, the figures, and what is to be said of it."""
    chosen = {**dict(line.candidate.settings), **line.scene, "stack": line.candidate.stack.label}
    told = figures(line).values()
    return [*(shown(chosen[name]) for name in names(sweep.grid)), *told, remark(sweep, line)]


def figures(line: Line) -> dict[str, str]:
    """The figures of a line for people, by name."""
    values = ((name, line.figures[name]) for name in COLUMNS)
    return {name: "–" if v is None else FIGURES[name].unit(v) for name, v in values}


def remark(sweep: Sweep, line: Line) -> str:
    """Whether a line is of the best, or why it is out."""
    if line.wrong:
        return ", ".join(f"{n} {status}" for status, n in line.statuses.items() if status != "done")
    if line.exceeded:
        return f"out: {line.exceeded[0].figure.name}"
    best = sweep.judgement.best
    return "best" if best is not None and best.number == line.candidate.number else ""


def wrong(sweep: Sweep) -> Iterator[str]:
    """The runs that did not end as they should, each with the command that repeats it."""
    found = sweep.wrong
    if not found:
        return
    yield f"{len(found):,} of {len(sweep.finished):,} simulations did not end as they should:"
    for one in found[:WRONG_MAX]:
        yield f"  {one.result.status}: {one.result.problem}"
        yield f"    {sweep.grid.command(one.run)}"
    if len(found) > WRONG_MAX:
        yield f"  … and {len(found) - WRONG_MAX:,} more: --out DIR writes all of them"
    yield ""


def efficiency(sweep: Sweep) -> str:
    """How well the cores were used."""
    return (
        f"{sweep.cpu_seconds:,.1f} CPU seconds of simulations in {sweep.real_seconds:,.1f} s on"
        f" {sweep.cores} cores: {sweep.ratio_to_ideal:.0%} of the ideal; a simulation was under way"
        f" on {sweep.occupied:.0%} of the cores' time"
    )


def verdict(sweep: Sweep) -> str:
    """The best settings, or that there are none, as a line."""
    grid, judgement = sweep.grid, sweep.judgement
    bounds = "; ".join(map(str, grid.bounds)) or "no bounds were set"
    if judgement.best is None:
        what = f"is within the bounds ({bounds})" if grid.bounds else "is left to choose from"
        return f"NOTHING {what}{_nearest(sweep)}"
    count, score = len(judgement.within), judgement.scores[judgement.best.number]
    return (
        f"BEST by {grid.best.name} of {count} within the bounds ({bounds}):"
        f" {grid.candidate_label(judgement.best)}, with {grid.best.unit(score)}"
    )


def _nearest(sweep: Sweep) -> str:
    """Which settings have the fewest lines that are out; nothing where all runs went wrong."""
    judgement = sweep.judgement
    sound = [c for c in sweep.grid.candidates if not any(line.wrong for line in judgement.of(c))]
    if not sound:
        return ": every one has runs that did not end as they should"
    nearest = min(sound, key=lambda c: sum(not line.is_good for line in judgement.of(c)))
    line = next(line for line in judgement.of(nearest) if not line.is_good)
    bound = line.exceeded[0]
    value = line.figures[bound.figure.name]
    told = "none" if value is None else bound.figure.unit(value)
    where = sweep.grid.scene_label(line.scene)
    at = f" at {where}" if where else ""
    label = sweep.grid.candidate_label(nearest)
    return f"; the nearest is {label}, with {bound.figure.name} {told}{at}"


def plain(sweep: Sweep) -> dict[str, object]:
    """All of it as plain data."""
    grid, judgement = sweep.grid, sweep.judgement
    return {
        "runs": len(sweep.finished),
        "success": is_success(sweep),
        "bounds": [str(bound) for bound in grid.bounds],
        "best_by": grid.best.name,
        "best": None if judgement.best is None else _chosen(judgement.best),
        "within": [_chosen(candidate) for candidate in judgement.within],
        "lines": [_plain_line(line) for line in judgement.lines],
        "wrong": [_plain_wrong(grid, one) for one in sweep.wrong],
        "left_out": grid.refused,
        "cores": sweep.cores,
        "cpu_seconds": sweep.cpu_seconds,
        "real_seconds": sweep.real_seconds,
        "ratio_to_ideal": sweep.ratio_to_ideal,
        "occupied": sweep.occupied,
    }


def _chosen(candidate: Candidate) -> dict[str, object]:
    return {"stack": candidate.stack.label, "settings": dict(candidate.settings)}


def _plain_line(line: Line) -> dict[str, object]:
    return {
        **_chosen(line.candidate),
        **line.scene,
        "statuses": dict(line.statuses),
        "figures": line.figures,
        "exceeded": [str(bound) for bound in line.exceeded],
    }


def _plain_wrong(grid: Grid, one: Finished) -> dict[str, object]:
    result = one.result
    return {"status": result.status, "problem": result.problem, "command": grid.command(one.run)}


def names(grid: Grid) -> Sequence[str]:
    """What varies, by name."""
    stack = ["stack"] if len(grid.stacks) > 1 else []
    return [*stack, *(a.name for a in (*grid.scene_axes, *grid.settings) if a.varies)]
