"""A simulated million messages leave no trace in memory, whatever the stack."""

import tracemalloc
from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.sim import World
from ringcast.spec import StackSpec

MESSAGES = 1_000_000
BATCH = 512
PARTS = 8


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("preset", [presets.lan, presets.stable], ids=["lan", "stable"])
def test_memory_is_flat_over_a_million_messages(preset: Callable[[], StackSpec]) -> None:
    world = World(seed=1, spec=preset(), keep=False)
    members = world.join("a", "b", "c")
    run = [bytes(100)] * BATCH
    held: list[int] = []
    tracemalloc.start()
    for _ in range(PARTS):
        for _ in range(MESSAGES // PARTS // BATCH // len(members) + 1):
            for member in members:
                member.send(run)
            world.run(0.002)
        world.settle()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sum(len(member.delivered) for member in members) >= 3 * MESSAGES
    # The windows hold between one and two megabytes at any time.
    assert held[-1] < held[0] + 3_000_000, f"memory grows: {held}"
    assert world.check() == []
