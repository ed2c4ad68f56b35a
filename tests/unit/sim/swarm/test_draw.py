"""The swarm draws every documented option of every protocol that it simulates."""

from collections import defaultdict
from collections.abc import Iterable
from random import Random

import pytest

from ringcast.core.stack import registry
from ringcast.layers.compress.algorithms import best
from ringcast.protocols import named, names
from ringcast.sim.swarm.draw import BUFFERS, OTHERS, draw_path, draw_spec
from ringcast.spec import StackSpec

QUICK_SEEDS, SEEDS = range(200), range(400)
NOT_SIMULATED = {
    "Udp": "the simulated network is below every stack",
    "Tcp": "the simulated network is below every stack",
    "Memory": "the simulated network is below every stack",
    "Faults": "the simulated network has faults of its own",
}
"""Protocols whose settings change nothing in a simulation, each with the reason."""
NOT_DRAWN = {
    "Discovery.dns": "the runtime looks at names",
    "Discovery.file": "the runtime looks at directories",
    "Discovery.methods": "the runtime asks them",
    "Discovery.refresh": "the runtime looks at names and directories",
}
"""Settings that do not vary, each with the reason."""


def drawn_specs(seeds: Iterable[int]) -> list[StackSpec]:
    """The stacks of these seeds."""
    return [draw_spec(Random(f"{seed}/swarm")) for seed in seeds]


def test_every_setting_of_every_protocol_varies_unless_there_is_a_reason() -> None:
    drawn = defaultdict[str, set[object]](set)
    for spec in drawn_specs(QUICK_SEEDS):
        for protocol in spec:
            for name, value in protocol.values().items():
                drawn[f"{type(protocol).__name__}.{name}"].add(value)
    # Protocols of tests and of users are registered as well.
    own = [name for name in names() if named(name).__module__.startswith("ringcast.")]
    simulated = [name for name in own if name not in NOT_SIMULATED]
    settings = [f"{name}.{setting}" for name in simulated for setting in named(name)().values()]
    alike = {setting for setting in settings if len(drawn[setting]) < 2}
    alone = {"Compress.algorithm"} if best() == "zlib" else set()  # Only one is installed.
    assert alike == NOT_DRAWN.keys() | alone


@pytest.mark.parametrize("role", OTHERS)
def test_every_other_setting_exists(role: str) -> None:
    """A name that no protocol has would be left out in silence."""
    protocols = [named(name)() for name in names() if registry.of(named(name)).role == role]
    assert OTHERS[role].keys() <= {name for protocol in protocols for name in protocol.values()}


@pytest.mark.slow
def test_every_value_of_an_option_is_drawn_by_some_seed() -> None:
    specs = drawn_specs(SEEDS)
    for role, choices in (("multicast", BUFFERS["multicast"]), *OTHERS.items()):
        there = [spec[role].values() for spec in specs if role in spec]
        for name, values in choices.items():
            wanted = {
                best() if value == "auto" and role == "compress" else value for value in values
            }
            assert wanted <= {found[name] for found in there if name in found}, f"{role}.{name}"


def test_some_seeds_have_packets_rates_and_queues() -> None:
    drawn = [draw_path(seed) for seed in range(200)]
    assert 30 < sum(bool(link) for link, _ in drawn) < 90
    assert {name for _, switch in drawn for name in switch} == {"downlink", "shared", "queue"}
    assert draw_path(7) == draw_path(7)
