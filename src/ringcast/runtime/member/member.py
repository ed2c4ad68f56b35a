"""One member: its stack over a transport, behind one lock, with what callers have left and want.

Everything here is safe from any thread, and nothing waits. Callers do not hand their work over:
they take the lock and run the stack themselves. A thread that finds that data has arrived, or that
the deadline has passed, calls `step`; the driver decides which thread that is. The application is
never called from here: it calls and takes.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload, common_size
from ringcast.core.model.events import Event
from ringcast.core.model.view import View
from ringcast.core.wire.segments import Received
from ringcast.errors import Closed, LocalError, RingcastError, Timeout
from ringcast.runtime.loop.locks import owned_lock
from ringcast.runtime.loop.waiters import MakeWaiter, Waiter
from ringcast.runtime.member.blocked_senders import OwnApplicationWarning, timeout
from ringcast.runtime.member.delivery_waits import PendingFlush, StabilityRounds
from ringcast.runtime.member.incoming import RELIEF_SECONDS, Incoming
from ringcast.runtime.member.observer import MemberListener
from ringcast.runtime.member.outgoing import LONG_AGO, Outgoing, PendingSend
from ringcast.runtime.member.security import NO_KEYS, Credentials, Security
from ringcast.runtime.member.services import MemberServices, ServiceOptions
from ringcast.runtime.member.stats import Stats, ViewRecord, member_stats
from ringcast.runtime.member.stranger_watch import watch_strangers
from ringcast.runtime.net.buffer_pool import BufferPool
from ringcast.runtime.net.registry import make_transport
from ringcast.spec import StackSpec
from ringcast.transports import Tcp
from ringcast.wall_clock import wall_offset_ns

RECEIVE_MAX = 32
"""Datagrams of a socket that one step takes; more would keep callers from the lock for too long."""
LEAVE_WAIT = 5.0
"""Seconds that a leaver waits for room for messages that it was given before."""
HISTORY_MAX = 20
"""Views that a member remembers, for people who watch the group."""
FOREVER = float("inf")

log = logging.getLogger("ringcast")
Result = TypeVar("Result")


class Member:
    """A stack that is driven. `alarm` is called under the lock: a step is due sooner."""

    def __init__(
        self,
        group: str,
        spec: StackSpec,
        name: str,
        *,
        receive: bool,
        backlog_bytes: int,
        observer: MemberListener | None = None,
        services: ServiceOptions | None = None,
        credentials: Credentials = NO_KEYS,
    ) -> None:
        """Opens the network. Raises ConfigError."""
        self.group, self.spec, self.began = group, spec, time.monotonic()
        self.history: deque[ViewRecord] = deque(maxlen=HISTORY_MAX)
        """The views that were installed, the latest last."""
        self.figures: Callable[[], Mapping[str, int]] = dict[str, int]
        """What the application tells those who watch."""
        chosen = spec["transport"] if "transport" in spec else None  # noqa: SIM401
        self.transport = make_transport(chosen)
        me = Address(secrets.randbits(63) + 1)
        has_tls = isinstance(chosen, Tcp) and chosen.has_tls
        self.security = security = Security(credentials, group, me, self.transport, has_tls, spec)
        try:
            self.peer = Peer(me, name or f"{me}"[:6], self.transport.endpoint)
            rng, offset = random.Random(secrets.randbits(64)), wall_offset_ns() / 1e9
            given = (rng, offset, self.transport.mtu, security.seal)
            self.stack = spec.build(self.peer, group, *given)
            self.stack.env.buffers = pool = BufferPool()
            security.use(self.stack.receiver.placement)
            self.stack.env.sends_trains = bool(self.transport.offers().get("segmentation"))
            if not self.stack.env.datagram_size.is_given:
                self.transport.forbid_fragments()
            if observer is not None:
                observer.begin(self.stack)
            elif not receive:
                self.stack.ignore_messages()
        except BaseException:
            self.transport.close()
            raise
        self._out = self.stack.env.out
        self._observer = observer
        self.incoming = Incoming(self.stack, receive, backlog_bytes, observer)
        self.outgoing = Outgoing(self.stack, self._transmit)
        self.outgoing.cooled = self._flush
        self._own_application = OwnApplicationWarning(self.stack, self.incoming, self.outgoing)
        self.service = MemberServices(self, services or ServiceOptions(), backlog_bytes)
        """Calls and states, beside the application."""
        self.alarm: Callable[[], None] = lambda: None
        self.on_due_sooner = _ignore
        """Called under the lock, when a step is due sooner than before."""
        self.left = False
        """Whether the application itself wanted the group to be closed."""
        self.endings: list[Callable[[], None]] = [pool.clear]
        """Called once the transport is closed."""
        self._lock, self.is_inside = owned_lock()
        self._receive_lock, self._shut = threading.Lock(), False
        self._leave_by = self.due = FOREVER  # When a step is due if nothing comes.
        self._seen: View | None = None
        self._strangers = watch_strangers(self.stack, self.transport)

    # Running --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look for the group."""
        with self._lock:
            self.stack.start(time.monotonic())
            self._transmit()

    def step(self) -> None:
        """Read what has arrived, and run the timers that are due.

        One thread at a time steps, so that datagrams are handled in the order of arrival.
        """
        with self._receive_lock:
            if self._shut:
                return
            datagrams = self.transport.receive(RECEIVE_MAX)
            with self._lock:
                now = time.monotonic()
                self._take_in(datagrams, now)
                if self.outgoing.hot:
                    self.outgoing.flush(now)
                self._settle(now)

    def run_timers(self) -> None:
        """Do what is due, and leave what has come to others."""
        with self._lock:
            now = time.monotonic()
            if self.stack.deadline <= now and not self._shut:
                self.stack.wake(now)
            self._settle(now)

    def _pull(self, now: float) -> bool:
        """A step of a thread that has the lock; False when another steps already."""
        if not self._receive_lock.acquire(blocking=False):
            return False
        try:
            if self._shut:
                return False
            self._take_in(self.transport.receive(RECEIVE_MAX), now)
            return True
        finally:
            self._receive_lock.release()

    def _take_in(self, datagrams: Iterable[Received], now: float) -> None:
        self.stack.receive(datagrams, now)
        if self._strangers is not None:
            self._strangers.look(self.stack.view, now)
        if self.transport.hints:
            self.stack.hint(self.transport.hints, now)
        if self.stack.deadline <= now:
            self.stack.wake(now)

    @property
    def is_stepping(self) -> bool:
        """Whether a thread steps just now."""
        return self._receive_lock.locked()

    def await_step(self) -> None:
        """Wait until the thread is done that steps just now: looking for what it reads would only
        hold it up."""
        with self._receive_lock:
            pass

    def _settle(self, now: float) -> None:
        """What follows each change: send, take what no caller takes, feed and tell those who wait,
        and find out when the next step is due."""
        incoming, outgoing, stack = self.incoming, self.outgoing, self.stack
        if self._out.frames or self._out.learned:
            self._transmit()
        service = self.service
        if outgoing.queues or service.is_busy() or not incoming.is_left_alone():
            self._attend_to_those_who_wait(now)
        if self._leave_by < FOREVER:
            self._go_when_sent(now)
        if stack.closed is not None:
            outgoing.fail(stack.closed)
            incoming.tell()
            self.alarm()
        elif incoming.readers and (incoming.ready or stack.view is not self._seen):
            incoming.tell()
        self._seen = stack.view
        due = min(stack.deadline, self.transport.deadline)
        if outgoing.queues or service.has_waiters():
            due = min(due, now + RELIEF_SECONDS)
        is_sooner, self.due = due < self.due, due
        if is_sooner:
            self.on_due_sooner(due)
        if self._observer is not None:
            self._observer.settled(bool(outgoing.queues))

    def _attend_to_those_who_wait(self, now: float) -> None:
        """What is left of a step for a caller that waits, or wants nothing, as long as it helps."""
        incoming, outgoing, service = self.incoming, self.outgoing, self.service
        while (
            incoming.settle(now)
            or (outgoing.queues and self._feed(now))
            or (service.is_busy() and service.step(now))
        ):
            self._transmit()
        if service.is_busy():
            service.settle()

    def _feed(self, now: float) -> bool:
        """Send what waits; help a sender that waits for its own application."""
        if self.outgoing.feed(now):
            return True
        waiters = [run.waiter.who for run in self.outgoing.runs if run.waiter is not None]
        if self.incoming.relieve(now, waiters):
            return True
        self._own_application.consider(now)
        return False

    def _transmit(self) -> None:
        out, view = self._out, self.stack.view
        if out.learned:
            for peer in out.learned:
                if view is not None and peer.address in view:
                    # A stranger may claim any address: the view knows where its members are.
                    known = view.peers[view.rank(peer.address)]
                    if known.address != self.peer.address:
                        self.transport.learn(known)
                elif peer.address != self.peer.address:
                    self.transport.learn(peer, is_claim=True)
            out.learned.clear()
        if out.frames:
            datagrams = self.stack.drain()
            if not self._shut:
                self.transport.train_bytes = self._out.train_bytes
                self.transport.send(datagrams, () if view is None else view.members)
                if self.transport.shrunk:
                    self.stack.shrink(self.transport.shrunk, time.monotonic())
                    self.transport.shrunk = 0

    def fail(self, error: BaseException) -> None:
        """The member itself cannot go on: close, with the reason, and tell all that wait."""
        with self._lock:
            self._broken(error)

    def _broken(self, error: BaseException) -> BaseException:
        """What a caller gets whose call found the member broken, or was interrupted half way."""
        is_bug = isinstance(error, Exception)
        if is_bug:  # Else the user has interrupted it, and knows.
            log.error("the member %s of %s fails", self.peer.name, self.group, exc_info=error)
        if self.stack.closed is None:
            self._say_farewell()
        self.stack.finish(f"the member failed: {type(error).__name__}: {error}")
        self.outgoing.fail(self.stack.closed or "")
        self.incoming.tell()
        self.alarm()
        return Closed(f"the group is closed: {self.stack.closed}") if is_bug else error

    def _say_farewell(self) -> None:
        view = self.stack.view
        try:
            if view is not None and not self._shut:
                self.transport.send(self.stack.farewell(), view.members)
        except Exception:  # It has failed already, and the others find out by its silence.
            log.debug("the others are not told that %s fails", self.peer.name, exc_info=True)

    # What callers ask -----------------------------------------------------------------------------

    @property
    def view(self) -> View | None:
        """The installed view."""
        return self.stack.view

    @property
    def closed(self) -> str | None:
        """Why the member is out of the group; None while it is in."""
        return self.stack.closed

    def _flush(self) -> None:
        with self._lock:
            now = time.monotonic()
            self.outgoing.flush(now)
            self._settle(now)

    def act(self, deed: Callable[[float], Result]) -> Result:
        """Run `deed` under the lock, and what follows from it. Raises what `deed` raises."""
        with self._lock:
            now = time.monotonic()
            try:
                self.stack.reach(now)
                result = deed(now)
                self._settle(now)
            except RingcastError:
                raise
            except BaseException as error:
                raise self._broken(error) from error
        return result

    def send(
        self, payloads: Sequence[Payload], to: Address | None, make_waiter: MakeWaiter
    ) -> PendingSend | None:
        """Send; None when all is sent, else the run that waits for room.

        Raises Closed, TooLarge, NotMember.
        """
        size = common_size(payloads)
        with self._lock:
            now = time.monotonic()
            if self.left and self.stack.closed is None:
                raise Closed("the group is being left: nothing more can be sent")
            try:
                was_hot = self.outgoing.hot
                sent = self.outgoing.send(payloads, to, now, 0, size)
                run = None
                if sent < len(payloads):
                    run = PendingSend(payloads, to, make_waiter(), now, 0, size)
                    run.sent = sent
                    self.outgoing.add(run)
                self._settle(now)
                if self.outgoing.hot and not was_hot:
                    self.alarm()
            except LocalError:
                raise
            except BaseException as error:
                raise self._broken(error) from error
        if run is None or not run.done:
            return run
        if run.error is not None:
            raise run.error
        return None

    def cancel(self, run: PendingSend) -> None:
        """A caller waits for room no longer."""
        with self._lock:
            self.outgoing.remove(run)

    def take(self, limit: int, who: object, pull: bool = False) -> list[Event]:
        """The next events; what was taken before counts as delivered now. Raises Closed.
        pull: if there are none, the caller itself reads what has arrived from the network."""
        with self._lock:
            now = time.monotonic()
            try:
                changed = self.incoming.release(now)
                if pull and not self.incoming.ready:
                    changed = self._pull(now) or changed
                if events := self.incoming.take(limit, now, who):
                    self.outgoing.last_single = LONG_AGO
                if self.outgoing.hot:
                    self.outgoing.flush(now)
                    changed = True
                if changed or self.outgoing.queues:
                    self._settle(now)
            except BaseException as error:
                raise self._broken(error) from error
            return events

    def watch(self, make_waiter: MakeWaiter) -> Waiter | None:
        """A waiter to be told of something to take, or of the end; None when it is so now."""
        with self._lock:
            if self.incoming.ready or self.stack.closed is not None:
                return None
            waiter = make_waiter()
            self.incoming.watch(waiter)
            return waiter

    def readers(self) -> list[Waiter]:
        """The waiters for messages; the caller has to tell them that something has arrived."""
        with self._lock:
            readers, self.incoming.readers = self.incoming.readers, []
            return readers

    def unwatch(self, waiter: Waiter) -> None:
        """A caller waits no longer."""
        with self._lock:
            self.incoming.unwatch(waiter)

    # Leaving --------------------------------------------------------------------------------------

    def leave(self, taking: bool = False) -> None:
        """Begin to leave; `closed` says when it is done.

        taking: the application goes on taking until then, and nothing counts as delivered before.
        """
        with self._lock:
            if self.left or self.stack.closed is not None:
                return
            now = time.monotonic()
            self.left, self.incoming.leaving = True, not taking
            self._leave_by = now + LEAVE_WAIT
            if not taking:
                self.incoming.release(now)
            self.outgoing.flush(now)
            self.outgoing.fail("it is being left")
            self._settle(now)
            self.alarm()

    def _go_when_sent(self, now: float) -> None:
        """Leave as soon as everything is sent whose callers were told that it would be."""
        lost = self.outgoing.unsent
        if lost and now < self._leave_by and self.stack.closed is None:
            return
        if lost:
            log.warning("%d messages were not sent before the group %s was left", lost, self.group)
        self._leave_by = FOREVER
        self.stack.leave(now)
        self._transmit()

    def close(self) -> None:
        """Stop at once, without a word to the others."""
        with self._lock:
            self.left = True
            self.stack.finish("closed")
            self._settle(time.monotonic())

    def shut(self) -> None:
        """Let go of the network, once `closed`; no alarm is raised after it."""
        with self._receive_lock, self._lock:
            self._shut = True
            self.alarm, self.on_due_sooner = lambda: None, _ignore
            self.transport.close()
            self.incoming.tell()
        if self._observer is not None:
            self._observer.end()
        for ending in self.endings:
            ending()

    # What is going on -----------------------------------------------------------------------------

    def disown(self, reason: str) -> None:
        """Close in a fork. Another thread may have held the locks, and holds them for ever."""
        self._lock, self.is_inside = owned_lock()
        self._receive_lock, self._shut = threading.Lock(), True
        self.alarm, self.on_due_sooner = lambda: None, _ignore
        self.stack.finish(reason)
        self.outgoing.hot = False  # No thread is left to send what would be noted down.
        self.transport.close()

    def stats(self) -> Stats:
        """Counters and window marks as plain data."""
        with self._lock:
            return member_stats(self, time.monotonic())

    def stability(self, rounds: StabilityRounds) -> dict[Address, int] | None:
        """What is stable per sender; None while the round that a caller waits for goes on."""
        with self._lock:
            now = time.monotonic()
            found = rounds.look(self.stack, now)
            self._settle(now)
            return found

    def flush(self) -> PendingFlush:
        """A wait until the others have delivered what was sent; look at it with `look`."""
        return PendingFlush(self.stack, self.outgoing)

    def look(self, flush: PendingFlush) -> bool:
        """Whether a flush is done. Raises Closed."""
        return self.act(flush.look)

    def end(self, flush: PendingFlush) -> None:
        """A caller waits for a flush no longer."""
        with self._lock:
            flush.end()
            if self.outgoing.queues:
                self._settle(time.monotonic())

    def timeout(self, run: PendingSend, what: str) -> Timeout:
        """What a caller gets whose run found no room in time."""
        with self._lock:
            return timeout(self.stack, run, self.incoming.ready, what)


def _ignore(due: float) -> None:
    """Do nothing."""
