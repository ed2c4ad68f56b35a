"""Members of one process over every transport: they find each other, exchange and leave."""

import asyncio

import pytest

import ringcast
from ringcast import ViewChange, sync
from tests.runtime.support import (
    SOON,
    SPECS,
    await_view,
    come_back,
    group_name,
    members,
    numbered,
    running,
    take,
    take_bytes,
)

KINDS = pytest.mark.parametrize("kind", SPECS)


@KINDS
def test_everybody_gets_everything_in_the_order_of_its_sender(kind: str) -> None:
    with members(3, kind) as groups:
        for group in groups:
            group.send_many(numbered(group.name, 1_000))
        for group in groups:
            got: dict[ringcast.Address, list[bytes]] = {}
            for message in take(group, 3_000):
                got.setdefault(message.sender, []).append(bytes(message.payload))
            assert got == {g.me: numbered(g.name, 1_000) for g in groups}


@KINDS
def test_single_messages_keep_their_order(kind: str) -> None:
    with members(2, kind) as (a, b):
        for payload in numbered("x", 500):
            a.send(payload)
        assert take_bytes(b, 500) == numbered("x", 500)
        assert take_bytes(a, 500) == numbered("x", 500)


@KINDS
def test_a_message_for_one_member_reaches_only_that_one(kind: str) -> None:
    with members(3, kind) as (a, b, c):
        a.send(b"psst", to=b.me)
        a.send(b"all")
        assert sorted(take_bytes(b, 2)) == [b"all", b"psst"]
        assert take_bytes(c, 1) == [b"all"]


@KINDS
def test_a_large_message_arrives_whole(kind: str) -> None:
    payload = bytes(range(256)) * 12_000
    with members(2, kind) as (a, b), running(lambda: a.send(payload)):
        (message,) = take(b, 1)
        assert message.payload == payload
        assert len(take(a, 1)[0].payload) == len(payload)


@KINDS
def test_who_leaves_is_out_of_the_view_and_its_loop_ends(kind: str) -> None:
    with members(3, kind) as (a, b, c):
        c.send(b"farewell")
        for group in (a, b):
            assert take_bytes(group, 1) == [b"farewell"]
            come_back(group)
        c.leave()
        for group in (a, b):
            await_view(group, 2)
            assert c.me not in group.view
        assert c.closed == "left"
        assert [bytes(message.payload) for message in c] == [b"farewell"]


@KINDS
def test_the_coordinator_leaves(kind: str) -> None:
    with members(3, kind) as (a, b, c):
        assert b.view.coordinator == a.me
        a.leave()
        await_view(b, 2)
        await_view(c, 2)
        assert b.view == c.view
        b.send(b"on")
        assert take_bytes(c, 1) == [b"on"]


@KINDS
def test_messages_of_before_a_view_are_delivered_before_it(kind: str) -> None:
    with members(2, kind) as (a, b):
        a.send_many(numbered("x", 100))
        count = 0
        with running(a.leave):
            for event in b.events(timeout=SOON):
                if isinstance(event, ViewChange) and len(event.view) == 1:
                    break
                count += len(event) if isinstance(event, ringcast.Batch) else 0
        assert count == 100


def test_members_that_start_together_form_one_group() -> None:
    name = group_name()

    async def run() -> None:
        spec = SPECS["multicast"](None)
        joins = [ringcast.join(name, spec, timeout=SOON) for _ in range(8)]
        groups = await asyncio.gather(*joins)
        try:
            for group in groups:
                if len(group.view) < 8:
                    async for event in group.events(timeout=SOON):
                        if isinstance(event, ViewChange) and len(event.view) == 8:
                            break
            assert len({group.view for group in groups}) == 1
        finally:
            await asyncio.gather(*(group.close() for group in groups))

    asyncio.run(run())


def test_groups_with_different_names_do_not_hear_each_other() -> None:
    with members(2, "multicast") as (a, b), members(1, "multicast") as (c,):
        a.send(b"for us")
        assert take_bytes(b, 1) == [b"for us"]
        with pytest.raises(ringcast.Timeout, match="nothing arrived within"):
            c.receive(timeout=0.2)
        assert len(c.view) == 1


def test_the_same_name_comes_back_as_a_new_member() -> None:
    name, spec = group_name(), SPECS["multicast"](None)
    with sync.join(name, spec, name="a") as a:
        former = sync.join(name, spec, name="b")
        await_view(a, 2)
        former.leave()
        await_view(a, 1)
        with sync.join(name, spec, name="b") as b:
            await_view(a, 2)
            assert b.me != former.me
            a.send(b"hello")
            assert take_bytes(b, 1) == [b"hello"]
