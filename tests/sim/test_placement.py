"""Large messages are placed where they belong, whatever becomes of their fragments on the way."""

from random import Random

import pytest

from ringcast import presets
from ringcast.core.wire.placement import PLACED, Placement
from ringcast.sim import World

SIZE = 1_500_000


@pytest.fixture
def placements(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each datagram that was written to where the next was expected, whether it was that."""
    right: list[bool] = []
    placed = Placement.placed

    def noting(self: Placement, nbytes: int) -> bytes | memoryview:
        came = placed(self, nbytes)
        right.append(came is PLACED)
        return came

    monkeypatch.setattr(Placement, "placed", noting)
    return right


def stream(world: World, senders: int) -> None:
    """Some members send large messages; one stands still now and then and finds them in a heap."""
    members = world.join("a", "b", "c", "d")
    world.settle()
    random = Random(1)
    sent = {m.me: [random.randbytes(SIZE + n) for n in range(3)] for m in members[:senders]}
    for member in members[:senders]:
        for message in sent[member.me]:
            member.send([message])
    last = members[-1]
    for _ in range(40):
        last.pause()
        world.run(0.0007)
        last.resume()
        world.run(0.0002)
    world.run_until(lambda: all(len(m.delivered) == 3 * senders for m in members), seconds=60)
    for member in members:
        for sender, messages in sent.items():
            got = [bytes(m.payload) for m in member.delivered if m.sender == sender]
            assert got == messages
    world.check()


@pytest.mark.parametrize("preset", ["lan", "bulk"])
@pytest.mark.parametrize("senders", [1, 2, 3])
@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_messages_are_what_was_sent(
    preset: str, senders: int, loss: float, placements: list[bool]
) -> None:
    spec = presets.named(preset)
    world = World(seed=5, spec=spec, delay=(0.0001, 0.0003), bandwidth=1e9, loss=loss)
    stream(world, senders)
    assert placements.count(True) > 20


def test_without_trouble_nearly_all_fragments_are_placed(placements: list[bool]) -> None:
    world = World(seed=5, spec=presets.lan(), delay=(0.0002, 0.0002), bandwidth=1e9)
    stream(world, 1)
    assert placements.count(True) > 0.8 * 3 * 3 * SIZE / 60_000
