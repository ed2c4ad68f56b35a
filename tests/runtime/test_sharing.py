"""Threads and tasks that read one group: each message goes to one of them, who may wait for it."""

import asyncio
import threading
from collections.abc import Callable

import ringcast
from tests.runtime.support import SOON, group_name, members, memory, numbered, running, take_bytes


def test_two_loops_share_the_messages() -> None:
    got: list[bytes] = []
    with members(1, "memory") as (group,):
        group.send_many(numbered("x", 5_000))
        with running(lambda: got.extend(take_bytes(group, 2_500))):
            got.extend(take_bytes(group, 2_500))
    assert sorted(got) == sorted(numbered("x", 5_000))


def test_who_waits_gets_what_another_thread_has_begun_to_read() -> None:
    with members(1, "memory") as (group,):
        listen, first = group._driver.listen, list[bytes]()

        def late(until: float, has_more: Callable[[], bool]) -> None:
            if not first:  # Before this one waits, another takes all that comes, and reads a part.
                group.send_many(numbered("x", 3))
                with running(lambda: first.extend(take_bytes(group, 1))):
                    pass
            listen(until, has_more)

        group._driver.listen = late  # type: ignore[method-assign]
        assert take_bytes(group, 2) == numbered("x", 3)[1:]
        assert first == numbered("x", 3)[:1]


def test_a_task_that_waits_gets_what_another_has_begun_to_read() -> None:
    async def run() -> None:
        async with ringcast.join(group_name(), memory()) as group:
            for number in range(20):
                waiting = asyncio.create_task(group.receive(timeout=SOON))
                await asyncio.sleep(0)
                await group.send_many(numbered("x", 2))
                got = {(await group.receive(timeout=SOON)).seqno, (await waiting).seqno}
                assert got == {2 * number + 1, 2 * number + 2}

    asyncio.run(run())


def test_threads_that_add_messages_cause_no_request() -> None:
    with members(2, "memory") as (a, b):

        def add() -> None:
            for _ in range(500):
                a.send(b"x")

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert len(take_bytes(b, 2_000)) == 2_000
        for thread in threads:
            thread.join()
        assert len(take_bytes(a, 2_000)) == 2_000
        counters = b.stats()["counters"]
        assert isinstance(counters, dict)
        assert counters.get("requested", 0) == 0
