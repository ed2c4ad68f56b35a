"""The results of a sweep as a table: one row per simulation."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ringcast.sim.isolated import IsolatedResult
from ringcast.spark.sweep.figures import measured, shown
from ringcast.spark.sweep.grid import LOAD, NETWORK, Grid, Simulation

INTS = ("members", "messages", "size", "batch", "senders", "still")
SCENE: dict[str, pa.DataType] = {
    **{name: pa.int64() if name in INTS else pa.float64() for name in LOAD},
    **{name: pa.float64() for name in NETWORK if name != "delay"},
    "delay_low": pa.float64(),
    "delay_high": pa.float64(),
}
RESULT: dict[str, pa.DataType] = {
    "seed": pa.int64(),
    "status": pa.string(),
    "problem": pa.string(),
    "command": pa.string(),
    **dict.fromkeys(("p50", "p99", "max", "throughput"), pa.float64()),
    "retransmitted": pa.int64(),
    **dict.fromkeys(("resent", "control"), pa.float64()),
    **dict.fromkeys(("window_bytes", "views", "violations"), pa.int64()),
    **dict.fromkeys(("delivered", "expected"), pa.int64()),
    "virtual_seconds": pa.float64(),
    "trace_hash": pa.string(),
    **dict.fromkeys(("cpu_seconds", "began_at", "real_seconds"), pa.float64()),
    "worker": pa.string(),
}


def arrow_table(grid: Grid, results: Sequence[tuple[Simulation, IsolatedResult]]) -> pa.Table:
    """One row per simulation: its stack and settings, its scene, and what became of it."""
    settings = {column(axis.name): _type(axis.values) for axis in grid.settings}
    columns: dict[str, pa.DataType] = {
        "run": pa.int64(),
        "stack": pa.string(),
        **settings,
        **SCENE,
        **RESULT,
    }
    rows = [_row(grid, number, *pair) for number, pair in enumerate(results)]
    arrays = [
        pa.array([_cell(row[name], kind) for row in rows], kind) for name, kind in columns.items()
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(list(columns.items())))


def column(setting: str) -> str:
    """The column of a setting: a dot in a column's name would have to be quoted everywhere."""
    return setting.replace(".", "_")


def _row(grid: Grid, number: int, run: Simulation, result: IsolatedResult) -> dict[str, object]:
    scene = dict(run.scene)
    delay = scene.pop("delay")
    assert isinstance(delay, tuple)
    outcome = result.outcome
    row: dict[str, object] = {
        **dict.fromkeys(RESULT),
        "run": number,
        "stack": run.candidate.stack.label,
        **{column(name): value for name, value in run.candidate.settings},
        **scene,
        **dict(zip(("delay_low", "delay_high"), delay, strict=True)),
        **{name: getattr(result, name) for name in ("status", "problem", "cpu_seconds")},
        **{name: getattr(result, name) for name in ("began_at", "real_seconds", "worker")},
        "seed": run.seed,
        "command": grid.command(run),
    }
    if outcome is not None:
        names = ("retransmitted", "delivered", "expected", "virtual_seconds", "trace_hash")
        row |= measured(outcome) | {name: getattr(outcome, name) for name in names}
        row["violations"] = result.violations
    return row


def _type(values: Sequence[object]) -> pa.DataType:
    """The type of a column with these values; what is not a number or switch is text."""
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if all(isinstance(value, int) for value in values):
        return pa.int64()
    return pa.float64() if all(isinstance(v, int | float) for v in values) else pa.string()


def _cell(value: object, kind: pa.DataType) -> object:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return shown(value)
    if pa.types.is_boolean(kind):
        return value
    assert isinstance(value, int | float)
    return int(value) if pa.types.is_integer(kind) else float(value)
