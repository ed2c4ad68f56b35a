"""What a message costs in two whole stacks, sender and receiver, with no sockets between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

from ringcast import StackSpec, presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.stack.stack import Stack
from ringcast_bench.micro.timing import Case, Work

TAKE_MAX = 1_024
STEPS_MAX = 10_000
"""Steps within which two stacks have to find each other."""


def cases(messages: int) -> Iterator[Case]:
    """Streams in runs and one by one, to all members and to one."""
    for size, length in ((1_000, 512), (100, 512), (100, 1)):
        count = messages if length > 1 else messages // 20
        words = f"{size:,} bytes, " + (f"runs of {length}" if length > 1 else "one by one")
        yield Case(f"ladder: multicast, {words}", partial(_prepare, size, length, count, False))
        yield Case(f"ladder: unicast, {words}", partial(_prepare, size, length, count, True))


def _prepare(size: int, length: int, count: int, to_one: bool) -> Work:
    pair = Pair(presets.lan())
    payloads = [b"x" * size] * length
    to = pair.two.env.me if to_one else None

    def work() -> int:
        pair.stream(payloads, count, to)
        return count

    return work


class Pair:
    """Two members, one of which sends; time stands still while there is something to do."""

    def __init__(self, spec: StackSpec) -> None:
        self.now = 0.0
        self.one = spec.build(Peer(Address(1), "one", "one"), "micro", Random(1))
        self.two = spec.build(Peer(Address(2), "two", "two"), "micro", Random(2))
        self.one.start(0.0)
        self.two.start(0.0)
        for _ in range(STEPS_MAX):
            self._take()
            if all(stack.view is not None and len(stack.view) == 2 for stack in self._both):
                return
            self.wait()
        raise AssertionError("the two stacks do not find each other")

    def stream(self, payloads: list[bytes], count: int, to: Address | None) -> None:
        """Send this many messages, and let the other member dequeue them."""
        taken = self.taken + count
        while count:
            sent = self.one.send(
                payloads[:count] if count < len(payloads) else payloads, to, self.now
            )
            count -= sent
            self._take()
            if not sent:
                self.wait()
        while self.taken < taken:
            self.wait()

    def wait(self) -> None:
        """Let time pass until one of them has something to do."""
        self.now = min(stack.deadline for stack in self._both)
        for stack in self._both:
            stack.wake(self.now)
        self._take()

    taken = 0
    """Messages that the second one's application has had."""

    @property
    def _both(self) -> tuple[Stack, Stack]:
        return self.one, self.two

    def _take(self) -> None:
        """Pass on what was sent, and take what came, until there is no more of either."""
        while self._pass(self.one, self.two) | self._pass(self.two, self.one):
            pass
        for stack in self._both:
            while events := stack.take(TAKE_MAX, self.now):
                if stack is self.two:
                    self.taken += sum(len(event) for event in events if isinstance(event, Batch))
                stack.consumed(self.now)
        while self._pass(self.one, self.two) | self._pass(self.two, self.one):
            pass

    def _pass(self, source: Stack, target: Stack) -> bool:
        datagrams = source.drain()
        source.learned.clear()
        if datagrams:
            target.receive([b"".join(datagram.buffers) for datagram in datagrams], self.now)
        return bool(datagrams)
