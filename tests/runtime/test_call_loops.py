"""Calls inside loops and handlers: a task that waits for an answer keeps no other waiting."""

import asyncio
from collections import Counter
from contextlib import suppress

import ringcast
from ringcast import Message, sync
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.runtime.api.handlers import SyncOnCall
from tests.runtime.serving import drain, echo, serve, servers
from tests.runtime.support import SOON, group_name, memory, running


def test_members_that_call_each_other_inside_their_loops() -> None:
    """Neither takes messages while it waits for the other, and yet both are answered."""

    async def loop(group: ringcast.Group, other: ringcast.Address) -> None:
        async for message in group:
            if message.sender == group.me:
                replies = await group.call(b"?", to=other, timeout=SOON)
                assert replies.ok, replies[other]
                counts[group.me] += 1

    async def run() -> None:
        async with servers(2, memory()) as (a, b):
            for group in (a, b):
                await group.send_many([b"x"] * 50)
            tasks = [asyncio.create_task(loop(a, b.me)), asyncio.create_task(loop(b, a.me))]
            async with asyncio.timeout(SOON):
                while counts.total() < 100 and not any(task.done() for task in tasks):
                    await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert counts == {a.me: 50, b.me: 50}

    counts: Counter[ringcast.Address] = Counter()

    asyncio.run(run())


def test_threads_that_call_each_other_inside_their_loops() -> None:
    name = group_name()

    def loop(group: sync.Group, other: ringcast.Address) -> None:
        for _ in range(50):
            message = group.receive(timeout=SOON)
            assert message.payload == b"x"
            assert group.call(b"?", to=other, timeout=SOON).ok
        done.append(group.me)
        while len(done) < 2:  # The other one still needs answers.
            with suppress(ringcast.Timeout):
                group.receive(timeout=0.05)

    done: list[ringcast.Address] = []
    with (
        sync.join(name, memory(), on_call=echo) as a,
        sync.join(name, memory(), on_call=echo) as b,
    ):
        while len(a.view) < 2:
            next(a.events(timeout=SOON))
        a.send_many([b"x"] * 25)
        b.send_many([b"x"] * 25)
        with running(lambda: loop(a, b.me)), running(lambda: loop(b, a.me)):
            pass


def test_callers_beside_a_loop_that_waits_for_them() -> None:
    """The loop itself calls nobody, but waits for tasks that do: after a moment they see to it."""

    async def loop(group: ringcast.Group, other: ringcast.Address) -> None:
        async for message in group:
            if message.sender == group.me:
                replies = await asyncio.gather(
                    *[group.call(b"?", to=other, timeout=SOON) for _ in range(5)]
                )
                assert all(reply.ok for reply in replies)
                done.append(group.me)

    async def run() -> None:
        async with servers(2, memory()) as (a, b):
            for group in (a, b):
                await group.send(b"x")
            tasks = [asyncio.create_task(loop(a, b.me)), asyncio.create_task(loop(b, a.me))]
            async with asyncio.timeout(SOON):
                while len(done) < 2 and not any(task.done() for task in tasks):
                    await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert len(done) == 2

    done: list[ringcast.Address] = []

    asyncio.run(run())


def test_handlers_that_call_back() -> None:
    """A question leads to a question back, and that to another, as deep as it says."""
    groups: list[ringcast.Group] = []

    async def handler(message: Message) -> bytes:
        depth = int(bytes(message.payload))
        if depth == 0:
            return b"bottom"
        here = next(group for group in groups if group.me != message.sender)
        replies = await here.call(b"%d" % (depth - 1), to=message.sender, timeout=SOON)
        return bytes(replies[message.sender].payload)

    async def run() -> None:
        async with servers(2, memory(), handler) as (a, b):
            groups.extend((a, b))
            tasks = [asyncio.create_task(serve(group)) for group in (a, b)]
            replies = await a.call(b"9", to=b.me, timeout=SOON)
            assert bytes(replies[b.me].payload) == b"bottom"
            for task in tasks:
                task.cancel()

    asyncio.run(run())


def test_handlers_of_threads_that_call_back() -> None:
    name = group_name()
    groups: dict[ringcast.Address, sync.Group] = {}

    def handler(here: ringcast.Address) -> SyncOnCall:
        def answer(message: Message) -> bytes:
            depth = int(bytes(message.payload))
            if depth == 0:
                return b"bottom"
            replies = groups[here].call(b"%d" % (depth - 1), to=message.sender, timeout=SOON)
            return bytes(replies[message.sender].payload)

        return answer

    with sync.join(name, memory()) as a, sync.join(name, memory()) as b:
        for group in (a, b):
            groups[group.me] = group
            group.on_call(handler(group.me))
        while len(a.view) < 2:
            next(a.events(timeout=SOON))
        with running(lambda: drain(b)):
            replies = a.call(b"9", to=b.me, timeout=SOON)
            assert bytes(replies[b.me].payload) == b"bottom"
            b.leave()


def test_a_caller_inside_its_loop_keeps_no_sender_waiting() -> None:
    """b is called, but is busy with a send that waits for a, whose loop waits for b's answer."""
    spec = memory().replace(NakAck4(capacity=16))

    async def busy(group: ringcast.Group) -> None:
        async for message in group:
            if message.payload == b"go":
                await group.send_many([b"x"] * 200, timeout=SOON)

    async def run() -> None:
        async with servers(2, spec) as (a, b):
            task = asyncio.create_task(busy(b))
            await a.send(b"go")
            async for message in a:
                if message.payload == b"go":
                    assert (await a.call(b"?", to=b.me, timeout=SOON)).ok
                    break
            task.cancel()

    asyncio.run(run())


def test_many_calls_at_once() -> None:
    async def run() -> None:
        async with servers(3, memory()) as groups:
            tasks = [asyncio.create_task(serve(group)) for group in groups]
            calls = [group.call(b"%d" % n, timeout=SOON) for n in range(200) for group in groups]
            for replies in await asyncio.gather(*calls):
                assert replies.ok
                assert len(replies) == 3
            for task in tasks:
                task.cancel()

    asyncio.run(run())
