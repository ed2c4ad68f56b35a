"""A round of stability by hand, and a flush of all that was sent, on real members."""

import asyncio
import threading
from random import Random

import pytest

import ringcast
from ringcast import presets, sync
from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.stack import Stack
from ringcast.errors import Closed, Timeout
from ringcast.layers.fragment.layer import Fragment
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.runtime.member.delivery_waits import (
    LOOK_SECONDS_MAX,
    LOOK_SECONDS_MIN,
    StabilityRounds,
    looks,
)
from ringcast.transports import Memory

SOON = 20.0
SPEC = presets.loopback().replace(Memory())


def stack() -> Stack:
    made = presets.stable().build(Peer(Address(1), "a", "a:1"), "group", Random(1))
    made.start(0.0)
    for n in range(1, 100):
        made.wake(n / 10)
    return made


def test_a_round_alone_ends_at_once() -> None:
    member = stack()
    assert member.view is not None
    assert StabilityRounds().look(member, 60.0) == {Address(1): 0}


def test_a_closed_group_has_no_rounds() -> None:
    member = stack()
    member.finish("test")
    with pytest.raises(Closed, match="test"):
        StabilityRounds().look(member, 60.0)


def test_there_is_one_look_without_time_and_a_last_one_at_the_end() -> None:
    assert list(looks(0.0)) == [0.0]
    short = list(looks(LOOK_SECONDS_MIN / 10))
    assert short[-1] == 0.0
    assert max(short) <= LOOK_SECONDS_MIN / 10
    assert "within 2 seconds" in str(StabilityRounds.timeout(2.0))
    pauses = looks(None)
    assert [next(pauses) for _ in range(9)][-1] == LOOK_SECONDS_MAX


def test_members_ask_for_a_round_with_and_without_an_event_loop() -> None:
    spec = presets.stable().replace(Memory())
    with ringcast.sync.join("rounds by hand", spec, receive=False) as group:
        group.send(b"x")
        assert group.stability(timeout=SOON) == {group.me: 1}

    async def main() -> None:
        async with ringcast.join("rounds by hand", spec, receive=False) as group:
            await group.send(b"x")
            assert await group.stability(timeout=SOON) == {group.me: 1}

    asyncio.run(main())


def test_a_flush_alone_returns_at_once() -> None:
    with sync.join("flush alone", SPEC) as group:
        group.send(b"x")
        group.flush(timeout=SOON)


def test_a_flush_of_a_closed_group_says_so() -> None:
    group = sync.join("flush closed", SPEC)
    group.leave()
    with pytest.raises(Closed):
        group.flush(timeout=SOON)


@pytest.mark.parametrize("preset", ["lan", "stable", "bulk"])
def test_a_flush_returns_when_the_others_have_taken_everything(preset: str) -> None:
    spec = presets.PRESETS[preset]().replace(Memory())
    with (
        sync.join(f"flush {preset}", spec, name="a", receive=False) as a,
        sync.join(f"flush {preset}", spec, name="b") as b,
    ):
        taken = list[int]()

        def take() -> None:
            for batch in b.batches():
                taken.extend(map(len, batch.payloads))

        reader = threading.Thread(target=take)
        reader.start()
        for _ in range(2_000):
            a.send(b"single")  # Some of them are gathered outside the window.
        a.send(b"large" * 100_000)
        a.send(b"to one", to=b.me)
        a.flush(timeout=SOON)
        assert len(taken) == 2_002
        b.leave()
        reader.join(SOON)


def test_a_flush_names_the_members_that_have_not_taken_what_was_sent() -> None:
    with (
        sync.join("flush late", SPEC, name="a", receive=False) as a,
        sync.join("flush late", SPEC, name="b") as b,
    ):
        a.send(b"x")
        with pytest.raises(Timeout, match="b has not taken all that was sent") as raised:
            a.flush(timeout=0.2)
        assert raised.value.waits_for == ("b",)
        assert b.receive(timeout=SOON).payload == b"x"


def test_a_flush_that_waits_for_room_names_whom_the_window_waits_for() -> None:
    spec = SPEC.replace(NakAck4(capacity=16), Fragment())
    with (
        sync.join("flush full", spec, name="a", receive=False) as a,
        sync.join("flush full", spec, name="b"),
    ):
        with pytest.raises(Timeout):
            a.send_many([b"x"] * 40, timeout=0.1)
        with pytest.raises(Timeout, match="b has not taken") as raised:
            a.flush(timeout=0.2)
        assert raised.value.waits_for == ("b",)
        assert a._member.outgoing.barriers == 0


def test_a_flush_ends_when_the_member_that_lacks_something_leaves_the_view() -> None:
    async def run() -> None:
        async with ringcast.join("flush left", SPEC, name="a", receive=False) as a:
            b = await ringcast.join("flush left", SPEC, name="b")
            await a.send(b"x")
            flush = asyncio.create_task(a.flush(timeout=SOON))
            await b.leave()
            await flush

    asyncio.run(run())


def test_a_flush_does_not_wait_for_what_is_sent_after_it() -> None:
    with (
        sync.join("flush busy", SPEC, name="a", receive=False) as a,
        sync.join("flush busy", SPEC, name="b") as b,
    ):
        is_over = threading.Event()

        def send() -> None:
            while not is_over.is_set():
                a.send(b"large" * 20_000)

        def take() -> None:
            for _ in b.batches():
                pass

        threads = [threading.Thread(target=work) for work in (send, take)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            a.flush(timeout=SOON)
        is_over.set()
        threads[0].join(SOON)
        b.leave()
        threads[1].join(SOON)
