"""What a sweep goes through: stacks and their settings, networks and loads, seeds; as plain data.

Three words are used throughout. A *candidate* is a stack with chosen settings, one of which is to
be found the best. A *scene* is a network and a load: what the candidates have to cope with. A *run*
is one simulation, of a candidate in a scene with a seed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from pathlib import Path

from ringcast.errors import ConfigError
from ringcast.sim.trial import Fault, Trial
from ringcast.spark.sweep.figures import Bound, SweepFigure, shown
from ringcast.spec import StackSpec, toml_value

LOAD = ("members", "messages", "size", "batch", "senders", "still", "duration")
LINK = ("loss", "delay", "duplicate", "reorder", "corrupt", "packet_loss", "mtu")
SWITCH = ("bandwidth", "downlink", "shared", "queue")
NETWORK = (*LINK, *SWITCH)
DEFAULTS = {field.name: field.default for field in fields(Trial)}


@dataclass(frozen=True)
class Axis:
    """Something that varies, with all its values."""

    name: str
    values: tuple[object, ...]

    @property
    def varies(self) -> bool:
        """Whether there is more than one value."""
        return len(self.values) > 1


@dataclass(frozen=True)
class BaseStack:
    """A stack that candidates are made from."""

    label: str
    words: tuple[str, ...]
    """How `ringcast sim` is told to use it."""
    spec: StackSpec


@dataclass(frozen=True)
class Candidate:
    """A stack with chosen settings."""

    number: int
    stack: BaseStack
    settings: tuple[tuple[str, object], ...]
    spec: StackSpec

    def label(self, axes: tuple[Axis, ...], several_stacks: bool) -> str:
        """What tells this candidate from the others, in words."""
        varying = {axis.name for axis in axes if axis.varies}
        parts = [self.stack.label] if several_stacks or not varying else []
        parts += [f"{name} {shown(value)}" for name, value in self.settings if name in varying]
        return ", ".join(parts)


@dataclass(frozen=True)
class Simulation:
    """One simulation."""

    candidate: Candidate
    scene: Mapping[str, object]
    scene_number: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A grid as its file describes it. `load` and `parse` make one."""

    stacks: tuple[BaseStack, ...]
    settings: tuple[Axis, ...]
    scene_axes: tuple[Axis, ...]
    """The load, then the network: every setting of either, most with one value."""
    seeds: tuple[int, ...]
    faults: tuple[Fault, ...]
    timeout: float
    cpu_seconds_max: float
    best: SweepFigure
    bounds: tuple[Bound, ...]

    @classmethod
    def load(cls, path: str | Path) -> Grid:
        """The grid in a TOML file. Raises ConfigError, in one sentence that names the key."""
        from ringcast.spark.sweep.parse import load_grid

        return load_grid(Path(path))

    @classmethod
    def parse(cls, tables: Mapping[str, object], folder: str | Path = ".") -> Grid:
        """The grid that tables as in such a file describe; a `spec` is looked for in `folder`."""
        from ringcast.spark.sweep.parse import parse_grid

        return parse_grid(tables, Path(folder))

    @cached_property
    def _stacked(self) -> tuple[list[Candidate], list[str]]:
        """The candidates, and what is wrong with the combinations that no stack can have."""
        made, refused = list[Candidate](), list[str]()
        names = [axis.name for axis in self.settings]
        combined = list(product(*(axis.values for axis in self.settings)))
        for stack, values in product(self.stacks, combined):
            chosen = tuple(zip(names, values, strict=True))
            try:
                spec = stack.spec.with_settings(dict(chosen))
            except ConfigError as error:
                told = ", ".join(f"{name} {shown(value)}" for name, value in chosen)
                refused.append(f"{stack.label} with {told}: {error}")
            else:
                made.append(Candidate(len(made), stack, chosen, spec))
        return made, refused

    @property
    def candidates(self) -> list[Candidate]:
        """Every stack with every combination of settings that it can have."""
        return self._stacked[0]

    @property
    def refused(self) -> list[str]:
        """The combinations that are left out, since their values do not go together."""
        return self._stacked[1]

    @cached_property
    def scenes(self) -> list[dict[str, object]]:
        """Every network with every load."""
        names = [axis.name for axis in self.scene_axes]
        combined = product(*(axis.values for axis in self.scene_axes))
        return [dict(zip(names, values, strict=True)) for values in combined]

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self.candidates) * len(self.scenes) * len(self.seeds)

    def runs(self) -> Iterator[Simulation]:
        """All runs, scene by scene and candidate by candidate."""
        for number, scene in enumerate(self.scenes):
            for candidate in self.candidates:
                for seed in self.seeds:
                    yield Simulation(candidate, scene, number, seed)

    def trial(self, run: Simulation) -> Trial:
        """A run as the simulator takes it."""
        return Trial(
            spec=run.candidate.spec,
            seed=run.seed,
            faults=self.faults,
            timeout=self.timeout,
            **run.scene,  # type: ignore[arg-type]  # the parser has seen to the types
        )

    def command(self, run: Simulation) -> str:
        """The one command that repeats a run."""
        words = ["ringcast", "sim", *run.candidate.stack.words]
        for name, value in run.candidate.settings:
            words += ["--set", f"{name}={toml_value(value)}"]
        given = {**run.scene, "timeout": self.timeout}
        for name, value in given.items():
            if value != DEFAULTS[name]:
                words += [f"--{name.replace('_', '-')}", as_word(value)]
        for fault in self.faults:
            words += [f"--{fault.action}", str(fault)]
        return shlex.join([*words, "--seed", str(run.seed)])

    def candidate_label(self, candidate: Candidate) -> str:
        """What tells a candidate from the others, in words."""
        return candidate.label(self.settings, len(self.stacks) > 1)

    def scene_label(self, scene: Mapping[str, object]) -> str:
        """What tells a network and load from the others, in words."""
        varying = [axis.name for axis in self.scene_axes if axis.varies]
        return ", ".join(f"{name} {shown(scene[name])}" for name in varying)


def as_word(value: object) -> str:
    """A value as an argument of `ringcast sim`, exactly."""
    if isinstance(value, tuple):
        return "-".join(map(repr, value))
    return repr(value) if isinstance(value, int | float) else str(value)
