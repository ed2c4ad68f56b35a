"""Thousands of calls at once: they cost linear time, wait their turn, and end whatever happens."""

import asyncio
from collections import Counter
from unittest.mock import patch

import pytest

import ringcast
from ringcast import Message, Outcome, Timeout
from ringcast.runtime.member import services
from tests.runtime.serving import serve, servers
from tests.runtime.support import SOON, memory

CALLS = 2_000


async def slow_echo(message: Message) -> bytes:
    """Answer some turns of the loop later, so that many handlers run at once."""
    for _ in range(5):
        await asyncio.sleep(0)
    return message.payload


async def call_until_answered(group: ringcast.Group, payload: bytes, seen: Counter[Outcome]) -> int:
    """A plain retry: again while a member is busy; the number of members that answered."""
    while True:
        replies = await group.call(payload, timeout=120.0)
        seen.update(reply.outcome for reply in replies.values())
        if not any(reply.outcome is Outcome.BUSY for reply in replies.values()):
            assert all(answer == payload for answer in replies.answers.values())
            return len(replies.answers)
        await asyncio.sleep(0)


@pytest.mark.slow
def test_six_thousand_calls_end_well_when_the_coordinator_is_killed() -> None:
    async def run() -> Counter[Outcome]:
        seen = Counter[Outcome]()
        async with servers(3, memory(), slow_echo) as groups:
            serving = [asyncio.create_task(serve(group)) for group in groups]
            coordinator = next(g for g in groups if g.me == g.view.members[0])
            calls = {
                group.name: [
                    asyncio.create_task(call_until_answered(group, b"%d" % number, seen))
                    for number in range(CALLS)
                ]
                for group in groups
            }
            while seen.total() < CALLS:
                await asyncio.sleep(0)
            await coordinator.close()
            answered = {
                name: await asyncio.gather(*tasks, return_exceptions=True)
                for name, tasks in calls.items()
            }
            for group in groups:
                results = answered[group.name]
                failed = [result for result in results if isinstance(result, BaseException)]
                if group is coordinator:
                    assert all(isinstance(error, ringcast.Closed) for error in failed)
                else:
                    assert failed == []
                    assert min(result for result in results if isinstance(result, int)) >= 2
            for group in groups:
                await group.leave()
            await asyncio.gather(*serving, return_exceptions=True)
        return seen

    seen = asyncio.run(run())
    assert seen[Outcome.VALUE] >= 2 * 2 * CALLS
    assert seen[Outcome.ERROR] == seen[Outcome.TIMED_OUT] == 0


def test_a_caller_that_is_woken_for_its_answer_looks_at_no_call_of_others() -> None:
    looked = 0

    async def run() -> None:
        async with servers(2, memory(), slow_echo) as (a, b):
            serving = [asyncio.create_task(serve(group)) for group in (a, b)]
            real = a._in_hand

            def in_hand() -> tuple[ringcast.Event, ...]:
                nonlocal looked
                looked += 1
                return real()

            with patch.object(a, "_in_hand", in_hand):
                calls = [a.call(b"%d" % number, to=b.me, timeout=SOON) for number in range(500)]
                for replies in await asyncio.gather(*calls):
                    assert replies.ok
            await a.leave()
            await b.leave()
            await asyncio.gather(*serving)

    asyncio.run(run())
    assert looked == 0


def test_callers_beyond_the_limit_wait_their_turn() -> None:
    async def run() -> None:
        async with servers(2, memory(), slow_echo) as (a, b):
            serving = [asyncio.create_task(serve(group)) for group in (a, b)]
            calls = [a.call(b"%d" % number, to=b.me, timeout=SOON) for number in range(100)]
            assert all(replies.ok for replies in await asyncio.gather(*calls))
            for group in (a, b):
                await group.leave()
            await asyncio.gather(*serving)

    with patch.object(services, "CALLS_MAX", 8):
        asyncio.run(run())


def test_a_caller_that_gets_no_turn_in_time_is_told_why() -> None:
    async def run() -> None:
        async with servers(2, memory(), slow_echo) as (a, b):  # Nothing serves: b never answers.
            first = asyncio.create_task(a.call(b"first", to=b.me, timeout=SOON))
            await asyncio.sleep(0)
            with pytest.raises(Timeout, match="calls of this member wait for answers"):
                await a.call(b"second", to=b.me, timeout=0.05)
            first.cancel()

    with patch.object(services, "CALLS_MAX", 1):
        asyncio.run(run())


def test_a_member_with_too_many_handlers_says_that_it_is_busy() -> None:
    async def run() -> Counter[Outcome]:
        async with servers(2, memory(), slow_echo) as (a, b):
            serving = [asyncio.create_task(serve(group)) for group in (a, b)]
            calls = [a.call(b"%d" % number, to=b.me, timeout=SOON) for number in range(50)]
            outcomes = Counter(replies[b.me].outcome for replies in await asyncio.gather(*calls))
            for group in (a, b):
                await group.leave()
            await asyncio.gather(*serving)
            return outcomes

    with patch("ringcast.runtime.api.services_aio.HANDLERS_MAX", 4):
        outcomes = asyncio.run(run())
    assert set(outcomes) == {Outcome.VALUE, Outcome.BUSY}
