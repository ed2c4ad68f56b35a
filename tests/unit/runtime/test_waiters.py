"""Threads and tasks that wait, told from anywhere, once or more often."""

import asyncio
import threading

from ringcast.runtime.waiters import TaskWaiter, ThreadWaiter


def test_a_thread_is_told() -> None:
    waiter = ThreadWaiter()
    assert not waiter.wait(0.0)
    waiter.tell()
    waiter.tell()
    assert waiter.wait(None)
    assert waiter.who == threading.get_ident()


def test_a_task_is_told_from_its_own_loop_and_from_a_thread() -> None:
    async def run() -> None:
        for from_thread in (False, True):
            waiter = TaskWaiter()
            assert waiter.who is asyncio.current_task()
            assert not await waiter.wait(0.001)
            waiter = TaskWaiter()
            if from_thread:
                await asyncio.to_thread(waiter.tell)
            else:
                waiter.tell()
            waiter.tell()
            assert await waiter.wait(10.0)
            assert await waiter.wait(None)

    asyncio.run(run())


def test_a_task_whose_loop_is_gone_is_told_in_vain() -> None:
    async def run() -> TaskWaiter:
        return TaskWaiter()

    asyncio.run(run()).tell()
