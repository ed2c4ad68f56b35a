"""States in real groups: a newcomer has what the others have, whatever happens on the way."""

import asyncio
import json
import random
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

import ringcast
from ringcast import Batch, ViewChange, sync
from ringcast.core.model.batch import Payload
from ringcast.layers.faults import Faults
from ringcast.layers.unicast.settings import Unicast
from tests.runtime.serving import drain, serve
from tests.runtime.support import (
    SOON,
    SPECS,
    come_back,
    group_name,
    memory,
    multicast,
    running,
    take_bytes,
)


class Ledger:
    """A replicated application: how much each sender has said, and the sum of it."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}
        self.count = 0

    def apply(self, batch: Batch) -> None:
        for message in batch:
            sender = str(message.sender)
            self.sums[sender] = self.sums.get(sender, 0) * 31 % 1_000_003 + int(message.payload)
            self.count += 1

    def snapshot(self) -> bytes:
        return json.dumps([self.count, self.sums]).encode()

    def load(self, state: bytes | None) -> None:
        if state is not None:
            self.count, self.sums = json.loads(state)


# What a newcomer gets -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPECS)
def test_a_newcomer_gets_the_state_and_what_follows(kind: str) -> None:
    async def run() -> None:
        name, prices = group_name(), {"x": 1}
        first = ringcast.join(
            name, SPECS[kind](None), on_state_request=lambda: json.dumps(prices).encode()
        )
        async with first as a:

            async def serve() -> None:
                async for message in a:
                    prices.update(json.loads(bytes(message.payload)))

            task = asyncio.create_task(serve())
            await a.send(b'{"y": 2}')
            while "y" not in prices:
                await asyncio.sleep(0)
            async with ringcast.join(name, SPECS[kind](a.endpoint), state=True) as b:
                state = await b.state(timeout=SOON)
                assert state is not None
                assert json.loads(state) == {"x": 1, "y": 2}
                await a.send(b'{"z": 3}')
                message = await b.receive(timeout=SOON)
                assert json.loads(bytes(message.payload)) == {"z": 3}
            task.cancel()

    asyncio.run(run())


def test_the_same_without_await() -> None:
    name = group_name()
    with (
        sync.join(name, memory(), on_state_request=lambda: [b"ab", b"cd"]) as a,
        running(lambda: drain(a)),
    ):
        with sync.join(name, memory(), state=True) as b:
            assert b.state(timeout=SOON) == b"abcd"
            b.send(b"x")
            assert take_bytes(b, 1) == [b"x"]
        a.leave()


@pytest.mark.parametrize(("loss", "is_ordered"), [(0.0, False), (0.1, False), (0.1, True)])
@pytest.mark.parametrize("seed", range(3))
def test_newcomers_under_load_end_up_with_the_same(
    seed: int, loss: float, is_ordered: bool
) -> None:
    """Two members talk all the time, and others join: in the end all have the same."""
    dice, name, total, count = random.Random(seed), group_name(), 20_000, 5
    ledgers = [Ledger() for _ in range(count)]
    ready = [threading.Event() for _ in range(count)]
    spec = multicast().insert(Faults(loss=loss))
    spec = spec.with_total_order() if is_ordered else spec

    def member(number: int) -> None:
        ledger = ledgers[number]
        with sync.join(
            name,
            spec,
            name=f"m{number}",
            timeout=SOON,
            state=True,
            on_state_request=ledger.snapshot,
        ) as group:
            ledger.load(group.state(timeout=SOON))
            ready[number].set()
            if number < 2:
                with running(lambda: talk(group)):
                    follow(group, ledger)
            else:
                follow(group, ledger)

    def talk(group: sync.Group) -> None:
        for begin in range(0, total // 2, 100):
            group.send_many([b"%d" % (begin + n) for n in range(100)], timeout=SOON)

    def follow(group: sync.Group, ledger: Ledger) -> None:
        """Until all have got everything: newcomers need a member to ask."""
        while any(ledger.count < total for ledger in ledgers):
            with suppress(ringcast.Timeout):
                for batch in group.batches(timeout=0.1):
                    ledger.apply(batch)

    with ExitStack() as threads:
        for number in [0, 1, *dice.sample([2, 3, 4], 3)]:
            threads.enter_context(running(partial(member, number)))
            if number < 2:
                assert ready[number].wait(SOON)
    assert {ledger.count for ledger in ledgers} == {total}
    assert all(ledger.sums == ledgers[0].sums for ledger in ledgers)


def test_the_state_is_taken_when_the_application_has_come_there() -> None:
    """What the provider has in hand and not yet worked through is no part of its state."""
    name, seen = group_name(), list[bytes]()
    with sync.join(name, memory(), on_state_request=lambda: b",".join(seen)) as a:
        a.send_many([b"1", b"2", b"3"])
        events = a.events(timeout=SOON)
        assert isinstance(next(events), ViewChange)
        batch = next(events)
        assert isinstance(batch, Batch)  # In hand: three messages.
        with sync.join(name, memory(), state=True) as b:
            with pytest.raises(ringcast.Timeout, match="has not begun: check that its application"):
                b.state(timeout=0.2)
            seen.extend(map(bytes, batch.payloads))
            with running(lambda: drain_into(a, seen)):
                assert b.state(timeout=SOON) == b"1,2,3"
                a.send(b"4")
                assert take_bytes(b, 1) == [b"4"]
                come_back(b)
                a.leave()


def drain_into(group: sync.Group, seen: list[bytes]) -> None:
    for message in group:
        seen.append(bytes(message.payload))


def test_a_generator_copies_before_its_first_chunk() -> None:
    """The provider's generator runs up to its first chunk in its place, and goes on later."""
    name, items = group_name(), [b"old"]
    asked, changed = threading.Event(), threading.Event()

    def give() -> Iterator[bytes]:
        copy = list(items)
        asked.set()
        yield b"["
        assert changed.wait(SOON)
        yield from copy
        yield b"]"

    with sync.join(name, memory(), on_state_request=give) as a:

        def serve() -> None:
            for message in a:
                items.append(bytes(message.payload))
                changed.set()

        with running(serve), sync.join(name, memory(), state=True) as b:
            assert asked.wait(SOON)
            a.send(b"new")
            assert b.state(timeout=SOON) == b"[old]"
            assert take_bytes(b, 1) == [b"new"]
            come_back(b)
            a.leave()


def test_asynchronous_handlers_and_chunks() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(0)
            yield b"%d" % number

    async def give() -> AsyncIterator[bytes]:
        await asyncio.sleep(0)
        return chunks()

    async def run() -> bytes | None:
        name = group_name()
        async with ringcast.join(name, memory(), on_state_request=give) as a:
            task = asyncio.create_task(serve(a))
            async with ringcast.join(name, memory(), state=True) as b:
                state = await b.state(timeout=SOON)
            task.cancel()
            return state

    assert asyncio.run(run()) == b"012"


# Large states -------------------------------------------------------------------------------------


def test_a_large_state_is_never_in_memory_as_a_whole() -> None:
    name, size = group_name(), 200_000_000
    chunk = bytes(1_000_000)
    received = 0

    def give() -> Iterator[bytes]:
        for _ in range(size // len(chunk)):
            yield chunk

    def load(chunks: Iterator[Payload]) -> int:
        nonlocal received
        for piece in chunks:
            received += len(piece)
        return received

    with sync.join(name, multicast(), on_state_request=give) as a, running(lambda: drain(a)):
        tracemalloc.start()
        try:
            with sync.join(name, multicast(), state=True) as b:
                assert b.state(load, timeout=60.0) == size
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        a.leave()
    assert peak < 40_000_000


def test_the_provider_is_never_far_ahead_of_the_reader() -> None:
    name, made, ahead = group_name(), 0, 0

    def give() -> Iterator[bytes]:
        nonlocal made
        for _ in range(1_000):
            made += 100_000
            yield bytes(100_000)

    def load(chunks: Iterator[Payload]) -> int:
        nonlocal ahead
        received = 0
        for piece in chunks:
            received += len(piece)
            ahead = max(ahead, made - received)
        return received

    spec = memory().replace(Unicast(max_bytes=1_000_000))
    with sync.join(name, spec, on_state_request=give) as a, running(lambda: drain(a)):
        with sync.join(name, spec, state=True) as b:
            assert b.state(load, timeout=60.0) == 100_000_000
        a.leave()
    assert ahead < 4_000_000, "a window under way, one in hand, and what is being made"


# When there is none -------------------------------------------------------------------------------


def test_the_first_member_has_none() -> None:
    with sync.join(group_name(), memory(), state=True) as group:
        assert group.state(timeout=SOON) is None
        group.send(b"x")
        assert take_bytes(group, 1) == [b"x"]


def test_a_state_that_no_member_has_is_none() -> None:
    name = group_name()
    with (
        sync.join(name, memory()) as a,
        sync.join(name, memory(), on_state_request=lambda: None) as b,
        running(lambda: drain(b)),
        sync.join(name, memory(), state=True) as c,
    ):
        assert c.state(timeout=SOON) is None
        assert len(c.view) == 3
        a.send(b"x")
        assert take_bytes(c, 1) == [b"x"]
        b.leave()


def test_who_wants_no_state_gets_none() -> None:
    with sync.join(group_name(), memory()) as group, pytest.raises(ringcast.LocalError):
        group.state()
    with pytest.raises(ringcast.ConfigError, match="receive=False"):
        sync.join(group_name(), memory(), state=True, receive=False)


def test_a_newcomer_must_take_the_state_first() -> None:
    name, gate = group_name(), threading.Event()

    def give() -> bytes:
        gate.wait(SOON)
        return b"state"

    with sync.join(name, memory(), on_state_request=give) as a, running(lambda: drain(a)):
        with sync.join(name, memory(), state=True) as b:
            with pytest.raises(ringcast.LocalError, match="take the state first"):
                b.receive()
            gate.set()
            assert b.state(timeout=SOON) == b"state"
            with pytest.raises(ringcast.LocalError, match="once"):
                b.state()
        a.leave()
