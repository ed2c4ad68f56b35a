"""What has come for the application: handed over when it asks, delivered when it comes back.

Three cases differ from that. An application that wants no messages (`receive=False`) has them
dropped as they come. One that is leaving has them put aside, since others wait until they count as
delivered. And while a caller is blocked in `send` that would otherwise be the one to take messages,
they are put aside as well, up to `backlog_bytes`; or two members that send from inside their
receiving loops would wait for each other for ever.
"""

from __future__ import annotations

from collections import Counter, deque

from ringcast.core.model.batch import CALL, Batch
from ringcast.core.model.events import Event, StateAsked
from ringcast.core.stack.stack import Stack
from ringcast.runtime.loop.waiters import Waiter
from ringcast.runtime.member.observer import MemberListener

ASIDE_MESSAGES = 1_024
"""How many messages are put aside in one step."""
RELIEF_SECONDS = 0.1
"""Seconds without a visit of the application after which any blocked sender is helped."""


class Incoming:
    """The application's side of the stack's inbox."""

    def __init__(
        self,
        stack: Stack,
        receive: bool,
        backlog_bytes: int,
        observer: MemberListener | None = None,
    ) -> None:
        self._stack = stack
        self._waiting = stack.waiting
        self._observer = observer
        self._receive = receive
        self._backlog_bytes = backlog_bytes
        self.backlog: deque[Event] = deque()
        """What was put aside, in order."""
        self.duties: deque[Batch | StateAsked] = deque()
        """Calls and requests for the state in the backlog, in order; a caller that claims a call
        removes it here."""
        self.readers: list[Waiter] = []
        """Those who wait for something to take."""
        self._in_hand = False
        self.aside = 0
        """Bytes put aside."""
        self.leaving = False
        self.parks = False
        """Whether the application waits for the group's state: all else is put aside meanwhile."""
        self.counters: Counter[str] = Counter()
        self.reader: object = None
        """The thread or task that took events last."""
        self.visited = float("-inf")
        """When that was."""

    @property
    def ready(self) -> bool:
        """Whether there is something to take."""
        return bool(self._waiting or self.backlog)

    def is_left_alone(self) -> bool:
        """Whether the application takes what comes by itself."""
        return self._receive and not (self.leaving or self.parks)

    def take(self, limit: int, now: float, who: object) -> list[Event]:
        """The next events, with up to about `limit` messages; those before are delivered now."""
        self.reader, self.visited = who, now
        self.release(now)
        if self.backlog:
            return self._take_aside(limit)
        self._in_hand = bool(self._waiting)
        return self._take(limit, now) if self._in_hand else []

    def release(self, now: float) -> bool:
        """The application is done with what it was handed; whether there was anything."""
        if not self._in_hand:
            return False
        self._in_hand = False
        self._stack.consumed(now)
        return True

    def settle(self, now: float) -> bool:
        """Take what the application does not want, or cannot any more; whether there was any."""
        if self._receive and not self.leaving:
            return self.parks and self.put_aside(now)
        took = False
        while self._waiting:
            took = True
            events = self._take_delivered(now)
            if self._receive:
                self._put_aside(events)
        return took

    def relieve(self, now: float, blocked: list[object]) -> bool:
        """Put messages aside for a blocked caller's sake, if it is due; whether there were any."""
        idle = now - self.visited
        if idle == float("inf") or (self.reader not in blocked and idle < RELIEF_SECONDS):
            return False
        return self.put_aside(now)

    def put_aside(self, now: float) -> bool:
        """Put aside what there is, within the bound; whether there was any."""
        took = False
        while self._waiting and self.aside < self._backlog_bytes:
            took = True
            self.release(now)
            self._put_aside(self._take_delivered(now))
        self.counters["put_aside"] += took
        return took

    def _take_delivered(self, now: float) -> list[Event]:
        events = self._take(ASIDE_MESSAGES, now)
        self._stack.consumed(now)
        return events

    def _take(self, limit: int, now: float) -> list[Event]:
        events = self._stack.take(limit, now)
        if self._observer is not None:
            self._observer.taken(events)
        return events

    # Those who wait -------------------------------------------------------------------------------

    def watch(self, waiter: Waiter) -> None:
        """Tell this one when there is something to take."""
        self.readers.append(waiter)

    def unwatch(self, waiter: Waiter) -> None:
        """This one waits no longer."""
        if waiter in self.readers:
            self.readers.remove(waiter)

    def tell(self) -> None:
        """All that wait may look."""
        readers, self.readers = self.readers, []
        for waiter in readers:
            waiter.tell()

    # What is put aside ----------------------------------------------------------------------------

    def _put_aside(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Batch):
                if self.leaving and self.aside >= self._backlog_bytes:
                    self.counters["dropped_while_leaving"] += len(event)
                    continue
                self.aside += event.nbytes
                if event.flags & CALL:
                    self.duties.append(event)
            elif isinstance(event, StateAsked):
                self.duties.append(event)
            self.backlog.append(event)

    def _take_aside(self, limit: int) -> list[Event]:
        events: list[Event] = []
        while self.backlog and limit > 0:
            event = self.backlog.popleft()
            if self.duties and self.duties[0] is event:
                self.duties.popleft()
            if isinstance(event, Batch):
                limit -= len(event)
                self.aside -= event.nbytes
            events.append(event)
        return events
