"""Waiters: a thread or a task that waits until any thread tells it to go on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol, runtime_checkable

from ringcast.runtime.loop.waker import Waker


@runtime_checkable
class Waiter(Protocol):
    """A caller that waits to be told."""

    @property
    def who(self) -> object:
        """The thread or task that waits."""
        ...

    def tell(self) -> None:
        """Wake the caller; may be called twice. Safe from any thread, never blocks."""
        ...

    def resume(self) -> None:
        """Run the caller at once, within this call, where that is possible; else `tell`.

        The caller may do anything meanwhile: hold no lock.
        """
        ...


MakeWaiter = Callable[[], Waiter]


class ThreadWaiter:
    """A thread that waits: at its own lock, or at a Waker while it attends to the member."""

    __slots__ = ("_lock", "told", "waker", "who")

    def __init__(self) -> None:
        self.who: object = threading.get_ident()
        self.told = False
        self.waker: Waker | None = None
        """Where it attends; the thread sets it before it checks `told`."""
        self._lock = threading.Lock()
        self._lock.acquire()

    def prepare(self, waker: Waker) -> None:
        """The running thread is about to wait at this waker; may be used again."""
        self.who, self.told, self.waker = threading.get_ident(), False, waker

    def tell(self) -> None:
        """Wake the thread."""
        self.told = True
        if self.waker is not None:
            if threading.get_ident() != self.who:
                self.waker.wake()
        elif self._lock.locked():
            with contextlib.suppress(RuntimeError):  # Another thread was quicker.
                self._lock.release()

    def resume(self) -> None:
        """Wake the thread."""
        self.tell()

    def wait(self, timeout: float | None) -> bool:
        """Wait until told; False at the timeout."""
        return self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))


class TaskWaiter:
    """A task that waits, in the loop that made this."""

    __slots__ = ("_loop", "future", "who")

    def __init__(self) -> None:
        self.who: object = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self.future = _Prompt(loop=self._loop)

    def tell(self) -> None:
        """Wake the task; from another thread this wakes its loop."""
        with contextlib.suppress(RuntimeError):  # The loop is closed, and its tasks with it.
            if asyncio._get_running_loop() is self._loop:
                self._finish()
            else:
                self._loop.call_soon_threadsafe(self._finish)

    def resume(self) -> None:
        """Run the task at once, if its own loop calls this between two tasks."""
        if asyncio._get_running_loop() is self._loop and asyncio.current_task() is None:
            self.future.finish()
        else:
            self.tell()

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    async def wait(self, timeout: float | None) -> bool:
        """Wait until told; False at the timeout."""
        if timeout is None:
            await self.future
            return True
        done, _ = await asyncio.wait((self.future,), timeout=timeout)
        return bool(done)


class _Prompt(asyncio.Future[None]):
    """A future whose `finish` runs the waiting task within the call.

    An ordinary future runs it in the next turn of the loop, which costs as much as a message.
    """

    _waiting: tuple[tuple[Callable[[_Prompt], object], Context], ...] = ()

    def add_done_callback(
        self, fn: Callable[[_Prompt], object], /, *, context: Context | None = None
    ) -> None:
        context = context or copy_context()
        super().add_done_callback(fn, context=context)
        self._waiting += ((fn, context),)

    def finish(self) -> None:
        """Finish the future and run the tasks that wait for it."""
        waiting, self._waiting = self._waiting, ()
        here = [(fn, context) for fn, context in waiting if self.remove_done_callback(fn)]
        if not self.done():
            self.set_result(None)
            for fn, context in here:
                context.run(fn, self)
