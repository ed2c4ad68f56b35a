"""Calls that wait: a thread, or a task of some event loop. They are told once, from anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol, runtime_checkable

from ringcast.runtime.seat import Seat


@runtime_checkable
class Waiter(Protocol):
    """Somebody who waits to be told."""

    @property
    def who(self) -> object:
        """The thread or task that waits."""
        ...

    def tell(self) -> None:
        """Let it go on; more than once does no harm. Safe from any thread, never blocks."""
        ...

    def resume(self) -> None:
        """Let it go on at once, within this call, where that can be; else as `tell` does.

        It may do anything meanwhile: no lock may be held.
        """
        ...


MakeWaiter = Callable[[], Waiter]


class ThreadWaiter:
    """A thread that waits: at a gate, or in a seat where it attends to the member meanwhile."""

    __slots__ = ("_gate", "seat", "told", "who")

    def __init__(self) -> None:
        self.who: object = threading.get_ident()
        self.told = False
        self.seat: Seat | None = None
        """Where it attends; set by itself before it looks whether it was told."""
        self._gate = threading.Lock()
        self._gate.acquire()

    def sit(self, seat: Seat) -> None:
        """The running thread will wait in this seat, once more perhaps."""
        self.who, self.told, self.seat = threading.get_ident(), False, seat

    def tell(self) -> None:
        """Let the thread go on."""
        self.told = True
        if self.seat is not None:
            if threading.get_ident() != self.who:
                self.seat.ring()
        elif self._gate.locked():
            with contextlib.suppress(RuntimeError):  # Somebody else was quicker.
                self._gate.release()

    def resume(self) -> None:
        """Let the thread go on."""
        self.tell()

    def wait(self, timeout: float | None) -> bool:
        """Until told; False when the time was over first."""
        return self._gate.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))


class TaskWaiter:
    """A task that waits, in the loop that made this."""

    __slots__ = ("_loop", "future", "who")

    def __init__(self) -> None:
        self.who: object = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self.future = _Prompt(loop=self._loop)

    def tell(self) -> None:
        """Let the task go on; from another thread its loop is woken for that."""
        with contextlib.suppress(RuntimeError):  # The loop is closed, and its tasks with it.
            if asyncio._get_running_loop() is self._loop:
                self._finish()
            else:
                self._loop.call_soon_threadsafe(self._finish)

    def resume(self) -> None:
        """Let the task go on at once, if it is its loop that calls this, between two tasks."""
        if asyncio._get_running_loop() is self._loop and asyncio.current_task() is None:
            self.future.finish()
        else:
            self.tell()

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    async def wait(self, timeout: float | None) -> bool:
        """Until told; False when the time was over first."""
        if timeout is None:
            await self.future
            return True
        done, _ = await asyncio.wait((self.future,), timeout=timeout)
        return bool(done)


class _Prompt(asyncio.Future[None]):
    """A future that can be finished so that whoever waits for it goes on within that call.

    An ordinary one has it go on in the next turn of the loop, which costs as much as a message.
    """

    _waiting: tuple[tuple[Callable[[_Prompt], object], Context], ...] = ()

    def add_done_callback(
        self, fn: Callable[[_Prompt], object], /, *, context: Context | None = None
    ) -> None:
        context = context or copy_context()
        super().add_done_callback(fn, context=context)
        self._waiting += ((fn, context),)

    def finish(self) -> None:
        """Done, and whoever waits for it goes on."""
        waiting, self._waiting = self._waiting, ()
        here = [(fn, context) for fn, context in waiting if self.remove_done_callback(fn)]
        if not self.done():
            self.set_result(None)
            for fn, context in here:
                context.run(fn, self)
