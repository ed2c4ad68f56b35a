"""Calls in real groups: handlers run in the application's own loop or thread, and nobody hangs."""

import asyncio
import logging
import os
import signal
from typing import cast

import pytest

import ringcast
from ringcast import Message, Outcome, Replies, sync
from ringcast.layers.faults import Faults
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.unicast.settings import Unicast
from ringcast.runtime.api.handlers import OnCall
from tests.runtime.members import processes
from tests.runtime.serving import drain, echo, serve, servers
from tests.runtime.support import SOON, SPECS, come_back, group_name, memory, running

# What a call gives --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPECS)
def test_all_members_answer_a_call(kind: str) -> None:
    async def run() -> Replies:
        name = group_name()
        async with ringcast.join(name, SPECS[kind](None), on_call=echo) as a:
            async with ringcast.join(name, SPECS[kind](a.endpoint), on_call=echo) as b:
                tasks = [asyncio.create_task(serve(group)) for group in (a, b)]
                while len(a.view) < 2:
                    await asyncio.sleep(0)
                replies = await a.call(b"hello", timeout=SOON)
                assert set(replies) == {a.me, b.me}
            await b.leave()
        await asyncio.gather(*tasks)
        return replies

    replies = asyncio.run(run())
    assert replies.ok
    assert [bytes(answer) for answer in replies.answers.values()] == [b"echo:hello"] * 2


def test_the_same_without_await() -> None:
    name = group_name()
    with (
        sync.join(name, memory(), name="a", on_call=echo) as a,
        sync.join(name, memory(), name="b", on_call=echo) as b,
        running(lambda: drain(b)),
    ):
        replies = b.call(b"x", to=[a.me, b.me], timeout=0.2)
        assert replies[a.me].outcome is Outcome.TIMED_OUT, "nobody iterates a"
        assert bytes(replies[b.me].payload) == b"echo:x"
        assert a.call(b"y", to=b.me, timeout=SOON).ok
        come_back(a)  # And answers, too late.
        b.leave()


def test_a_call_is_no_message() -> None:
    async def run() -> list[bytes]:
        async with servers(2, memory()) as (a, b):
            task = asyncio.create_task(serve(b))
            await a.send(b"before")
            calling = asyncio.create_task(a.call(b"?", timeout=SOON))
            got = [bytes((await a.receive(timeout=SOON)).payload)]
            await a.send(b"after")
            got.append(bytes((await a.receive(timeout=SOON)).payload))
            assert (await calling).ok
            task.cancel()
            return got

    assert asyncio.run(run()) == [b"before", b"after"]


def test_large_questions_have_large_answers() -> None:
    async def run() -> None:
        async with servers(2, memory()) as (a, b):
            tasks = [asyncio.create_task(serve(group)) for group in (a, b)]
            question = bytes(range(256)) * 20_000
            replies = await a.call(question, to=b.me, timeout=SOON)
            assert bytes(replies[b.me].payload) == b"echo:" + question
            for task in tasks:
                task.cancel()

    asyncio.run(run())


def test_calls_get_over_loss() -> None:
    async def run() -> None:
        async with servers(3, memory().insert(Faults(loss=0.1))) as groups:
            tasks = [asyncio.create_task(serve(group)) for group in groups]
            calls = [group.call(bytes(5_000), timeout=SOON) for group in groups for _ in range(20)]
            for replies in await asyncio.gather(*calls):
                assert len(replies.answers) == 3
            for task in tasks:
                task.cancel()

    asyncio.run(run())


def test_a_handler_of_calls_may_wait() -> None:
    order: list[str] = []

    async def handler(message: Message) -> bytes:
        order.append(f"begin {bytes(message.payload).decode()}")
        if message.payload == b"slow":
            await gate.wait()
        return bytes(message.payload)

    async def run() -> None:
        async with servers(1, memory(), handler) as (a,):
            task = asyncio.create_task(serve(a))
            slow = asyncio.create_task(a.call(b"slow", timeout=SOON))
            while not order:
                await asyncio.sleep(0)
            assert (await a.call(b"quick", timeout=SOON)).ok, "one that waits keeps nobody waiting"
            gate.set()
            assert (await slow).ok
            task.cancel()

    gate = asyncio.Event()
    asyncio.run(run())
    assert order == ["begin slow", "begin quick"]


def test_a_question_cannot_put_an_error_into_words_that_harm_the_member_asked_or_the_caller() -> (
    None
):
    def fail(message: Message) -> bytes:
        raise ValueError(bytes(message.payload).decode(errors="surrogateescape"))

    async def run() -> None:
        async with servers(2, memory(), fail) as (a, b):
            task = asyncio.create_task(serve(b))
            for question in (b"\xff", b"\x1b[2J\nforged", b"x" * 10_000):
                reply = (await a.call(question, to=b.me, timeout=SOON))[b.me]
                assert reply.outcome is Outcome.ERROR
                assert reply.error.startswith("ValueError: ")
                assert reply.error.isprintable()
                assert len(reply.error) < 2_100
            task.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_that_fails_is_an_error_of_its_member(
    waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(message: Message) -> bytes:
        raise ValueError("no such price")

    async def fail_later(message: Message) -> bytes:
        await asyncio.sleep(0)
        raise ValueError("no such price")

    async def run() -> None:
        async with servers(2, memory(), fail_later if waits else fail) as (a, b):
            task = asyncio.create_task(serve(b))
            replies = await a.call(b"?", to=b.me, timeout=SOON)
            assert replies[b.me].outcome is Outcome.ERROR
            assert replies[b.me].error == "ValueError: no such price"
            assert not replies.ok
            task.cancel()

    with caplog.at_level(logging.WARNING, "ringcast"):
        asyncio.run(run())
    assert any("a handler of calls failed" in record.message for record in caplog.records)


def test_an_answer_that_is_no_bytes_is_an_error() -> None:
    wrong = cast(OnCall, lambda message: "text")

    async def run() -> None:
        async with servers(1, memory(), wrong) as (a,):
            task = asyncio.create_task(serve(a))
            replies = await a.call(b"?", timeout=SOON)
            assert "answers with bytes" in replies[a.me].error
            task.cancel()

    asyncio.run(run())


def test_who_has_no_handler_says_so_at_once() -> None:
    async def run() -> None:
        name = group_name()
        async with ringcast.join(name, memory()) as a, ringcast.join(name, memory()) as b:
            replies = await b.call(b"?", timeout=SOON)
            assert {reply.outcome for reply in replies.values()} == {Outcome.NO_HANDLER}
            a.on_call(echo)
            task = asyncio.create_task(serve(a))
            assert (await b.call(b"?", to=a.me, timeout=SOON)).ok
            task.cancel()

    asyncio.run(run())


def test_members_that_only_send_can_call() -> None:
    async def run() -> None:
        name = group_name()
        async with ringcast.join(name, memory(), on_call=echo) as server:
            task = asyncio.create_task(serve(server))
            async with ringcast.join(name, memory(), receive=False) as client:
                replies = await client.call(b"?", timeout=SOON)
                assert bytes(replies[server.me].payload) == b"echo:?"
                assert replies[client.me].outcome is Outcome.NO_HANDLER
                with pytest.raises(ringcast.LocalError, match="asks for events"):
                    client.on_call(echo)
            task.cancel()

    asyncio.run(run())


# Mistakes -----------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_call_is_said_at_once() -> None:
    async def run() -> None:
        async with servers(1, memory().replace(Unicast())) as (a,):
            with pytest.raises(ringcast.NotMember):
                await a.call(b"?", to=ringcast.Address(12345))
            with pytest.raises(ringcast.LocalError, match="wait is"):
                await a.call(b"?", wait="some")
            with pytest.raises(ringcast.TooLarge):
                await a.call(bytes(256_000_000))
            with pytest.raises(TypeError):
                await a.call("text")  # type: ignore[arg-type]
        with pytest.raises(ringcast.Closed):
            await a.call(b"?")

    asyncio.run(run())


def test_handlers_that_cannot_work_are_refused() -> None:
    async def later(message: Message) -> bytes:
        return b""

    with pytest.raises(ringcast.ConfigError, match="give a function"):
        sync.join(group_name(), memory(), on_call=b"no")  # type: ignore[arg-type]
    with pytest.raises(ringcast.ConfigError, match="receive=False"):
        sync.join(group_name(), memory(), on_call=echo, receive=False)
    with pytest.raises(ringcast.ConfigError, match="asynchronous"):
        sync.join(group_name(), memory(), on_call=later)  # type: ignore[arg-type]


def test_a_call_that_finds_no_room_says_who_is_waited_for() -> None:
    async def run() -> None:
        async with servers(2, memory().replace(NakAck4(capacity=4))) as (a, b):
            sending = asyncio.create_task(a.send_many([b"x"] * 100))
            await asyncio.sleep(0)
            with pytest.raises(ringcast.Timeout, match="not sent within") as error:
                await a.call(b"?", timeout=0.3)
            assert b.name in error.value.waits_for
            sending.cancel()

    asyncio.run(run())


def test_closing_ends_a_call() -> None:
    async def run() -> None:
        async with servers(2, memory()) as (a, b):
            calling = asyncio.create_task(a.call(b"?", to=b.me, timeout=None))
            await asyncio.sleep(0)
            await a.close()
            with pytest.raises(ringcast.Closed):
                await calling

    asyncio.run(run())


def test_a_call_can_be_cancelled() -> None:
    async def run() -> None:
        async with servers(2, memory()) as (a, b):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await a.call(b"?", to=b.me, timeout=None)
            correlator = a.stats()["services"]
            assert isinstance(correlator, dict)
            assert correlator["calls"] == 0

    asyncio.run(run())


# Crashes, in real processes -----------------------------------------------------------------------


def test_a_killed_process_is_gone() -> None:
    with (
        processes("victim") as (victim,),
        sync.join(victim.group, SPECS["multicast"](None), on_call=echo, timeout=SOON) as group,
    ):
        peer = next(member for member in group.view if member != group.me)
        victim.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, victim.pid, os.WSTOPPED)  # Until then it may still answer.
        with running(lambda: victim.signal(signal.SIGKILL)):
            replies = group.call(b"?", timeout=SOON)
    assert replies[peer].outcome is Outcome.GONE
    assert replies[group.me].ok
