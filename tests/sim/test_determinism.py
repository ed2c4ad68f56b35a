"""The same seed gives the same run, in every process, whatever the hash seed of Python is."""

import json
import os
import subprocess
import sys

import pytest

from ringcast import presets
from ringcast.sim import World


def run(seed: int) -> str:
    world = World(seed=seed, spec=presets.lan(), loss=0.1, duplicate=0.1, reorder=0.1)
    a, b, _ = world.join("a", "b", "c")
    a.send([b"x"] * 100)
    b.crash()
    world.run(5.0)
    b.restart()
    world.settle()
    return world.trace_hash


def test_the_same_seed_gives_the_same_hash() -> None:
    assert run(1) == run(1)
    assert run(1) != run(2)


def test_looking_at_the_hash_changes_nothing() -> None:
    hashes = []
    for looks in (1, 50):
        world = World(seed=3, spec=presets.lan())
        world.start("a")
        for _ in range(looks):
            world.run(5.0 / looks)
            assert world.trace_hash
        hashes.append(world.trace_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("preset", ["lan", "stable"])
def test_the_hash_does_not_depend_on_the_hash_seed_of_python(preset: str) -> None:
    command = [sys.executable, "-m", "ringcast.cli.main", "sim", "--preset", preset, "--json"]
    command += ["--members", "4", "--messages", "500", "--loss", "0.2", "--seed", "7"]
    command += ["--crash", "m2@0.1", "--restart", "m2@5"]
    outputs = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "src"}
        done = subprocess.run(command, capture_output=True, env=environment, check=True, text=True)
        outputs.append(json.loads(done.stdout))
    assert outputs[0]["trace_hash"] == outputs[1]["trace_hash"]
    assert outputs[0]["frames"] == outputs[1]["frames"]
