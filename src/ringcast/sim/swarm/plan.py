"""A run of the swarm as data: stack, network and actions, to be replayed, shrunk and stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

from ringcast.errors import ConfigError
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.engine.world import World
from ringcast.sim.swarm.draw import (
    draw_bandwidth,
    draw_hostile,
    draw_link,
    draw_path,
    draw_refusals,
    draw_spec,
    draw_states,
)
from ringcast.spec import StackSpec

Change = Callable[[StackSpec], StackSpec]
"""A change to every stack that is drawn; raises ConfigError where it does not fit."""
EFFORT_MAX = 300_000
"""More instants and frames than that in one run are a storm."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that decides a run of the swarm. The random choices of members and network come from
    `seed`, everything else is spelled out."""

    seed: int
    spec: StackSpec
    addresses: str
    """How members are numbered: "small" or "random"."""
    link: Mapping[str, object]
    """The settings of all links that differ from the defaults of `Link`."""
    switch: Mapping[str, float]
    """The settings of the switch that differ from the defaults of `Switch`."""
    refuse: bool = False
    """Whether the systems of dead members refuse what reaches them, see `World`."""
    hostile: str = ""
    """The hostile process: "stranger", or the name of a member; empty for none."""
    states: bool = False
    """Whether members keep a state that newcomers are given, see `KeptStates`."""
    size: int = 1
    """Bytes of each message."""
    actions: tuple[str, ...] = ()
    """What happens, in order: see `actions`."""
    recovery: tuple[int, ...] = ()
    """How many messages each member sends when the faults have ended: first to the group, one
    number per running member, then to one member."""

    def world(self, observer: WorldListener | None) -> World:
        """A new world with this stack and network."""
        world = World(
            self.seed,
            self.spec,
            **self.switch,  # type: ignore[arg-type]
            keep=False,
            addresses=self.addresses,
            observer=observer,
            effort_max=EFFORT_MAX,
            refuse=self.refuse,
        )
        for name, value in self.link.items():
            world.network.set_all(name, value)
        return world

    def to_json(self) -> str:
        """The plan as JSON, with one action per line."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["spec"] = self.spec.to_toml().splitlines()
        return json.dumps(values, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that a JSON text describes. Raises ConfigError."""
        try:
            values = json.loads(text)
            values["spec"] = StackSpec.from_toml("\n".join(values["spec"]))
            values["link"] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values["link"].items()
            }
            for name in ("actions", "recovery"):
                values[name] = tuple(values[name])
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"this is not a plan of the swarm ({error}): write one with"
                " `ringcast swarm --shrink SEED`"
            ) from None


def load_plan(path: str) -> Plan:
    """The plan in a JSON file. Raises ConfigError."""
    try:
        return Plan.from_json(Path(path).read_text())
    except OSError as error:
        raise ConfigError(f"cannot read the plan {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the plan {path}: it is not text in UTF-8") from None


def draw_plan(seed: int, rng: Random, change: Change | None = None) -> Plan:
    """The stack and the network that a seed draws; the actions are still to be drawn.

    Raises ConfigError when the change does not fit the stack."""
    spec, bandwidth = draw_spec(rng), draw_bandwidth(rng)
    spec = spec if change is None else change(spec)
    addresses, link = rng.choice(("small", "random")), draw_link(rng)
    packets, switch = draw_path(seed)
    if bandwidth is not None:
        switch["bandwidth"] = bandwidth
    return Plan(
        seed=seed,
        spec=spec,
        addresses=addresses,
        link={**link, **packets},
        switch=switch,
        refuse=draw_refusals(seed),
        hostile=draw_hostile(seed),
        states=draw_states(seed, spec) and not draw_hostile(seed),
    )
