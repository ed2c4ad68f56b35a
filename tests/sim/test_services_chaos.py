"""Calls and states while everything happens to the group: all of them come to an end."""

from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.batch import Message
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.unicast.settings import Unicast
from ringcast.services.calls import PendingCall
from ringcast.services.state_requester import OVER
from ringcast.sim import Member, World
from ringcast.sim.swarm.actions import ChaosListener
from ringcast.sim.swarm.chaos import Chaos
from ringcast.spec import StackSpec
from tests.seeds import quick_first

SPECS = {
    "lan": presets.lan(),
    "stable": presets.stable(),
    "small": presets.lan().replace(NakAck4(capacity=64), Unicast(capacity=16, max_bytes=50_000)),
}
STEPS = 60


class Party:
    """A world in which members call each other, and newcomers want a state."""

    def __init__(self, seed: int, spec: StackSpec) -> None:
        self.dice = Random(f"{seed}/party")
        tracer = ChaosListener(None)
        self.world = World(seed, spec, observer=tracer)
        self.chaos = Chaos(self.world, tracer, Random(f"{seed}/chaos"))
        self.calls: list[tuple[Member, object, PendingCall]] = []
        self._guests = 0

    def serve(self, member: Member) -> None:
        """Answer, and give a state of some size."""
        size = self.dice.choice((0, 1_000, 200_000))
        member.service.answer(answer)
        member.service.provide(lambda: [bytes(size)])

    def join(self) -> None:
        """A newcomer that wants a state."""
        if sum(member.alive for member in self.world.members.values()) < 8:
            self._guests += 1
            self.serve(self.world.start(f"guest{self._guests}", state=True))

    def call(self) -> None:
        """A member calls all or some."""
        ready = [m for m in self.world.running if m.view is not None and not m.leaving]
        if not ready:
            return
        member = self.dice.choice(ready)
        assert member.view is not None
        by_address = {m.me: m for m in self.world.members.values()}
        others = [by_address[a] for a in member.view if a in by_address]
        to = None if self.dice.random() < 0.6 else self.dice.sample(others, min(2, len(others)))
        wait = self.dice.choice(["all", "first", 2])
        payload = bytes(self.dice.choice((0, 10, 70_000)))
        call = member.call(payload, to=to, wait=wait, timeout=self.dice.choice((0.5, 5.0)))  # type: ignore[arg-type]
        self.calls.append((member, member.me, call))


def answer(call: Message) -> bytes:
    return bytes(len(call.payload))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("seed", quick_first(range(12), 3))
def test_everything_comes_to_an_end(seed: int, spec: StackSpec) -> None:
    party = Party(seed, spec)
    world, dice = party.world, party.dice
    for member in world.join("a", "b", "c"):
        party.serve(member)
    for _ in range(STEPS):
        dice.choice([party.chaos.act, party.call, party.call, party.join])()
        world.run(dice.choice((0.0, 0.001, 0.05, 0.5)))
    party.chaos.calm()
    world.run(10.0)
    world.settle()
    world.run(10.0)
    for member, life, call in party.calls:
        if member.alive and member.me == life:
            assert call.done, f"a call of {member.name} has not come to its end"
    for member in world.running:
        requester = member.service.correlator.requester
        assert requester is None or requester.stage in OVER, f"{member.name}: {requester.stage}"
        assert not member.service.correlator.provider.active
    assert world.check() == []
