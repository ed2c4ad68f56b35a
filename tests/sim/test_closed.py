"""Attacks on a closed group by a stranger that hears and can send everything but has no key."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.events import Event
from ringcast.core.wire.codec import encode, group_id, source_of
from ringcast.core.wire.frames import Frame
from ringcast.core.wire.placement import Placement
from ringcast.core.wire.seal import COUNTER_AT, SEALED_AT
from ringcast.sim import World
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.network import Fate

KEY = bytes(range(7, 39))


class Eavesdropper:
    """Hears every datagram of the members."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        if parcel.source != "outside":
            self.heard.append(parcel.data)

    def given(self, now: float, member: Member, event: Event) -> None:
        pass

    def done(self, now: float, member: Member | None, what: str) -> None:
        pass


def closed_world(seed: int = 1, **settings: float) -> tuple[World, Eavesdropper]:
    listener = Eavesdropper()
    return World(seed, presets.lan(), key=KEY, observer=listener, **settings), listener  # type: ignore[arg-type]


def attack(world: World, datagrams: Iterable[bytes], *targets: Member) -> None:
    """Send datagrams to each member, and assert that views and deliveries stay as they are."""
    world.settle()
    views = {member.name: member.view for member in world.running}
    delivered = {member.name: len(member.delivered) for member in world.running}
    for datagram in datagrams:
        for target in targets or tuple(world.running):
            world.inject(datagram, target)
    world.run(10.0)
    assert {member.name: member.view for member in world.running} == views
    assert {member.name: len(member.delivered) for member in world.running} == delivered
    for member in world.running:
        member.send(b"after the attack")
    world.settle()
    count = len(world.running)
    assert all(len(m.delivered) == delivered[m.name] + count for m in world.running)
    assert world.check() == []


def talk(world: World, names: str = "abc") -> list[Member]:
    members = world.join(*names)
    for member in members:
        member.send([b"secret content"] * 50)
    world.settle()
    return members


def test_nothing_readable_leaves_a_closed_group() -> None:
    world, listener = closed_world()
    talk(world)
    everything = b"".join(listener.heard)
    assert b"secret content" not in everything
    assert group_id("sim").to_bytes(8, "big") not in everything


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_can_be_closed(name: str) -> None:
    world = World(2, presets.PRESETS[name](), key=KEY)
    a, b, c = world.join("a", "b", "c")
    for member in (a, b, c):
        member.send([b"secret content"] * 20)
    a.send([bytes(200_000)])
    world.settle()
    assert [len(member.delivered) for member in (a, b, c)] == [61] * 3
    assert all(member.stack.env.seal is not None for member in (a, b, c))
    assert world.check() == []


def test_recorded_traffic_replayed_at_once_and_later_is_dropped() -> None:
    world, listener = closed_world()
    a, *_ = talk(world)
    attack(world, list(listener.heard))
    assert a.stack.counters["dropped_replayed"] > 10
    world.run(600.0)
    attack(world, list(listener.heard))


def test_the_traffic_of_a_former_life_changes_nothing() -> None:
    world, listener = closed_world()
    *_, c = talk(world)
    recorded = list(listener.heard)
    c.restart()
    world.run_until(lambda: world.united, 60.0)
    world.settle()
    attack(world, recorded)


def test_recorded_traffic_changes_nothing_at_a_member_that_never_heard_it() -> None:
    world, listener = closed_world()
    a, _, c = talk(world)
    c.crash()
    world.run_until(lambda: world.united, 60.0)
    recorded = list(listener.heard)
    world.join("d")
    d = world.members["d"]
    world.settle()
    frames = world.frames["JOIN"]
    attack(world, recorded, d)
    attack(world, recorded, a)
    assert world.frames["JOIN"] == frames


@pytest.mark.parametrize("seed", range(3))
def test_flipped_truncated_and_swapped_datagrams_are_dropped(seed: int) -> None:
    world, listener = closed_world(seed)
    a, *_ = talk(world)
    rng, forged = Random(seed), list[bytes]()
    for data in listener.heard:
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        other = rng.choice(listener.heard)
        forged += [
            bytes(flipped),
            data[: rng.randrange(len(data))],
            data + rng.randbytes(9),
            other[:SEALED_AT] + data[SEALED_AT:],
            data[:COUNTER_AT] + rng.randbytes(8) + data[SEALED_AT:],
        ]
    fresh = [data for data in forged if data not in listener.heard]
    attack(world, fresh)
    assert a.stack.counters["dropped_wrong_key"] > 10


def test_unsealed_datagrams_of_an_open_group_are_dropped() -> None:
    other = Eavesdropper()
    open_world = World(1, presets.lan(), observer=other)
    talk(open_world)
    world, _ = closed_world()
    a, *_ = talk(world)
    attack(world, other.heard)
    assert a.stack.counters["dropped_unsealed"] > 10


def test_a_stranger_causes_not_one_datagram() -> None:
    world, listener = closed_world()
    a, b, c = talk(world)
    recorded = list(listener.heard)
    world.settle()
    for member in (a, b, c):
        before = len(member.stack.env.out.frames)
        now = world.now
        forged = [b"".join(encode(group_id("sim"), member.me, list[Frame]()))]
        member.stack.receive([*recorded, *forged], now)
        assert len(member.stack.env.out.frames) == before


@pytest.mark.parametrize("seed", range(4))
def test_no_key_and_nonce_is_used_twice(seed: int) -> None:
    world, listener = closed_world(seed, loss=0.05, duplicate=0.05, reorder=0.1, packet_loss=0.01)
    a, b, c = talk(world)
    world.partition([a], [b, c])
    world.run(20.0)
    a.send([b"x"] * 300)
    world.heal()
    c.restart()
    world.run_until(lambda: world.united, 120.0)
    b.send([bytes(5_000)] * 200)
    world.settle()
    used = [(source_of(data), data[COUNTER_AT:SEALED_AT]) for data in listener.heard]
    assert len(used) == len(set(used)) > 100
    assert world.check() == []


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_fragments_of_large_messages_are_placed(
    loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[bool] = []
    place = Placement.place

    def watched(self: Placement, datagram: memoryview) -> bool:
        outcomes.append(place(self, datagram))
        return outcomes[-1]

    monkeypatch.setattr(Placement, "place", watched)
    world, _ = closed_world(loss=loss)
    a, b, _ = world.join("a", "b", "c")
    contents = [Random(n).randbytes(1_000_000) for n in range(4)]
    for number, content in enumerate(contents):
        (a if number % 2 else b).send(content)
        world.settle()
    assert [bytes(message.payload) for message in b.delivered] == contents
    assert sum(outcomes) > 50
    assert world.check() == []


def test_a_seed_repeats_a_closed_run() -> None:
    hashes = set[str]()
    for _ in range(2):
        world, _ = closed_world(5, loss=0.05)
        talk(world)
        hashes.add(world.trace_hash)
    assert len(hashes) == 1


def test_rules_of_the_simulator_see_into_sealed_datagrams() -> None:
    world, _ = closed_world()
    a, b, _ = world.join("a", "b", "c")
    drop = world.drop(lambda seen: seen.kind == "DATA" and seen.target == "b")
    a.send(b"once more")
    world.run(0.05)
    assert drop.count > 0
    drop.remove()
    world.settle()
    assert len(b.delivered) == 1
