"""Rows among the messages of a group: each once, for both faces of the group."""

import asyncio
from uuid import UUID

import ringcast
from ringcast import sync
from ringcast.job_rows import RowDeduplicator, Stamp
from tests.runtime.support import SOON, group_name, members, memory

ROWS = [b"a", b"b", b"c"]


def attempt() -> list[bytes]:
    """The messages of an attempt."""
    return Stamp(UUID(int=1), 0, 0).messages(ROWS)


def test_threads_see_each_row_once() -> None:
    with members(2, "memory") as (sender, receiver):
        sender.send_many([b"before", *attempt()[:2], b"between", *attempt()])
        deduplicator = RowDeduplicator()
        rows = sync.rows(receiver, deduplicator)
        assert [next(rows).value for _ in ROWS] == ROWS
        assert deduplicator.repeats == 2


def test_tasks_see_each_row_once() -> None:
    async def run() -> list[bytes]:
        name = group_name()
        receiver = await ringcast.join(name, memory())
        sender = await ringcast.join(name, memory(), receive=False)
        await sender.send_many([b"before", *attempt()[:2], b"between", *attempt()])
        rows = ringcast.rows(receiver)
        seen = [bytes((await anext(rows)).value) for _ in ROWS]
        await sender.close()
        await receiver.close()
        return seen

    assert asyncio.run(asyncio.wait_for(run(), SOON)) == ROWS
