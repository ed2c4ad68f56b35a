"""Reads a grid from TOML. Whatever is wrong with it is one sentence that names the key."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.protocols import find
from ringcast.sim.engine.network import Link, parse_delay
from ringcast.sim.engine.ports import Switch
from ringcast.sim.isolated import CPU_SECONDS_MAX
from ringcast.sim.trial import ACTIONS, Fault, Trial, parse_fault
from ringcast.spark.sweep import values
from ringcast.spark.sweep.figures import FIGURES, Bound, shown
from ringcast.spark.sweep.grid import (
    DEFAULTS,
    LINK,
    LOAD,
    NETWORK,
    SWITCH,
    Axis,
    BaseStack,
    Grid,
)
from ringcast.spark.sweep.values import Kind, Tables, check_keys, check_value, read_axis
from ringcast.spec import StackSpec

RUNS_MAX = 10_000
"""More runs than that are refused, unless the grid says how many there may be."""

KEYS = (
    *("preset", "spec", *LOAD, "seeds", "timeout", "cpu_seconds_max", "runs_max", "best"),
    *("network", "settings", "faults", "bounds"),
)

KINDS = {
    **dict.fromkeys(("members", "messages", "size", "batch", "senders", "still"), values.WHOLE),
    **dict.fromkeys(("duration", *NETWORK), values.NUMBER),
    "delay": values.DELAY,
    **dict.fromkeys(("mtu", "queue"), values.WHOLE),
}


def load_grid(path: Path) -> Grid:
    """The grid in a file."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read the grid {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} has values nested too deeply: write plain lists") from None
    try:
        return parse_grid(tables, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_grid(tables: Tables, folder: Path) -> Grid:
    """The grid that these tables describe."""
    check_keys(tables, KEYS, "")
    scene_axes = (*_load(tables), *_network(values.read_table(tables, "network")))
    best = check_value("best", tables.get("best", "throughput"), values.TEXT)
    if best not in FIGURES:
        raise ConfigError(f'best is "{best}": give {", ".join(FIGURES)}')
    grid = Grid(
        stacks=_stacks(tables, folder),
        settings=_settings(values.read_table(tables, "settings")),
        scene_axes=scene_axes,
        seeds=_seeds(tables.get("seeds", 1)),
        faults=_faults(values.read_table(tables, "faults")),
        timeout=values.read_positive(tables, "timeout", Trial.timeout),
        cpu_seconds_max=values.read_positive(tables, "cpu_seconds_max", CPU_SECONDS_MAX),
        best=FIGURES[str(best)],
        bounds=_bounds(tables.get("bounds", {}), scene_axes),
    )
    _check_size(grid, values.read_positive(tables, "runs_max", RUNS_MAX))
    _check_settings(grid)
    _check_scenes(grid)
    return grid


# The parts of a grid ------------------------------------------------------------------------------


def _stacks(tables: Tables, folder: Path) -> tuple[BaseStack, ...]:
    """Presets and stacks from files; without either, `lan`."""
    found = []
    given = {} if "spec" in tables else {"preset": "lan"}
    for key, names in (given | dict(tables)).items():
        if key in ("preset", "spec"):
            for name in map(str, read_axis("", key, names, values.TEXT).values):
                word = name if key == "preset" else str(folder / name)
                load = presets.named if key == "preset" else StackSpec.load
                found.append(BaseStack(name, (f"--{key}", word), load(word)))
    return tuple(found)


def _load(tables: Tables) -> tuple[Axis, ...]:
    return tuple(
        read_axis("", name, tables[name], KINDS[name])
        if name in tables
        else Axis(name, (DEFAULTS[name],))
        for name in LOAD
    )


def _network(table: Tables) -> tuple[Axis, ...]:
    check_keys(table, NETWORK, "network")
    axes = []
    for name in NETWORK:
        axis = Axis(name, (DEFAULTS[name],))
        if name in table:
            axis = _as_delays(read_axis("network", name, table[name], KINDS[name]))
        axes.append(axis)
    return tuple(axes)


def _as_delays(axis: Axis) -> Axis:
    """Delays as the simulator takes them; other axes as they are."""
    if axis.name != "delay":
        return axis
    delays: list[object] = [parse_delay(str(value)) for value in axis.values]
    return Axis(axis.name, values.check_distinct("network.delay", delays))


def _settings(table: Tables) -> tuple[Axis, ...]:
    """Settings by their full names: `"NakAck4.capacity"`, or in a table of their protocol."""
    axes: dict[str, Axis] = {}
    for key, given in table.items():
        named = given.items() if isinstance(given, dict) else [("", given)]
        for name, one in named:
            full = f"{key}.{name}" if name else key
            if "." not in full:
                raise ConfigError(
                    f'settings.{full} is not a setting: name its protocol, "NakAck4.{full}"'
                )
            if full in axes:
                raise ConfigError(f"settings.{full} is there twice: keep one of them")
            axes[full] = Axis(full, _setting_values(full, one))
    return tuple(axes.values())


def _setting_values(full: str, given: object) -> tuple[object, ...]:
    """The values of a setting. One that is a list itself varies as a list of lists."""
    protocol, _, name = full.rpartition(".")
    kind = find(protocol)
    default = None if kind is None else kind().values().get(name)
    several = isinstance(given, list) and (
        not isinstance(default, tuple) or any(isinstance(one, list) for one in given)
    )
    listed = given if isinstance(given, list) and several else [given]
    for one in listed:
        if not isinstance(one, bool | int | float | str | list):
            raise ConfigError(f"settings.{full} is {one!r}: give a value, or a list of values")
    converted = [tuple(one) if isinstance(one, list) else one for one in listed]
    return values.check_distinct(f"settings.{full}", converted)


def _seeds(given: object) -> tuple[int, ...]:
    if isinstance(given, list):
        seeds = read_axis("", "seeds", given, values.WHOLE).values
        return tuple(seed for seed in seeds if isinstance(seed, int))
    count = check_value("seeds", given, Kind((int,), "how many seeds, or a list of them"))
    if not isinstance(count, int) or not 1 <= count <= 1_000_000:
        raise ConfigError(f"seeds is {count}: give 1 to a million")
    return tuple(range(count))


def _faults(table: Tables) -> tuple[Fault, ...]:
    check_keys(table, ACTIONS, "faults")
    kind = Kind((str, int, float), 'members and a time, say "m1@0.5"')
    given = {action: table[action] for action in ACTIONS if action in table}
    return tuple(
        parse_fault(action, str(check_value(f"faults.{action}", text, kind)))
        for action, texts in given.items()
        for text in (texts if isinstance(texts, list) else [texts])
    )


def _bounds(given: object, axes: tuple[Axis, ...]) -> tuple[Bound, ...]:
    found = []
    for table in given if isinstance(given, list) else [given]:
        if not isinstance(table, dict):
            raise ConfigError(f"bounds is {table!r}: write a table, [bounds], or [[bounds]]")
        check_keys(table, (*FIGURES, "where"), "bounds")
        limits = {name: limit for name, limit in table.items() if name != "where"}
        where = tuple(_where(table.get("where", {}), {axis.name: axis for axis in axes}))
        if where and not limits:
            raise ConfigError("bounds.where stands alone: say what is bounded there, p99 = 0.05")
        for name, limit in limits.items():
            number = check_value(f"bounds.{name}", limit, values.NUMBER)
            assert isinstance(number, int | float)
            found.append(Bound(FIGURES[name], float(number), where))
    return tuple(found)


def _where(table: object, axes: dict[str, Axis]) -> list[tuple[str, tuple[object, ...]]]:
    if not isinstance(table, dict):
        raise ConfigError(f"bounds.where is {table!r}: write a table, where = {{ loss = 0.02 }}")
    check_keys(table, tuple(axes), "bounds.where")
    found = []
    for name, given in table.items():
        axis = _as_delays(read_axis("bounds.where", name, given, KINDS[name]))
        for one in axis.values:
            if one not in axes[name].values:
                there = ", ".join(map(shown, axes[name].values))
                raise ConfigError(
                    f"bounds.where.{name} is {shown(one)}, and the grid has no such run:"
                    f" its {name} is {there}"
                )
        found.append((name, axis.values))
    return found


# The grid as a whole ------------------------------------------------------------------------------


def _check_size(grid: Grid, runs_max: float) -> None:
    """Before anything is built: the product of all lists."""
    candidates = len(grid.stacks) * math.prod(len(axis.values) for axis in grid.settings)
    scenes = math.prod(len(axis.values) for axis in grid.scene_axes)
    count = candidates * scenes * len(grid.seeds)
    if count > runs_max:
        raise ConfigError(
            f"the grid has {count:,} runs ({candidates:,} settings × {scenes:,} networks and loads"
            f" × {len(grid.seeds):,} seeds), and runs_max is {runs_max:,}: shorten a list, or raise"
            " runs_max"
        )


def _check_settings(grid: Grid) -> None:
    """A value that a stack of the grid cannot have, whatever the others are, is a mistake."""
    for stack in grid.stacks:
        made = [candidate for candidate in grid.candidates if candidate.stack is stack]
        used = {setting for candidate in made for setting in candidate.settings}
        for axis in grid.settings:
            for one in axis.values:
                if (axis.name, one) not in used:
                    _refuse(grid, stack, axis.name, one)


def _refuse(grid: Grid, stack: BaseStack, name: str, value: object) -> None:
    among = f" of {stack.label}" if len(grid.stacks) > 1 else ""
    try:
        stack.spec.with_settings({name: value})
    except ConfigError as error:
        raise ConfigError(f"settings.{name}{among}: {error}") from None
    told = grid.refused[0].partition(": ")[2]
    raise ConfigError(f"settings.{name}{among} = {shown(value)} fits no other value here: {told}")


def _check_scenes(grid: Grid) -> None:
    for scene in grid.scenes:
        for name, least in (("members", 2), ("messages", 1)):
            value = scene[name]
            if isinstance(value, int) and value < least:
                raise ConfigError(f"{name} is {value}: a sweep needs at least {least}")
        Link(**{name: scene[name] for name in LINK})  # type: ignore[arg-type]  # checked
        Switch(**{name: scene[name] for name in SWITCH})  # type: ignore[arg-type]  # checked
        Trial(spec=grid.stacks[0].spec, faults=grid.faults, **scene)  # type: ignore[arg-type]
