"""Whole stacks on a network with packets, rates and queues."""

import json
from collections import deque

import pytest

from ringcast import presets
from ringcast.cli.main import main
from ringcast.layers.wire import Wire
from ringcast.sim import World
from ringcast.sim.swarm.actions import ChaosListener
from ringcast.sim.text.script import rewrite

SIZE, COUNT = 1_000, 400


def lost_share(mtu: int) -> float:
    """The share of a sender's datagrams that are lost when 1 % of the packets are lost."""
    spec = presets.lan().replace(Wire(mtu=mtu))
    listener = ChaosListener(None)
    listener.recent = deque()
    world = World(seed=1, spec=spec, keep=False, observer=listener)
    a, _ = world.join("a", "b")
    world.link("a", "b").packet_loss = 0.01
    for _ in range(COUNT):
        a.send([bytes(SIZE)] * 15)
        world.run(0.001)
    world.settle()
    assert world.check() == []
    sent = sum(len(data) >= SIZE for data, _ in listener.recent)
    return world.lost["lost"] / sent


def test_large_datagrams_are_lost_more_often_than_small_ones_and_everything_arrives() -> None:
    assert lost_share(1_472) < 0.02
    assert lost_share(20_000) > 0.05


@pytest.mark.parametrize("limit", ["bandwidth", "downlink", "shared"])
def test_a_narrow_path_takes_the_time_that_its_rate_gives(limit: str) -> None:
    world = World(seed=2, spec=presets.lan(), keep=False, **{limit: 1_000_000.0})  # type: ignore[arg-type]
    a, b, _ = world.join("a", "b", "c")
    began = world.now
    a.send([bytes(SIZE)] * COUNT)
    world.run_until(lambda: len(b.delivered) == COUNT, 60.0)
    assert 0.4 < world.now - began < 1.0
    world.settle()
    assert world.check() == []


def test_a_queue_that_overflows_loses_datagrams_and_they_are_repaired() -> None:
    spec = presets.lan().replace(Wire(mtu=1_472))
    world = World(seed=3, spec=spec, downlink=1_000_000.0, queue=64_000, keep=False)
    a, b = world.join("a", "b")
    a.send([bytes(SIZE)] * COUNT)
    world.settle()
    assert world.lost["queue full"] > 0
    assert len(b.delivered) == COUNT
    assert world.check() == []


def test_one_narrow_downlink_delays_its_receiver_until_it_is_widened() -> None:
    world = World(seed=4, spec=presets.lan(), keep=False)
    a, b, c = world.join("a", "b", "c")
    world.network.switch.set_downlink("c", 100_000.0)
    a.send([bytes(SIZE)] * COUNT)
    world.run(1.0)
    assert len(b.delivered) == COUNT > len(c.delivered)
    world.network.switch.set_downlink("c", None)
    world.settle()
    assert len(b.delivered) == len(c.delivered) == COUNT


def test_the_command_line_takes_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sim --messages 200 --mtu 1500 --packet-loss 0.05 --bandwidth 1e6 --downlink 1e6"
    more = "--shared 2e6 --queue 64000 --delay 0.001-0.002 --json"
    code = main(f"{words} {more}".split())
    outcome = json.loads(capsys.readouterr().out)
    assert code == 0
    assert outcome["lost"]["lost"] > 0


def test_a_script_takes_the_network() -> None:
    story = "world seed=1 bandwidth=1000000 queue=64000 packet_loss=0.01 mtu=1500\njoin a b\ncheck"
    assert rewrite(story).rstrip().endswith("all guarantees held")
