"""The driver: makes sure that some thread steps the member when datagrams arrive or timers are due.

The driver has a thread of its own, so that the member answers other members while the application,
or its event loop, is busy. But handing messages from thread to thread costs more than handling
them. So a caller that waits for messages steps the member itself: a thread in `attend`, or an
event loop that watches the transport's descriptors. A thread that waits runs the timers as well, so
that the pace of a sender and the acks of a receiver wake no second thread; for an event loop the
driver's thread runs them. It takes over what waits longer than `GRACE_SECONDS`, for example while
the loop is blocked. A caller that has just sent a single message spins before it sleeps
(`Spinning`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event
from ringcast.errors import Closed
from ringcast.runtime.loop.forks import tell_forks
from ringcast.runtime.loop.locks import owned_lock
from ringcast.runtime.loop.spinning import Spinning
from ringcast.runtime.loop.waiters import MakeWaiter, ThreadWaiter, Waiter
from ringcast.runtime.loop.waker import two_wakers
from ringcast.runtime.member.member import Member
from ringcast.runtime.member.outgoing import FLUSH_SECONDS

GRACE_SECONDS = 0.005
"""Seconds that an attending caller may take before the driver's thread takes over."""
STEP_SECONDS = 0.002
"""Seconds that an event loop has to begin a step when datagrams have come: it runs the timers."""
MORE_LIKELY_MESSAGES = 32
"""After this many messages at once it is likely that more have arrived already."""
DETACH_WAIT = 60.0
"""Seconds that a loop has to stop watching a descriptor; the descriptor is not closed before."""
FOREVER = float("inf")


class Driver:
    """Runs a member until it is closed."""

    def __init__(self, member: Member, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: the time for spinning; a test gives its own."""
        self.member = member
        self.spinning = Spinning(clock)
        fds = member.transport.filenos()
        self._waker, self._caller_waker = two_wakers(fds)
        self._caller_lock, self._has_caller_lock = owned_lock()
        """Held by the thread that attends to the member."""
        self._waiting_thread = ThreadWaiter()
        """The waiter of the thread that waits at `_caller_waker`; used again for each wait."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that attends to the member."""
        self._attended_until = -FOREVER
        self._runs_timers = False
        """Whether the caller that attends runs the timers as well."""
        self._wakes_at = self._caller_wakes_at = -FOREVER
        """When the driver's thread, and the thread that attends, will look at the timers by
        themselves, while they sleep."""
        self._has_come = False
        """Whether datagrams wait at the transport, as far as callers of `take` know."""
        self._is_loop_spinning = False
        """Whether the event loop spins."""
        self._steps = 0
        """Steps by attending callers: while it does not rise, none of them attends."""
        self._end_lock = threading.Lock()
        self._ended = self._abandoned = False
        self._enders: list[Waiter] = []
        name = f"ringcast-{member.peer.name}"
        self._thread = threading.Thread(target=self._drive, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        tell_forks(self)
        self.member.alarm = self._waker.wake
        self.member.on_due_sooner = self._on_due_sooner
        self.member.start()
        self._thread.start()

    # The thread -----------------------------------------------------------------------------------

    def _drive(self) -> None:
        member, waker = self.member, self._waker
        try:
            member.step()
            while member.closed is None:
                if self._abandoned:
                    member.leave()
                came = waker.wait(self._sleep_until() - time.monotonic())
                self._wakes_at = -FOREVER
                if not (self._is_attended() if came else self._are_timers_attended()):
                    member.step()
        except BaseException as error:
            member.fail(error)
        finally:
            self._end()

    def _sleep_until(self) -> float:
        """When the driver's thread has to look again, if nothing comes."""
        while True:
            now = time.monotonic()
            grace = self._grace(now)
            until = self.member.due + grace
            if self.member.outgoing.hot:
                until = min(until, now + FLUSH_SECONDS)
            self._wakes_at = until
            if until <= self.member.due + grace:  # Else it has just become sooner.
                return until

    def _grace(self, now: float) -> float:
        """How late the driver's thread may be for timers, since a caller runs them."""
        return GRACE_SECONDS if self._runs_timers and now < self._attended_until else 0.0

    def _on_due_sooner(self, due: float) -> None:
        """A step is due sooner than before."""
        if due < self._caller_wakes_at:
            self._caller_waker.wake()
        if due + self._grace(time.monotonic()) < self._wakes_at:
            self._waker.wake()

    def _are_timers_attended(self) -> bool:
        """Whether an attending caller has run the timers, or is about to."""
        now = time.monotonic()
        return not self.member.outgoing.hot and now < self.member.due + self._grace(now)

    def _is_attended(self) -> bool:
        """Whether an attending caller handles what arrived, within `GRACE_SECONDS`; the timers of
        an event loop are run meanwhile."""
        member, now = self.member, time.monotonic()
        if now >= self._attended_until:
            return False
        steps, until = self._steps, now + GRACE_SECONDS
        least = until if self._runs_timers else now + STEP_SECONDS
        while True:
            self._wakes_at = due = min(until, max(least, member.due))
            if member.due >= due or due == least:  # Else it has just become sooner.
                self._waker.wait_for_wake(due - now)
            self._wakes_at = -FOREVER
            if self._steps != steps or member.is_stepping:
                return True
            now = time.monotonic()
            if now >= until or member.closed is not None or self._abandoned or member.outgoing.hot:
                break
            if member.due <= now:
                member.run_timers()
        self._attended_until = -FOREVER
        return False

    def _end(self) -> None:
        self._detach()
        self.member.shut()
        with self._caller_lock:  # The attending thread has been told.
            self._waker.close()
            self._caller_waker.close()
        with self._end_lock:
            self._ended = True
            enders, self._enders = self._enders, []
        for waiter in enders:
            waiter.tell()

    def ender(self, make_waiter: MakeWaiter) -> Waiter | None:
        """A waiter that is told when the member has released everything; None when it has."""
        with self._end_lock:
            if self._ended:
                return None
            waiter = make_waiter()
            self._enders.append(waiter)
            return waiter

    def abandon(self) -> bool:
        """No caller can use the group any more: leave. False when it is over. Takes no lock."""
        if self._ended or self.member.left or self.member.closed is not None:
            return False
        self._abandoned = True
        with contextlib.suppress(OSError):  # The driver has just ended.
            self._waker.wake()
        return True

    def on_fork(self, reason: str) -> None:
        """In a forked child, which lacks the thread: release everything and send nothing."""
        self._caller_lock, self._has_caller_lock = owned_lock()
        self._end_lock, self._ended, self._loop = threading.Lock(), True, None
        self.member.disown(reason)
        self._waker.close()
        self._caller_waker.close()

    @property
    def is_interrupted(self) -> bool:
        """Whether the running thread is inside a call, for example below a signal handler."""
        return self._has_caller_lock() or self.member.is_inside()

    # A thread that takes events -------------------------------------------------------------------

    def take(self, limit: int, who: object) -> list[Event]:
        """The next events; the calling thread or task is expected again soon, and so attends."""
        self._steps += 1
        self._attended_until = time.monotonic() + GRACE_SECONDS
        events = self.member.take(limit, who, self._has_come)
        if events:
            self.spinning.answered()
        # After a full take more datagrams have arrived meanwhile; else it is cheaper to wait.
        self._has_come = sum(map(_count, events)) >= MORE_LIKELY_MESSAGES
        return events

    def listen(self, until: float, has_more: Callable[[], bool]) -> None:
        """Wait until there may be something to take, the member is closed or `until` is reached.

        has_more: whether there is no need to wait; waiters are told when it changes.
        """
        if not self._has_caller_lock() and self._caller_lock.acquire(blocking=False):
            try:
                self._wait_for_events(until, has_more)
            finally:
                self._caller_lock.release()
            return
        waiter = self.member.watch(ThreadWaiter)
        if waiter is not None:
            assert isinstance(waiter, ThreadWaiter)
            if has_more() or not waiter.wait(_left(until)):
                self.member.unwatch(waiter)

    def _wait_for_events(self, until: float, has_more: Callable[[], bool]) -> None:
        if self.spinning.is_on() and self._spin():
            self._has_come = True
            return
        thread = self._waiting_thread
        thread.prepare(self._caller_waker)
        if self.member.watch(self._the_waiting_thread) is None:
            return
        self._attended_until, self._runs_timers = FOREVER, True
        try:
            while not (thread.told or has_more()):
                self._has_come = self._sleep(until)
                if self._has_come or time.monotonic() >= until:
                    break
        except OSError as error:
            self._on_waker_error(error)
        finally:
            self._stop_attending()
            if not thread.told:
                self.member.unwatch(thread)

    def _sleep(self, until: float) -> bool:
        """Sleep until something comes, the waker is rung or `until` is reached; run the timers if
        they are due first. Whether something has come."""
        member, came = self.member, False
        due = self._caller_wakes_at = min(until, member.due)
        if member.due >= due:  # Else it has just become sooner.
            came = self._caller_waker.wait(due - time.monotonic())
        self._caller_wakes_at = -FOREVER
        if came and member.is_stepping:
            member.await_step()
        elif not came and member.due <= time.monotonic():
            self._run(member.run_timers)
        return came

    def _spin(self) -> bool:
        return self.spinning.spin(self._caller_waker.poll)

    def _the_waiting_thread(self) -> Waiter:
        return self._waiting_thread

    def _on_waker_error(self, error: OSError) -> None:
        if self.member.closed is None:
            self.member.fail(error)
        # Else the member was closed meanwhile, and its waiters are told.

    # A thread that attends ------------------------------------------------------------------------

    def attend(self, until: float) -> None:
        """Wait until there is something to take, the member is closed or `until` is reached."""
        waiter = self.member.watch(ThreadWaiter)
        if waiter is not None:
            assert isinstance(waiter, ThreadWaiter)
            self.wait(waiter, until)
            if not waiter.told:
                self.member.unwatch(waiter)

    def wait(self, waiter: Waiter, until: float) -> None:
        """Attend until told, or until `until`; just wait while another thread attends."""
        assert isinstance(waiter, ThreadWaiter)
        if self._has_caller_lock() or not self._caller_lock.acquire(blocking=False):
            waiter.wait(_left(until))
            return
        try:
            self._attend(waiter, until)
        finally:
            self._caller_lock.release()

    def _attend(self, waiter: ThreadWaiter, until: float) -> None:
        waiter.waker = self._caller_waker
        self._attended_until, self._runs_timers = FOREVER, True
        try:
            while not waiter.told and time.monotonic() < until:
                if (self.spinning.is_on() and self._spin()) or self._sleep(until):
                    self.step()
        except OSError as error:
            self._on_waker_error(error)
        finally:
            self._stop_attending()

    def _stop_attending(self) -> None:
        """The thread is about to come back, or leaves it to an event loop or the driver."""
        self._attended_until = time.monotonic() + GRACE_SECONDS
        self._runs_timers = self._loop is None

    def step(self) -> None:
        """Handle what arrived and what is due, instead of the driver's thread. Raises Closed."""
        self._steps += 1
        self._attended_until = FOREVER
        self._run(self.member.step)

    def _run(self, deed: Callable[[], None]) -> None:
        """Run the stack. Raises Closed."""
        try:
            deed()
        except (
            BaseException
        ) as error:  # An interrupt as well: the stack is in the middle of a step.
            self.member.fail(error)
            if not isinstance(error, Exception):
                raise
            raise Closed(f"the group is closed: {self.member.closed}") from error

    # An event loop that attends -------------------------------------------------------------------

    def attach(self) -> None:
        """Let the running event loop attend, if no other does, until `detach`."""
        if self._loop is not None or self.member.closed is not None:
            return
        loop = asyncio.get_running_loop()
        try:
            fds = self.member.transport.filenos()
            for fd in fds:
                loop.add_reader(fd, self._on_readable)
        except (OSError, ValueError) as error:  # The descriptor is gone.
            self.member.fail(error)
            return
        self._loop, self._fds = loop, fds
        self._runs_timers = False

    def detach(self) -> None:
        """The running event loop stops attending."""
        if self._loop is not None and self._loop is asyncio.get_running_loop():
            for fd in self._fds:
                self._loop.remove_reader(fd)
            self._loop = None
            self._attended_until = -FOREVER

    def spin_in_loop(self) -> None:
        """Spin in the running loop, if a message was just sent; its other tasks run meanwhile."""
        loop = asyncio._get_running_loop()
        if (
            loop is not None
            and loop is self._loop
            and self.spinning.is_on()
            and not self._is_loop_spinning
        ):
            self._is_loop_spinning = True
            loop.call_soon(self._spin_in_loop)

    def _spin_in_loop(self) -> None:
        if self._loop is not None and self.spinning.has_time():
            self._loop.call_soon(self._spin_in_loop)
            return
        self._is_loop_spinning = False
        self.spinning.time_out()

    def _on_readable(self) -> None:
        if readers := self.member.readers():  # They take what arrived themselves.
            self._attended_until = time.monotonic() + GRACE_SECONDS
            self._has_come = True
            for reader in readers:
                reader.resume()
            return
        with contextlib.suppress(Closed):  # Waiters are told.
            self.step()

    def _detach(self) -> None:
        """Make the loop stop watching, from the driver's thread."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        done = threading.Event()

        def stop() -> None:
            self.detach()
            done.set()

        with contextlib.suppress(RuntimeError):  # The loop was closed meanwhile.
            loop.call_soon_threadsafe(stop)
            done.wait(DETACH_WAIT)


def _count(event: Event) -> int:
    return len(event) if isinstance(event, Batch) else 0


def _left(until: float) -> float | None:
    return None if until == FOREVER else until - time.monotonic()
