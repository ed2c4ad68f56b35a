"""Threads and tasks that wait, told from anywhere, once or more often."""

import asyncio
import threading
from contextvars import ContextVar

from ringcast.runtime.loop.waiters import TaskWaiter, ThreadWaiter


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


def resumed_by_the_loop(timeout: float | None) -> list[str]:
    """What happened in which order, when a loop's callback resumed a task that waits."""
    order: list[str] = []
    name = ContextVar("name", default="the loop's")

    async def wait(begun: asyncio.Future[TaskWaiter]) -> None:
        name.set("the task's")
        waiter = TaskWaiter()
        begun.set_result(waiter)
        assert await waiter.wait(timeout)
        order.append(f"{name.get()} own context")

    def call(waiter: TaskWaiter) -> None:
        order.append("called")
        waiter.resume()
        order.append(f"back in {name.get()}")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[TaskWaiter] = loop.create_future()
        task = asyncio.create_task(wait(begun))
        loop.call_soon(call, await begun)
        await task

    asyncio.run(run())
    return order


def test_a_task_goes_on_within_the_call_of_its_loop() -> None:
    assert resumed_by_the_loop(None) == ["called", "the task's own context", "back in the loop's"]


def test_a_task_that_waits_for_some_time_only_goes_on_as_well() -> None:
    assert sorted(resumed_by_the_loop(10.0)) == sorted(resumed_by_the_loop(None))


def test_a_task_that_is_resumed_by_another_task_or_thread_goes_on_later() -> None:
    async def run(from_thread: bool) -> None:
        waiter = TaskWaiter()
        task = asyncio.create_task(waiter.wait(None))
        await asyncio.sleep(0)
        if from_thread:
            await asyncio.to_thread(waiter.resume)
        else:
            waiter.resume()
            assert not task.done()
        assert await task

    for from_thread in (False, True):
        asyncio.run(run(from_thread))


def test_a_task_that_was_cancelled_is_resumed_in_vain() -> None:
    async def run() -> None:
        waiter = TaskWaiter()
        task = asyncio.create_task(waiter.wait(None))
        await asyncio.sleep(0)
        task.cancel()
        asyncio.get_running_loop().call_soon(waiter.resume)
        await asyncio.wait((task,))
        assert task.cancelled()

    asyncio.run(run())


def test_a_task_whose_loop_is_gone_is_told_in_vain() -> None:
    async def run() -> TaskWaiter:
        return TaskWaiter()

    asyncio.run(run()).tell()
