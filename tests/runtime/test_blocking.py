"""Bounded blocking in a real group: `send` waits as long as the stack allows, and says for whom."""

import asyncio
import math
import time

import pytest

import ringcast
from ringcast import presets, sync
from tests.runtime.support import (
    SOON,
    come_back,
    group_name,
    members,
    memory,
    multicast,
    numbered,
    running,
    take_bytes,
)

TIMES = "1000:50,10000:200"
TRANSPORTS = pytest.mark.parametrize("kind", ["memory", "multicast"])


@TRANSPORTS
def test_a_send_that_is_given_no_time_takes_what_the_stack_allows(kind: str) -> None:
    with members(2, kind, capacity=10, max_block_times=TIMES) as (a, b):
        a.send_many(numbered("x", 10))
        assert take_bytes(a, 10) == numbered("x", 10)
        come_back(a)
        for size, seconds in ((1_000, 0.05), (5_000, 0.2)):
            start = time.monotonic()
            with pytest.raises(ringcast.Timeout) as failure:
                a.send(bytes(size))
            assert time.monotonic() - start >= seconds
            assert failure.value.waits_for == ("m1",)
            assert failure.value.sent == 0
            assert f"not sent within {seconds:g} seconds" in str(failure.value)
        assert take_bytes(b, 10) == numbered("x", 10)
        come_back(b)
        a.send(b"now there is room")
        assert take_bytes(b, 1) == [b"now there is room"]


def test_it_says_how_much_of_a_run_was_sent() -> None:
    with members(2, "memory", capacity=10, max_block_times=TIMES) as (a, b):
        with pytest.raises(ringcast.Timeout) as failure:
            a.send_many(numbered("x", 25))
        assert failure.value.sent == 10
        assert take_bytes(b, 10) == numbered("x", 10)
        come_back(b)


def test_a_time_that_a_call_is_given_goes_before_the_stack() -> None:
    with members(2, "memory", capacity=10, max_block_times=TIMES) as (a, b):
        a.send_many(numbered("x", 10))
        assert take_bytes(a, 10) == numbered("x", 10)
        come_back(a)
        with pytest.raises(ringcast.Timeout, match=r"within 0\.3 seconds"):
            a.send(b"late", timeout=0.3)
        with running(lambda: a.send(b"in time", timeout=math.inf)):
            while not a.stats()["blocked_senders"]:
                pass
            assert take_bytes(b, 11)[-1] == b"in time"


def test_a_run_that_makes_progress_has_all_the_time_it_needs() -> None:
    with members(2, "memory", capacity=10, max_block_times="1000:100") as (a, b):

        def take(group: sync.Group) -> None:
            for _ in range(3_000):
                group.receive(timeout=SOON)

        with running(lambda: take(a)), running(lambda: take(b)):
            a.send_many(numbered("x", 3_000))


def test_tasks_wait_no_longer_than_the_stack_allows() -> None:
    async def run() -> None:
        spec = memory().replace(capacity=10, max_block_times=TIMES)
        async with ringcast.join(group_name(), spec) as group:
            with pytest.raises(ringcast.Timeout) as failure:
                await group.send_many(numbered("x", 25))
            assert failure.value.sent == 10
            assert "own application does not take messages" in str(failure.value)

    asyncio.run(run())


def test_what_can_never_be_sent_is_refused_before_it_waits() -> None:
    with members(2, "memory", capacity=10, max_message=1_000) as (a, _):
        with pytest.raises(ringcast.Timeout):
            a.send_many(numbered("x", 20), timeout=0.05)
        with running(lambda: blocked(a)):
            while not a.stats()["blocked_senders"]:
                pass
            with pytest.raises(ringcast.TooLarge, match="1,001 bytes is larger than the 1,000"):
                a.send(bytes(1_001))
            a.close()


def test_two_members_with_credits_that_send_from_inside_their_loops_do_not_lock() -> None:
    """The design of 2007: the sender waits until all have answered, and all of them send."""
    quick = multicast()
    spec = presets.stable().replace(quick["discovery"], quick["failure"], memory()["transport"])
    name = group_name()
    spec = spec.replace("Flow", max_credits=2_000)
    a = sync.join(name, spec, name="a", timeout=SOON)
    b = sync.join(name, spec, name="b", timeout=SOON)

    def answer(group: sync.Group) -> None:
        sent, ends = 0, 0
        for message in group:
            if message.sender != group.me and sent < 300:
                group.send_many([bytes(500)] * 20, timeout=SOON)
                sent += 20
                if sent == 300:
                    group.send(b"end", timeout=SOON)
            ends += message.payload == b"end"
            if ends == 2:
                return

    try:
        with running(lambda: answer(a)), running(lambda: answer(b)):
            a.send(b"go")
            b.send(b"go")
    finally:
        a.close()
        b.close()


def blocked(group: sync.Group) -> None:
    with pytest.raises(ringcast.Closed):
        group.send_many(numbered("y", 20), timeout=SOON)
