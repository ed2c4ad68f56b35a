"""Members found by a name or a directory: together, one by one, and after a partition."""

import pytest

from ringcast import StackSpec, presets
from ringcast.sim import World

SPECS = {"file": presets.tcp(file="/d"), "dns": presets.tcp(dns="name:1")}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("count", [2, 8, 50])
def test_members_that_start_together_form_one_group(spec: StackSpec, count: int) -> None:
    world = World(seed=count, spec=spec)
    members = world.join(*(f"m{number}" for number in range(count)))
    assert world.now < 2.0
    assert len({member.view for member in members}) == 1
    assert len(members[0].views) <= 3, "together is one view, not one after the other"
    assert world.check() == []


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_members_that_start_one_by_one_join(spec: StackSpec) -> None:
    world = World(seed=1, spec=spec)
    for name in "abcd":
        world.join(name)
    assert [len(view) for view in world.members["a"].views] == [1, 2, 3, 4]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_partition_heals_within_the_documented_time(spec: StackSpec) -> None:
    world = World(seed=3, spec=spec)
    a, b, c, d = world.join(*"abcd")
    world.partition([a, b], [c, d])
    world.run_until(lambda: all(len(m.view or ()) == 2 for m in (a, b, c, d)), 20.0)
    world.heal()
    # 1.5 × merge_interval, gather, and a view change of some round trips.
    world.run_until(lambda: world.united, 1.5 * 2.0 + 0.02 + 0.5)
    assert world.check() == []


def test_a_directory_full_of_the_dead_keeps_nobody_from_anybody() -> None:
    world = World(seed=4, spec=SPECS["file"])
    for number in range(60):
        world.start(f"dead{number}").crash()
    members = world.join("a", "b", "c")
    assert len({member.view for member in members}) == 1
    assert world.now < 5.0
