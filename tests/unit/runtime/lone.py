"""A stack that is alone in its group, driven by hand, for the parts of the runtime around it."""

import random

from ringcast import presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.stack import Stack

ME = Address(1)


def lone_stack(**settings: object) -> Stack:
    """A member that has founded a group, with nothing left to take."""
    spec = presets.loopback()
    if settings:
        spec = spec.replace(**settings)
    stack = spec.build(Peer(ME, "me", "nowhere"), "g", random.Random(1))
    stack.start(0.0)
    while stack.view is None:
        stack.wake(stack.deadline)
    stack.drain()
    stack.take(1, stack.env.now)
    stack.consumed(stack.env.now)
    return stack


class Bell:
    """A caller that counts how often it is told."""

    def __init__(self, who: object = None) -> None:
        self.who = who
        self.told = 0

    def tell(self) -> None:
        self.told += 1

    def resume(self) -> None:
        self.tell()
