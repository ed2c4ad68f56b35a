"""Keys are replaced under full load: with loss, a joiner and a merge in each phase."""

from __future__ import annotations

from random import Random

import pytest

from ringcast import presets
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import Expelled, Suspected
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Discover
from ringcast.core.wire.outbox import Datagram
from ringcast.sim import Member, World
from tests.seeds import quick_first

OLD, NEW = bytes(range(1, 33)), bytes(range(101, 133))
PHASES = {"add": (OLD, NEW), "promote": (NEW, OLD), "remove": (NEW,)}
"""What the key files hold after each step."""

SIZE, RUN = 500, 400
BANDWIDTH = 1_000_000.0
"""Bytes per second and member: little, so that a few messages are a full load for a while."""


class Rotation:
    """A closed group under load, in which one member after the other reads its keys anew."""

    def __init__(self, seed: int) -> None:
        self.world = World(
            seed, presets.lan().replace("multicast", capacity=64), key=OLD, loss=0.02,
            duplicate=0.01, reorder=0.05, bandwidth=BANDWIDTH, addresses="random",
        )  # fmt: skip
        self.rng = Random(seed)
        self.sent = 0
        self.world.join(*"abcd")

    def load(self) -> None:
        """Let everybody have more to send than fits its window."""
        for member in self.world.running:
            if member.queued < RUN:
                first = self.sent
                self.sent += RUN
                member.send([b"%d" % n + bytes(SIZE) for n in range(first, self.sent)])

    def reload(self, keys: tuple[bytes, ...], *members: Member) -> None:
        """These members, one after the other, each while it sends and others send to it."""
        for member in self.rng.sample(members, len(members)):
            self.load()
            self.world.run(self.rng.uniform(0.01, 0.1))
            assert member.blocked, "the load is not a full one"
            member.use_keys(*keys)

    def join(self, name: str) -> None:
        """A new member, under load."""
        self.load()
        self.world.start(name)
        self.world.run_until(lambda: self.world.united, 60.0, f"{name} to join")

    def finish(self) -> None:
        self.world.settle()
        assert self.world.check() == []
        assert self.world.united

    def troubles(self) -> list[object]:
        """Members that were suspected, or sent away."""
        kinds = (Suspected, Expelled)
        return [e for m in self.world.running for e in m.events if isinstance(e, kinds)]


@pytest.mark.parametrize("seed", quick_first(range(6), 2))
def test_keys_are_replaced_under_load_with_loss_and_a_joiner_in_each_phase(seed: int) -> None:
    rotation = Rotation(seed)
    world = rotation.world
    views = {member.name: len(member.views) for member in world.running}
    for number, (phase, keys) in enumerate(PHASES.items()):
        members = world.running
        early, late = members[: len(members) // 2], members[len(members) // 2 :]
        rotation.reload(keys, *early)
        rotation.join(f"before-{phase}")  # With the file as it was before this phase …
        rotation.reload(keys, *late, world.members[f"before-{phase}"])
        world.use_keys(*keys)
        rotation.join(f"after-{phase}")  # … and as it is now.
        for name, count in views.items():
            assert len(world.members[name].views) == count + 2 * (number + 1)
    rotation.finish()
    assert rotation.troubles() == []
    # Nothing is lost: who was there from the beginning has all that was ever sent.
    for member in (world.members[name] for name in "abcd"):
        assert len(member.delivered) == rotation.sent


@pytest.mark.parametrize("seed", quick_first(range(6), 2))
@pytest.mark.parametrize("phase", PHASES)
def test_partitions_merge_with_the_keys_half_replaced(phase: str, seed: int) -> None:
    rotation = Rotation(seed)
    world = rotation.world
    for name, keys in PHASES.items():
        members = world.running
        if name != phase:
            rotation.reload(keys, *members)
            continue
        one, other = members[:2], members[2:]
        world.partition(one, other)
        rotation.reload(keys, *one)
        world.run_until(lambda: _are_apart(one, other), 60.0, "two views")  # noqa: B023
        world.heal()
        rotation.load()
        world.run_until(lambda: world.united, 60.0, "one view")
        world.run(2.0)  # Suspicions from the time apart may still be told.
        before = len(rotation.troubles())
        rotation.reload(keys, *other)
        rotation.load()
        rotation.finish()
        assert len(rotation.troubles()) == before
    world.use_keys(*PHASES["remove"])
    rotation.join("e")
    rotation.finish()


def _are_apart(*sides: list[Member]) -> bool:
    return all(set(m.view or ()) == {o.me for o in side} for side in sides for m in side)


@pytest.mark.parametrize("seed", range(2))
def test_the_old_key_is_refused_afterwards(seed: int) -> None:
    rotation = Rotation(seed)
    world = rotation.world
    for keys in PHASES.values():
        rotation.reload(keys, *world.running)
    rotation.finish()
    members = world.running
    views = [member.view for member in members]
    frames = world.frames["PRESENT"]
    thief = Peer(Address(99), "thief", "thief")
    seal = GroupSeal((Key(OLD),), "sim", thief.address, has_aes=True)
    for _ in range(20):
        data = encode(group_id("sim"), thief.address, [Discover(thief, NO_VIEW, 1)])
        (sealed,) = seal.seal([Datagram(None, data, sum(map(len, data)))])
        world.inject(b"".join(sealed.buffers), *members)
        world.run(0.5)
    assert world.frames["PRESENT"] == frames
    assert [member.view for member in members] == views
    assert all(member.stack.counters["dropped_wrong_key"] for member in members)
