"""A group that is full: joiners are told, merges leave groups out, and the members go on."""

from __future__ import annotations

import pytest

from ringcast import presets
from ringcast.control.membership import view_size
from ringcast.layers import wire
from ringcast.sim import World
from ringcast.sim.engine.member import ProcessState

FULL = "the group is full: a view has up to 4 members, and 196,608 bytes about them"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_size, "MEMBERS_MAX", 4)


def names(world: World) -> list[str]:
    return sorted(member.name for member in world.running)


def test_joiners_of_a_full_group_are_told_why() -> None:
    world = World(1, presets.lan())
    for name in "abcdef":
        world.start(name)
    world.run_until(lambda: len(world.running) == 4 and world.united, 30.0)
    turned_away = [m for m in world.members.values() if m.state is ProcessState.LEFT]
    assert [member.stack.closed for member in turned_away] == [FULL, FULL]
    for member in world.running:
        member.send(b"still here")
    world.settle()
    world.running[0].leave()
    world.run_until(lambda: len(world.running) == 3 and world.united, 30.0)
    world.join("g")
    assert len(world.running) == 4
    assert world.check() == []


def test_groups_that_are_too_large_together_stay_apart_and_go_on() -> None:
    world = World(1, presets.lan())
    world.partition("ab", "cde")
    for name in "abcde":
        world.start(name)
    sides = [[world.members[name] for name in side] for side in ("ab", "cde")]
    world.run_until(
        lambda: all(m.view is not None and len(m.view) == len(s) for s in sides for m in s), 30.0
    )
    world.heal()
    for _ in range(100):
        for side in sides:
            if not side[0].blocked:
                side[0].send(b"x" * 100)
        world.run(0.6)
    for side in sides:
        assert len({m.view.id for m in side if m.view is not None}) == 1
        assert len(side[1].delivered) > 95, "merges that cannot be stop them seldom"
    assert sides[0][0].view is not None
    assert len(sides[0][0].view) == 2
    world.members["e"].leave()  # Now all of them fit.
    world.run_until(lambda: len(world.running) == 4 and world.united, 150.0)
    assert world.check() == []


def test_joiners_with_long_names_stop_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their view would be larger than a frame, and so no member would ever get it."""
    monkeypatch.setattr(view_size, "MEMBERS_MAX", 1_024)
    monkeypatch.setattr(view_size, "PEER_BYTES_MAX", 6_000)
    monkeypatch.setattr(wire, "FRAME_MAX", 8_000)
    world = World(1, presets.lan())
    a, *_ = world.join("a", "b", "c")
    for number in range(40):
        world.start(f"{number}" + "n" * 400)
    world.run_until(lambda: world.united, 30.0)
    assert 5 < len(world.running) < 20
    assert a.stack.counters["dropped_oversized"] == 0
    for member in world.running:
        member.send(b"still here")
    world.settle()
    assert world.check() == []
