"""The swarm draws every documented option of the protocols that carry messages to the group."""

from dataclasses import fields
from random import Random

import pytest

from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim.swarm.draw import BRAKES, BUFFERS, SETTINGS, draw_path, draw_spec


@pytest.mark.parametrize("protocol", [NakAck3, NakAck4])
def test_every_option_of_a_multicast_varies(protocol: type[NakAck3 | NakAck4]) -> None:
    drawn = {name for tables in (SETTINGS, BRAKES, BUFFERS) for name in tables["multicast"]}
    assert {field.name for field in fields(protocol)} <= drawn


@pytest.mark.slow
def test_every_value_of_an_option_is_drawn_by_some_seed() -> None:
    specs = [draw_spec(Random(f"{seed}/swarm"))["multicast"].values() for seed in range(400)]
    for name, values in BUFFERS["multicast"].items():
        assert set(values) <= {spec[name] for spec in specs if name in spec}


def test_some_seeds_have_packets_rates_and_queues() -> None:
    drawn = [draw_path(seed) for seed in range(200)]
    assert 30 < sum(bool(link) for link, _ in drawn) < 90
    assert {name for _, switch in drawn for name in switch} == {"downlink", "shared", "queue"}
    assert draw_path(7) == draw_path(7)
