"""The time that sends wait is counted under the lowest layer without room."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.blocked_time import BlockedTime
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Layer


class Narrow(Layer):
    """A layer with this much room."""

    def __init__(self, env: Env, name: str, messages: int) -> None:
        super().__init__(env)
        self.name, self.messages = name, messages

    def room(self, dest: Address | None) -> tuple[int, int]:
        return self.messages, 1_000

    @property
    def block_reason(self) -> str:
        return self.name


def test_the_lowest_layer_without_room_is_the_reason_and_waits_add_up() -> None:
    env = Env(Peer(Address(1), "a", ""), Random(1))
    layers = [Narrow(env, "top", 0), Narrow(env, "middle", 0), Narrow(env, "bottom", 1)]
    blocked = BlockedTime(env, layers)
    for _ in range(2):
        blocked.begin()
        env.now += 0.25
        blocked.begin()
        env.now += 0.25
        blocked.end()
        blocked.end()
    assert dict(env.counters) == {"blocked_ms_middle": 1_000}
