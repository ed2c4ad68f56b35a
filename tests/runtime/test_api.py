"""The group as applications use it: its verbs, how its loops share messages, and how it ends."""

import asyncio
import logging
import threading
import time
from collections import deque
from contextlib import suppress

import pytest

import ringcast
from ringcast import Batch, ViewChange, presets, sync
from ringcast.runtime.loop.waiters import ThreadWaiter
from ringcast.transports import Memory
from tests.runtime.support import (
    SOON,
    await_view,
    come_back,
    group_name,
    members,
    memory,
    multicast,
    numbered,
    running,
    take,
    take_bytes,
    take_events,
)
from tests.runtime.waiting import block


def test_the_example_of_the_documentation() -> None:
    seen: list[object] = []

    async def run() -> None:
        async with ringcast.join(group_name(), spec=presets.loopback()) as group:
            assert group.view.members[0] == group.me
            await group.send(b"tick")
            await group.send_many([b"a", b"b", b"c"])
            await group.send(b"psst", to=group.view.members[0])
            async for message in group:
                seen.append(bytes(message.payload))
                if len(seen) == 5:
                    break
            assert isinstance(group.stats()["counters"], dict)

    asyncio.run(run())
    assert [m for m in seen if m != b"psst"] == [b"tick", b"a", b"b", b"c"]


def test_the_same_without_await() -> None:
    with sync.join(group_name(), memory(), name="me") as group:
        group.send(b"hello", timeout=2.0)
        for message in group:
            assert message == ringcast.Message(group.me, 1, b"hello")
            break
        assert group.name == "me"
    assert group.closed == "left"


def test_a_join_can_be_awaited() -> None:
    async def run() -> None:
        group = await ringcast.join(group_name(), memory())
        async with group:
            assert len(group.view) == 1

    asyncio.run(run())


# Loops --------------------------------------------------------------------------------------------


def test_a_loop_that_is_left_loses_nothing() -> None:
    with members(1, "memory") as (group,):
        group.send_many(numbered("x", 10))
        first = []
        for message in group:
            first.append(bytes(message.payload))
            if len(first) == 3:
                break
        batch = next(group.batches(timeout=SOON))
        assert first == numbered("x", 3)
        assert list(batch.payloads) == numbered("x", 10)[3:]
        assert batch.first == 4


def test_events_come_in_their_order() -> None:
    with members(1, "memory") as (group,):
        group.send(b"x")
        events = group.events(timeout=SOON)
        assert isinstance(next(events), ViewChange)
        batch = next(events)
        assert isinstance(batch, Batch)
        assert [message.payload for message in batch] == [b"x"]


def test_every_wait_has_a_timeout() -> None:
    async def run() -> None:
        async with ringcast.join(group_name(), memory()) as group:
            with pytest.raises(ringcast.Timeout, match="nothing arrived"):
                await group.receive(timeout=0.05)
            with pytest.raises(ringcast.Timeout, match="nothing arrived"):
                async for _ in group.batches(timeout=0.05):
                    pass
            with pytest.raises(ringcast.Timeout, match="nothing arrived"):
                async for _ in group.events(timeout=0.05):
                    pass

    asyncio.run(run())


def test_a_publisher_needs_no_loop() -> None:
    with (
        members(1, "memory", capacity=100) as (reader,),
        sync.join(reader._member.group, memory().replace(capacity=100), receive=False) as publisher,
    ):
        with running(lambda: publisher.send_many(numbered("x", 5_000), timeout=SOON)):
            assert take_bytes(reader, 5_000) == numbered("x", 5_000)
        come_back(reader)
        with pytest.raises(ringcast.LocalError, match="receive=False"):
            publisher.receive()


# Sending ------------------------------------------------------------------------------------------


def test_several_threads_send_at_once() -> None:
    with members(2, "multicast") as (a, b):

        def send(name: str) -> None:
            for payload in numbered(name, 300):
                a.send(payload)

        with running(lambda: send("x")), running(lambda: send("y")), running(lambda: send("z")):
            got = take_bytes(b, 900)
        for name in ("x", "y", "z"):
            assert [p for p in got if p.startswith(name.encode())] == numbered(name, 300)


def test_many_tasks_send_and_receive_in_one_loop() -> None:
    async def run() -> None:
        spec = memory().replace(capacity=64)
        name = group_name()
        async with ringcast.join(name, spec) as a, ringcast.join(name, spec) as b:
            got: list[bytes] = []

            async def read() -> None:
                async for message in b:
                    got.append(bytes(message.payload))
                    if len(got) == 2_000:
                        break

            async def drain() -> None:
                async for _ in a.batches():
                    pass

            async def send(task: str) -> None:
                for payload in numbered(task, 200):
                    await a.send(payload, timeout=SOON)

            draining = asyncio.create_task(drain())
            async with asyncio.timeout(SOON):
                await asyncio.gather(read(), *(send(str(number)) for number in range(10)))
            draining.cancel()
            for number in range(10):
                mine = [p for p in got if p.startswith(f"{number}-".encode())]
                assert mine == numbered(str(number), 200)

    asyncio.run(run())


def test_what_cannot_be_sent_is_refused_before_anything_is() -> None:
    with members(1, "memory", max_message=1_000) as (group,):
        with pytest.raises(ringcast.TooLarge):
            group.send_many([b"small", bytes(2_000)])
        with pytest.raises(ringcast.NotMember):
            group.send(b"x", to=ringcast.Address(12345))
        with pytest.raises(TypeError, match="encode it first"):
            group.send("text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="use send for one"):
            group.send_many(b"bytes")  # type: ignore[arg-type]
        group.send_many([])
        group.send(bytearray(b"fine"))
        group.send(memoryview(b"this too"))
        assert take_bytes(group, 2) == [b"fine", b"this too"]


def test_a_slow_application_slows_its_senders() -> None:
    with members(2, "memory", capacity=10) as (a, b):
        a.send_many(numbered("x", 10))
        assert take_bytes(a, 10) == numbered("x", 10)
        come_back(a)
        with pytest.raises(ringcast.Timeout) as failure:
            a.send_many(numbered("y", 3), timeout=0.3)
        assert "m1 did not take what was sent" in str(failure.value)
        assert a.stats()["waits_for"] == ["m1"]
        assert take_bytes(b, 10) == numbered("x", 10)
        with running(lambda: a.send(b"go on", timeout=SOON)):
            assert take_bytes(b, 1) == [b"go on"]


def test_a_timeout_says_how_many_were_sent() -> None:
    with members(2, "memory", capacity=10) as (a, b):
        with pytest.raises(ringcast.Timeout, match="10 of 25 messages were sent"):
            a.send_many(numbered("x", 25), timeout=0.2)
        assert take_bytes(b, 10) == numbered("x", 10)


def test_a_task_that_is_cancelled_while_it_waits_sends_no_more() -> None:
    async def run() -> None:
        async with ringcast.join(group_name(), memory().replace(capacity=10)) as group:
            task = asyncio.create_task(group.send_many(numbered("x", 20)))
            while not group.stats()["blocked_senders"]:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not group.stats()["blocked_senders"]

    asyncio.run(run())


def test_an_application_that_never_takes_messages_is_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with members(1, "memory", capacity=10) as (group,):
        group._member.incoming.visited = float("-inf")
        with (
            caplog.at_level(logging.WARNING, "ringcast"),
            pytest.raises(ringcast.Timeout, match="own application does not take messages"),
        ):
            group.send_many(numbered("x", 20), timeout=1.5)
    assert [r.message for r in caplog.records if "join with receive=False" in r.message]


def test_two_members_that_send_from_inside_their_loops_do_not_block_each_other() -> None:
    with members(2, "memory", capacity=8) as (a, b):

        def answer(group: sync.Group) -> None:
            sent, ends = 0, 0
            for message in group:
                if message.sender != group.me and sent < 300:
                    group.send_many([b"answer"] * 20, timeout=SOON)
                    sent += 20
                    if sent == 300:
                        group.send(b"end", timeout=SOON)
                ends += message.payload == b"end"
                if ends == 2:
                    return

        with running(lambda: answer(a)), running(lambda: answer(b)):
            a.send(b"go")
            b.send(b"go")


# Ending -------------------------------------------------------------------------------------------


def test_a_blocked_sender_gets_closed_at_once() -> None:
    with members(2, "memory", capacity=10) as (a, _):
        failures: list[BaseException] = []
        begun = threading.Event()

        def send() -> None:
            try:
                begun.set()
                a.send_many(numbered("x", 100))
            except ringcast.Closed as error:
                failures.append(error)

        with running(send):
            begun.wait(SOON)
            while not a.stats()["blocked_senders"]:
                pass
            start = time.monotonic()
            a.close()
        assert time.monotonic() - start < 1.0
        assert "10 of 100 messages were sent" in str(failures[0])


def test_a_thread_that_comes_to_wait_when_all_is_closed_goes_on_at_once() -> None:
    group = sync.join(group_name(), presets.loopback().replace(Memory()))
    group.close()
    group._driver.wait(ThreadWaiter(), float("inf"))


def test_a_waiting_loop_ends_when_the_group_is_left() -> None:
    with members(1, "memory") as (group,):
        with running(lambda: deque(group, 0).clear()):
            group.leave()
        with pytest.raises(ringcast.Closed):
            group.send(b"x")
        with pytest.raises(ringcast.Closed, match="the group is left"):
            group.receive()


def test_a_member_that_fails_says_why_and_lets_everybody_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        group = await ringcast.join(group_name(), memory())
        group._member.transport.close()  # As if the descriptors were gone.
        with pytest.raises(ringcast.Closed, match="the member failed"):
            await group.receive(timeout=SOON)
        with pytest.raises(ringcast.Closed, match="the member failed"):
            await group.send(b"x")
        await group.leave()

    with caplog.at_level(logging.CRITICAL, "ringcast"):
        asyncio.run(run())


def test_an_error_in_the_application_stops_nothing() -> None:
    with members(2, "memory") as (a, b):
        a.send_many([b"bad", b"good"])
        with suppress(ZeroDivisionError):
            for _ in b:
                1 / 0  # noqa: B018
        assert take_bytes(b, 1) == [b"good"]
        assert len(a.view) == 2


def test_an_event_loop_that_is_blocked_is_not_suspected() -> None:
    """It attends to its member itself until it is blocked: then the driver's thread steps in."""
    with members(1, "multicast", capacity=50) as (other,):

        async def run() -> list[bytes]:
            spec = multicast().replace(capacity=50)
            async with ringcast.join(other._member.group, spec, timeout=SOON) as group:
                await group.receive(timeout=SOON)
                block(3.0)  # Several times the silence that gets one suspected.
                return [bytes((await group.receive(timeout=SOON)).payload) for _ in range(500)]

        got: list[bytes] = []
        with running(lambda: got.extend(asyncio.run(run()))):
            await_view(other, 2)
            other.send(b"first")
            with running(lambda: other.send_many(numbered("x", 500), timeout=SOON)):
                seen = take_events(other, 501)
        assert got == numbered("x", 500)
        assert all(isinstance(event, Batch) for event in seen), "nobody was suspected meanwhile"


def test_nothing_is_left_behind_when_a_group_is_left() -> None:
    before = {thread.name for thread in threading.enumerate()}
    with members(3, "tcp") as groups:
        groups[0].send(b"x")
        take(groups[1], 1)
    assert {thread.name for thread in threading.enumerate()} <= before


def test_messages_that_were_noted_down_are_sent_before_leaving() -> None:
    with members(2, "multicast") as (a, b):

        def send() -> None:
            for payload in numbered("x", 1_000):
                a.send(payload)
            a.leave()

        with running(send):
            assert take_bytes(b, 1_000) == numbered("x", 1_000)
            for _ in b.events(timeout=SOON):
                if len(b.view) == 1:
                    break


def test_a_stack_needs_a_transport() -> None:
    with pytest.raises(ringcast.ConfigError, match="insert Udp"):
        sync.join(group_name(), presets.loopback().without("transport"))
    assert isinstance(memory()["transport"], Memory)
