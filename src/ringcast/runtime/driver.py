"""The driver: sees to it that somebody steps a member whenever something comes or is due.

A thread of its own does that, so that the member answers the others while the application, or its
event loop, is busy for as long as it likes. But handing messages from thread to thread costs more
than handling them. So whoever waits for messages anyway attends to the member itself: a thread in
`attend`, or an event loop that watches the transport's descriptor. Meanwhile the driver's thread
does what is due, and otherwise steps in only for what is left lying longer than `GRACE`: because
the loop is blocked, say.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable

from ringcast.core.batch import Batch
from ringcast.core.events import Event
from ringcast.errors import Closed
from ringcast.runtime.forks import disown, tell_forks
from ringcast.runtime.member import Member
from ringcast.runtime.mutex import owned_lock
from ringcast.runtime.outgoing import PAUSE
from ringcast.runtime.seat import two_seats
from ringcast.runtime.waiters import MakeWaiter, ThreadWaiter, Waiter

GRACE = 0.005
"""Seconds that somebody who attends may take before the driver's thread steps in."""
MOMENT = 0.000_3
"""Seconds for which whoever has sent a single message looks for an answer before it sleeps."""
SKIPPED_MAX = 16
"""When no answer has come within a moment, the next one is not looked for; the second time in a row
the next two, then four, and at most so many."""
MUCH = 32
"""Messages at once after which it is likely that more have come already."""
DETACH_WAIT = 60.0
"""Seconds that a loop has to stop watching a descriptor; it is not closed before."""
FOREVER = float("inf")


class Driver:
    """Runs a member until it is closed."""

    def __init__(self, member: Member) -> None:
        self.member = member
        fds = member.transport.filenos()
        self._seat, self._guest_seat = two_seats(fds)
        self._guest, self._is_guest = owned_lock()
        """Held by the thread that attends."""
        self._sitter = ThreadWaiter()
        """The thread that sits in the guest's seat until something comes."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that attends."""
        self._attended_until = -FOREVER
        self._has_come = False
        """Whether something waits at the network, as far as those know who take messages."""
        self.asks = False
        """Whether a single message, a call or a reply was just sent, after which more may come."""
        self._moment = MOMENT if _cores() > 1 else 0.0
        """On a single core, whoever would answer has to wait until this one sleeps."""
        self._skips = self._skipped = 0
        """How many answers are still not looked for, since one has not come at once, and how many
        that were in all."""
        self._awake_until = 0.0
        """Until when an answer is looked for; 0 when none is."""
        self._stays = False
        """Whether the event loop does not fall asleep meanwhile."""
        self._steps = 0
        """Of those who attend: when it does not rise, they are absent."""
        self._end_lock = threading.Lock()
        self._ended = self._abandoned = False
        self._enders: list[Waiter] = []
        name = f"ringcast-{member.peer.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        tell_forks(self)
        self.member.alarm = self._seat.ring
        self.member.start()
        self._thread.start()

    # The thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        member, seat = self.member, self._seat
        try:
            due = member.step()
            while member.closed is None:
                if self._abandoned:
                    member.leave()
                if member.outgoing.hot:
                    due = min(due, time.monotonic() + PAUSE)
                came = seat.wait(due - time.monotonic())
                # While it rested, the bell may have rung for a time that is sooner.
                due = member.due if came and self._is_attended() else member.step()
        except BaseException as error:
            member.fail(error)
        finally:
            self._end()

    def _is_attended(self) -> bool:
        """Whether somebody else takes what came, within the time that it has for that."""
        if time.monotonic() >= self._attended_until:
            return False
        steps = self._steps
        self._seat.rest(GRACE)
        if self._steps != steps or self.member.is_stepping:
            return True
        self._attended_until = -FOREVER
        return False

    def _end(self) -> None:
        self._detach()
        self.member.shut()
        with self._guest:  # Whoever attends has been told.
            self._seat.close()
            self._guest_seat.close()
        with self._end_lock:
            self._ended = True
            enders, self._enders = self._enders, []
        for waiter in enders:
            waiter.tell()

    def ender(self, make_waiter: MakeWaiter) -> Waiter | None:
        """Somebody to be told when the member has let go of everything; None when it has."""
        with self._end_lock:
            if self._ended:
                return None
            waiter = make_waiter()
            self._enders.append(waiter)
            return waiter

    def abandon(self) -> bool:
        """Nobody can use the group any more: leave it. False when that is over. Takes no lock."""
        if self._ended or self.member.left or self.member.closed is not None:
            return False
        self._abandoned = True
        with contextlib.suppress(OSError):  # It has just ended.
            self._seat.ring()
        return True

    def on_fork(self, reason: str) -> None:
        """This is a copy of the process, without the thread: let go, without a word to anybody."""
        self._guest, self._is_guest = owned_lock()
        self._end_lock, self._ended, self._loop = threading.Lock(), True, None
        disown(self.member, reason)
        self._seat.close()
        self._guest_seat.close()

    @property
    def is_interrupted(self) -> bool:
        """Whether the running thread is in the middle of a call, below a signal handler, say."""
        return self._is_guest() or self.member.is_inside()

    # A thread that takes --------------------------------------------------------------------------

    def take(self, limit: int, who: object) -> list[Event]:
        """The next events, for a thread or task that comes again soon: so it attends."""
        self._steps += 1
        self._attended_until = time.monotonic() + GRACE
        events = self.member.take(limit, who, self._has_come)
        if events:
            self.answered()
        # Where much came, more has come meanwhile; else it is cheaper to wait for it.
        self._has_come = sum(map(_count, events)) >= MUCH
        return events

    def listen(self, until: float, has_more: Callable[[], bool]) -> None:
        """Wait until there may be something to take, the member is closed or the time has come.

        has_more: whether there is no need to wait; those for whom it changes are told.
        """
        if not self._is_guest() and self._guest.acquire(blocking=False):
            try:
                self._sit(until, has_more)
            finally:
                self._guest.release()
            return
        waiter = self.member.watch(ThreadWaiter)
        if waiter is not None:
            assert isinstance(waiter, ThreadWaiter)
            if has_more() or not waiter.wait(_left(until)):
                self.member.unwatch(waiter)

    def _sit(self, until: float, has_more: Callable[[], bool]) -> None:
        if self._looks() and self._is_answered():
            self._has_come = True
            return
        sitter = self._sitter
        sitter.sit(self._guest_seat)
        if self.member.watch(self._the_sitter) is None:
            return
        self._attended_until = FOREVER
        try:
            if not sitter.told and not has_more():
                self._has_come = self._guest_seat.wait(until - time.monotonic())
        except OSError as error:
            self._on_seat_error(error)
        finally:
            self._attended_until = time.monotonic() + GRACE
            if not sitter.told:
                self.member.unwatch(sitter)

    def _looks(self) -> bool:
        """Whether an answer is looked for, since a message was just sent."""
        if self.asks:
            self.asks = False
            if self._skips:
                self._skips -= 1
            else:
                self._awake_until = time.monotonic() + self._moment
        return self._awake_until > 0.0

    def answered(self) -> None:
        """Something has come that may be the answer: no other is looked for."""
        if self._awake_until:
            self._awake_until, self._skipped = 0.0, 0

    def _give_up(self) -> None:
        """No answer has come."""
        self._skips = self._skipped = min(2 * self._skipped or 1, SKIPPED_MAX)
        self._awake_until = 0.0

    def _is_answered(self) -> bool:
        """Whether something comes within a moment: then it is cheaper not to fall asleep, for
        whoever has just sent a message as well as for whoever would have to wake it."""
        look, until = self._guest_seat.look, self._awake_until
        while time.monotonic() < until:
            if look():
                return True
        self._give_up()
        return False

    def _the_sitter(self) -> Waiter:
        return self._sitter

    def _on_seat_error(self, error: OSError) -> None:
        if self.member.closed is None:
            self.member.fail(error)
        # Else it was closed under our feet, and whoever waited is told.

    # A thread that attends ------------------------------------------------------------------------

    def attend(self, until: float) -> None:
        """Wait until there is something to take, the member is closed or the time has come."""
        waiter = self.member.watch(ThreadWaiter)
        if waiter is not None:
            assert isinstance(waiter, ThreadWaiter)
            self.wait(waiter, until)
            if not waiter.told:
                self.member.unwatch(waiter)

    def wait(self, waiter: Waiter, until: float) -> None:
        """Attend to the member until told, or until the time has come; or let another attend."""
        assert isinstance(waiter, ThreadWaiter)
        if self._is_guest() or not self._guest.acquire(blocking=False):
            waiter.wait(_left(until))
            return
        try:
            self._attend(waiter, until)
        finally:
            self._guest.release()

    def _attend(self, waiter: ThreadWaiter, until: float) -> None:
        waiter.seat = seat = self._guest_seat
        self._attended_until = FOREVER
        try:
            while not waiter.told and (left := until - time.monotonic()) > 0:
                if (self._looks() and self._is_answered()) or seat.wait(left):
                    self.step()
        except OSError as error:
            self._on_seat_error(error)
        finally:
            self._attended_until = time.monotonic() + GRACE

    def step(self) -> None:
        """Take what has come and do what is due, in the place of the driver. Raises Closed."""
        self._steps += 1
        self._attended_until = FOREVER
        try:
            self.member.step()
        except BaseException as error:  # An interrupt as well: it leaves the stack half way.
            self.member.fail(error)
            if not isinstance(error, Exception):
                raise
            raise Closed(f"the group is closed: {self.member.closed}") from error

    # An event loop that attends -------------------------------------------------------------------

    def attach(self) -> None:
        """Let the running event loop attend, if no other does; it goes on until `detach`."""
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

    def detach(self) -> None:
        """The running event loop attends no longer."""
        if self._loop is not None and self._loop is asyncio.get_running_loop():
            for fd in self._fds:
                self._loop.remove_reader(fd)
            self._loop = None
            self._attended_until = -FOREVER

    def stay_awake(self) -> None:
        """If a message was just sent, have the running loop turn for a moment and not fall asleep:
        the same as `_is_answered`, and others of the loop have their turns meanwhile."""
        loop = asyncio._get_running_loop()
        if loop is not None and loop is self._loop and self._looks() and not self._stays:
            self._stays = True
            loop.call_soon(self._stay)

    def _stay(self) -> None:
        if self._loop is not None and time.monotonic() < self._awake_until:
            self._loop.call_soon(self._stay)
            return
        self._stays = False
        if self._awake_until:
            self._give_up()

    def _on_readable(self) -> None:
        if readers := self.member.readers():  # They take what came by themselves.
            self._attended_until = time.monotonic() + GRACE
            self._has_come = True
            for reader in readers:
                reader.resume()
            return
        with contextlib.suppress(Closed):  # Whoever waits is told.
            self.step()

    def _detach(self) -> None:
        """Have the loop stop watching, from the driver's thread."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        done = threading.Event()

        def stop() -> None:
            self.detach()
            done.set()

        with contextlib.suppress(RuntimeError):  # It was closed meanwhile.
            loop.call_soon_threadsafe(stop)
            done.wait(DETACH_WAIT)


def _count(event: Event) -> int:
    return len(event) if isinstance(event, Batch) else 0


def _cores() -> int:
    """How many this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _left(until: float) -> float | None:
    return None if until == FOREVER else until - time.monotonic()
