"""A layer that holds messages releases them before the next view."""

from dataclasses import dataclass

from ringcast import presets
from ringcast.core.model.batch import Batch
from ringcast.core.stack.env import Env
from ringcast.protocols import Layer, Spec, protocol
from ringcast.sim import World


@protocol(role="hold", over="large")
@dataclass(frozen=True, kw_only=True)
class Hold(Spec):
    """Holds what arrives until the view changes."""

    def build(self, env: Env) -> Layer:
        return HoldLayer(env)


class HoldLayer(Layer):
    """Holds batches."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.held: list[Batch] = []

    def up(self, batch: Batch) -> None:
        self.held.append(batch)

    def flush(self) -> None:
        held, self.held = self.held, []
        for batch in held:
            self.above.up(batch)


def test_held_messages_are_delivered_in_the_view_they_were_sent_in() -> None:
    world = World(seed=3, spec=presets.lan().insert(Hold()), loss=0.1)
    a, b = world.join("a", "b")
    a.send(b"one")
    a.send(b"two")
    world.run(seconds=1.0)
    assert not b.delivered
    (c,) = world.join("c")
    world.run(seconds=1.0)
    assert [message.payload for message in b.delivered] == [b"one", b"two"]
    assert not c.delivered
    assert world.check() == []
