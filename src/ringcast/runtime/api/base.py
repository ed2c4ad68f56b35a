"""What the asynchronous and the synchronous group have in common: everything that does not wait."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count, repeat
from operator import length_hint
from typing import TypeGuard, cast

from ringcast.control.membership.joiner import NOBODY
from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, VIEW_PAYLOAD_SIZE, Batch, Message, Payload, flat
from ringcast.core.model.events import Event, StateAsked
from ringcast.core.model.view import View
from ringcast.errors import Closed, JoinFailed, LocalError, Timeout
from ringcast.runtime.loop.forks import tell_forks
from ringcast.runtime.loop.locks import INSIDE
from ringcast.runtime.member.arguments import cannot_start
from ringcast.runtime.member.driver import Driver
from ringcast.runtime.member.join_failure import tried_in_vain
from ringcast.runtime.member.member import Member
from ringcast.runtime.member.outgoing import PendingSend
from ringcast.runtime.member.stats import Stats
from ringcast.services.correlator import IGNORED

JOIN_NOTICE = 0.7
"""Seconds after which a join says what it waits for."""
JOIN_TIMEOUT = 30.0
"""Seconds that a join may take unless told otherwise."""
BACKLOG_BYTES = 64_000_000
"""Bytes that are put aside at the most while a receiving loop is blocked in its own `send`."""
TAKE_MAX = 1_024
"""Messages that are taken at once: they count as delivered when all of them were seen."""

Sendable = bytes | bytearray | memoryview
"""Types of a payload to send. Writable memory is copied. The memory behind a read-only memoryview
is not copied, and must not change any more."""

log = logging.getLogger("ringcast.join")

_new_message = partial(tuple.__new__, Message)


class GroupBase:
    """A member of a group as its application sees it."""

    _views = False
    """Whether the application wants large payloads as memoryviews, without a copy."""

    def __init__(self, member: Member, receive: bool) -> None:
        self._member = member
        self._note = member.outgoing.note
        try:
            self._driver = Driver(member)
        except OSError as error:
            member.shut()
            raise cannot_start(error) from None
        self._receive = receive
        self._service = member.service
        self._events: deque[Event] = deque()
        self._refills = 0
        """How often events were added there."""
        self._duties: deque[Duty] = deque()
        """What has to be done before the application gets its next event."""
        self._open: Batch | None = None
        self._messages: Iterator[Message] = iter(())
        """What is left of the batch that is read message by message; all such loops share it."""
        self._unread: Iterator[Payload] = iter(())
        """The payloads of that, to see how many they are."""
        self._opening = threading.RLock()
        """Held by a thread that changes these three, or it would undo what another has begun."""
        tell_forks(self)

    # What a user looks at -------------------------------------------------------------------------

    @property
    def me(self) -> Address:
        """This member's identity."""
        return self._member.peer.address

    @property
    def name(self) -> str:
        """The name of this member."""
        return self._member.peer.name

    @property
    def endpoint(self) -> str:
        """Where others reach this member; a seed for joiners."""
        return self._member.peer.endpoint

    @property
    def view(self) -> View:
        """The installed view; members[0] is the coordinator."""
        view = self._member.view
        assert view is not None
        return view

    @property
    def closed(self) -> str | None:
        """Why this member is out of the group; None while it is in."""
        return self._member.closed

    def stats(self) -> Stats:
        """Counters and window marks as plain data.

        `waits_for` names the members that a blocked sender waits for.
        """
        self._check_outside()
        return self._member.stats()

    def add_figures(self, figures: Callable[[], Mapping[str, int]]) -> None:
        """Show these figures of the application in `stats()["application"]` and in the live view.

        `figures` is called under the member's lock, from any thread: it reads and returns.
        Raises LocalError for what is not a function.
        """
        if not callable(figures):
            raise LocalError(f"figures is {figures!r}: give a function that returns a mapping")
        self._member.figures = figures

    def reload_keys(self) -> None:
        """Read the key file again: the first key seals from now on, and all of them open.

        Raises ConfigError, and keeps the keys then; LocalError without a key file.
        """
        self._check_outside()
        self._member.act(lambda now: self._member.security.reload())

    def __repr__(self) -> str:
        state = f"closed: {self.closed}" if self.closed else repr(self._member.view)
        return f"<{type(self).__name__} {self._member.group} {self.name}: {state}>"

    def _check_outside(self) -> None:
        """Raises LocalError where a call would wait for the call that it interrupts."""
        if self._member.is_inside():
            raise LocalError(INSIDE)

    def __del__(self) -> None:
        # A member that does not take holds all senders back, so a forgotten one leaves.
        driver = getattr(self, "_driver", None)
        if driver is None or sys.is_finalizing():
            return
        who = repr(self)  # As it was before it left.
        if driver.abandon():
            text = f"{who} was neither left nor closed before it was forgotten: it leaves now"
            warnings.warn(text, ResourceWarning, stacklevel=1, source=self)

    def on_fork(self, reason: str) -> None:
        """This is a copy of the process, without the threads that may have been reading."""
        self._opening = threading.RLock()

    # Taking, without waiting ----------------------------------------------------------------------

    def _refill(self, who: object) -> bool:
        """Take the next events from the member; whether there were any."""
        if not self._receive:
            raise LocalError("this member joined with receive=False, and gets no messages")
        if self._service.correlator.seeking:
            raise LocalError("this member joined with state=True: take the state first")
        events = self._driver.take(TAKE_MAX, who)
        if self._service.states.guarded:
            events = self._service.states.admit(events)
        if not events:
            return False
        if not self._views:
            for event in events:
                if type(event) is Batch and not 0 < event.size < VIEW_PAYLOAD_SIZE:
                    event.drop_views()
        self._events.extend(events)
        self._refills += 1
        if self._member.incoming.readers:  # Other threads or tasks, which share the events.
            for reader in self._member.readers():
                reader.tell()
        return True

    def _has_more(self) -> bool:
        """Whether there is something here, which another thread or task has taken, perhaps."""
        return bool(self._events or length_hint(self._unread))

    def _over(self) -> bool:
        """Whether nothing will come any more. Raises Closed if the application did not want it."""
        member = self._member
        if member.closed is None or member.incoming.ready:
            return False
        if member.left:
            return True
        raise Closed(f"the group is closed: {member.closed}")

    def _next_event(self) -> Event | None:
        """The next event that is here, unless there is a duty before it."""
        rest = self._rest()
        if rest is not None:
            return rest
        try:
            event = self._events.popleft()
            while self._service.correlator.heard and is_duty(event):
                if not (isinstance(event, Batch) and event.flags & IGNORED):
                    self._duties.append(event)
                    return None
                event = self._events.popleft()
            return event
        except IndexError:
            return None

    def _next_events(self) -> list[Event]:
        """All events that are here, up to the next duty."""
        events: list[Event] = []
        while not self._duties and (event := self._next_event()) is not None:
            events.append(event)
        return events

    def _next_duty(self) -> Duty | None:
        """What has to be done now, if anything; nothing once the group is left."""
        while self._duties:
            try:
                duty = self._duties.popleft()
            except IndexError:  # Another thread was quicker.
                return None
            if self._member.closed is None and not self._member.left:
                return duty
        return None

    def _in_hand(self) -> tuple[Event, ...]:
        """What was taken and the application has not been given; another thread may be at it."""
        with suppress(RuntimeError):
            return (*self._duties, *self._events)
        return ()

    def _next_batch(self) -> Batch | None:
        """The next batch that is here; other events before it are passed over."""
        while (event := self._next_event()) is not None:
            if isinstance(event, Batch):
                return event
        return None

    def _open_batch(self) -> bool:
        """Begin to read the next batch message by message; False when there is none here."""
        with self._opening:
            batch = self._next_batch()
            if batch is None:
                return False
            self._unread = unread = iter(batch.payloads)
            fields = zip(repeat(batch.sender), count(batch.first), unread, strict=False)
            self._open, self._messages = batch, map(_new_message, fields)
            return True

    def _rest(self) -> Batch | None:
        """What a loop over messages has left of its batch."""
        if self._open is None:
            return None
        with self._opening:
            batch, self._open = self._open, None
            left = len(list(self._messages))
        return batch.part(batch.last - left + 1, batch.last) if batch and left else None

    # Waiting, as far as it is the same ------------------------------------------------------------

    def _check_sent(self, run: PendingSend, timeout: float | None) -> None:
        """After a wait for room. Raises Timeout, Closed, NotMember."""
        self._member.cancel(run)
        if not run.done:
            seconds = run.limit if timeout is None else timeout
            raise self._member.timeout(run, f"not sent within {seconds:g} seconds")
        if run.error is not None:
            raise run.error

    def _tell_whom_it_waits_for(self) -> None:
        """Log what was tried, for a user who sees a join that takes longer than usual."""
        member = self._member
        if member.view is None and member.closed is None:
            log.warning('the group "%s" is not joined yet: %s', member.group, tried_in_vain(member))

    def _join_error(self, timeout: float | None) -> JoinFailed | Timeout:
        """Why a join failed."""
        member = self._member
        name, tried = member.group, tried_in_vain(member)
        if member.closed is None:
            return Timeout(f'the group "{name}" was not joined within {timeout:g} seconds: {tried}')
        if member.closed.startswith(NOBODY):
            return JoinFailed(f'the group "{name}" was not joined: {NOBODY}: {tried}')
        return JoinFailed(f'the group "{name}" was not joined: {member.closed}')


def waits(run: PendingSend, timeout: float | None) -> Iterator[float | None]:
    """How long to wait for a run to be sent, once and again, until its time is over.

    A timeout is for the whole of it. What the stack allows a message is counted from when something
    of the run was sent last.
    """
    if timeout is not None or run.limit is None:
        yield timeout
        return
    while (left := run.moved + run.limit - time.monotonic()) > 0:
        yield left


Duty = Batch | StateAsked
"""A call that is to be answered, or a newcomer that wants the state."""


def is_duty(event: Event) -> TypeGuard[Duty]:
    """Whether an event is not for the application itself."""
    if isinstance(event, Batch):
        return bool(event.flags & CALL)
    return isinstance(event, StateAsked)


def checked_payload(payload: Sendable) -> Payload:
    """A message as the stack takes it. Raises TypeError for what is not bytes."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, memoryview):
        return flat(payload)
    if isinstance(payload, bytearray):
        return bytes(payload)
    raise TypeError(f"a message is bytes, not {type(payload).__name__}: encode it first")


def checked_payloads(payloads: Iterable[Sendable]) -> list[Payload]:
    """Messages as the stack takes them, in a list of its own: the caller's may change."""
    if isinstance(payloads, (bytes, bytearray, memoryview, str)):
        raise TypeError("send_many takes a list of messages: use send for one")
    if not isinstance(payloads, Iterable):
        raise TypeError(f"send_many takes a list of messages, not {type(payloads).__name__}")
    messages = list(payloads)
    if [*map(type, messages)].count(bytes) == len(messages):
        return cast(list[Payload], messages)
    return [checked_payload(message) for message in messages]
