"""Payloads: bytes at every size and over every transport, views where an application asks."""

import asyncio
import json

import pytest

import ringcast
from ringcast import presets, sync
from tests.runtime.support import SOON, group_name, members, memory, take

SIZES = [0, 1, 4_095, 4_096, 70_000, 9_000_000]


@pytest.mark.parametrize("kind", ["memory", "multicast", "tcp"])
def test_a_payload_is_bytes_at_every_size(kind: str) -> None:
    messages = [bytes([number]) * size for number, size in enumerate(SIZES)]
    with members(2, kind) as (a, b):
        a.send_many(messages)
        a.send(memoryview(messages[-2]))
        for group in (a, b):
            taken = [message.payload for message in take(group, len(SIZES) + 1)]
            assert [type(payload) for payload in taken] == [bytes] * len(taken)
            assert taken == [*messages, messages[-2]]


def test_batches_and_events_carry_bytes() -> None:
    large = b"x" * 50_000
    with members(1, "multicast") as (group,):
        group.send_many([large] * 3)
        seen = 0
        for batch in group.batches(timeout=SOON):
            assert {type(payload) for payload in batch.payloads} == {bytes}
            seen += len(batch)
            if seen == 3:
                break


def test_views_are_given_where_they_were_asked_for() -> None:
    large = b"x" * 9_000_000
    name, spec = group_name(), presets.loopback()
    with sync.join(name, spec, views=True) as a, sync.join(name, spec, receive=False) as b:
        b.send(large)
        (message,) = take(a, 1)
        assert type(message.payload) is not bytes
        assert memoryview(message.payload) == large


def test_questions_and_answers_are_bytes() -> None:
    asked: list[bytes] = []

    def answer(message: ringcast.Message) -> bytes:
        asked.append(message.payload)
        return message.payload

    async def run() -> None:
        async with ringcast.join(group_name(), memory(), on_call=answer) as group:
            replies = await group.call(b"q" * 50_000, timeout=SOON)
            (answered,) = replies.answers.values()
            assert type(answered) is type(asked[0]) is bytes
            assert answered == asked[0] == b"q" * 50_000

    asyncio.run(run())


def test_a_large_state_of_json_is_loaded_as_the_documentation_shows() -> None:
    """The example of docs/api.md, with a state and a message above 4 KB."""
    update = {f"key-{number}": 1.0 * number for number in range(1_000)}
    name, prices = group_name(), dict[str, float]()

    async def read(group: ringcast.Group) -> None:
        async for message in group:
            prices.update(json.loads(message.payload))

    async def run() -> None:
        first = await ringcast.join(
            name, memory(), on_state_request=lambda: json.dumps(prices).encode()
        )
        await first.send(json.dumps(update).encode())
        prices.update(json.loads((await first.receive(SOON)).payload))
        serving = asyncio.create_task(read(first))
        async with ringcast.join(name, memory(), state=True) as second:
            copy: dict[str, float] = json.loads(await second.state() or b"{}")
            assert copy == update
        serving.cancel()
        await first.leave()

    asyncio.run(run())
