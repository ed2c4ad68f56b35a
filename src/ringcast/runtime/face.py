"""What the asynchronous and the synchronous group have in common: everything that does not wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import count, repeat

from ringcast import presets
from ringcast.core.address import Address
from ringcast.core.batch import Batch, Message, Payload
from ringcast.core.events import Event
from ringcast.core.view import View
from ringcast.errors import Closed, JoinFailed, LocalError, Timeout
from ringcast.runtime.driver import Driver
from ringcast.runtime.member import Member
from ringcast.runtime.observer import Observer
from ringcast.runtime.outgoing import Run
from ringcast.spec import StackSpec

JOIN_TIMEOUT = 30.0
"""Seconds that a join may take unless told otherwise."""
BACKLOG_BYTES = 64_000_000
"""Bytes that are put aside at the most while a receiving loop is blocked in its own `send`."""
TAKE_MAX = 1_024
"""Messages that are taken at once: they count as delivered when all of them were seen."""

Sendable = bytes | bytearray | memoryview
"""What can be sent. A bytearray is copied; what a memoryview shows must not change any more."""

_new_message = partial(tuple.__new__, Message)


class Face:
    """A member of a group as its application sees it."""

    def __init__(self, member: Member, receive: bool) -> None:
        self._member = member
        self._driver = Driver(member)
        self._receive = receive
        self._events: deque[Event] = deque()
        self._open: Batch | None = None
        self._messages: Iterator[Message] = iter(())
        """What is left of the batch that is read message by message; all such loops share it."""

    # What a user looks at -------------------------------------------------------------------------

    @property
    def me(self) -> Address:
        """This member's identity."""
        return self._member.peer.address

    @property
    def name(self) -> str:
        """What people call this member."""
        return self._member.peer.name

    @property
    def endpoint(self) -> str:
        """Where others reach this member; a seed for those who join."""
        return self._member.peer.endpoint

    @property
    def view(self) -> View:
        """Who is in the group; members[0] is the coordinator."""
        view = self._member.view
        assert view is not None
        return view

    @property
    def closed(self) -> str | None:
        """Why this member is out of the group; None while it is in."""
        return self._member.closed

    def stats(self) -> dict[str, object]:
        """Counters and window marks as plain data.

        `waits_for` names the members that a blocked sender waits for.
        """
        return self._member.stats()

    def __repr__(self) -> str:
        state = f"closed: {self.closed}" if self.closed else repr(self._member.view)
        return f"<{type(self).__name__} {self._member.group} {self.name}: {state}>"

    # Taking, without waiting ----------------------------------------------------------------------

    def _refill(self, who: object) -> bool:
        """Take the next events from the member; whether there were any."""
        if not self._receive:
            raise LocalError("this member joined with receive=False, and gets no messages")
        events = self._member.take(TAKE_MAX, who)
        self._events.extend(events)
        return bool(events)

    def _over(self) -> bool:
        """Whether nothing will come any more. Raises Closed if the application did not want it."""
        member = self._member
        if member.closed is None or member.incoming.ready:
            return False
        if member.left:
            return True
        raise Closed(f"the group is closed: {member.closed}")

    def _next_event(self) -> Event | None:
        """The next event that is here."""
        rest = self._rest()
        if rest is not None:
            return rest
        try:
            return self._events.popleft()
        except IndexError:
            return None

    def _next_events(self) -> list[Event]:
        """All events that are here."""
        rest = self._rest()
        events = [*self._events] if rest is None else [rest, *self._events]
        self._events.clear()
        return events

    def _next_batch(self) -> Batch | None:
        """The next batch that is here; other events before it are passed over."""
        while (event := self._next_event()) is not None:
            if isinstance(event, Batch):
                return event
        return None

    def _open_batch(self) -> bool:
        """Begin to read the next batch message by message; False when there is none here."""
        batch = self._next_batch()
        if batch is None:
            return False
        fields = zip(repeat(batch.sender), count(batch.first), batch.payloads, strict=False)
        self._open, self._messages = batch, map(_new_message, fields)
        return True

    def _rest(self) -> Batch | None:
        """What a loop over messages has left of its batch."""
        if self._open is None:
            return None
        batch, self._open = self._open, None
        left = len(list(self._messages))
        return batch.part(batch.last - left + 1, batch.last) if left else None

    # Waiting, as far as it is the same ------------------------------------------------------------

    def _check_sent(self, run: Run, timeout: float | None) -> None:
        """After a wait for room. Raises Timeout, Closed, NotMember."""
        self._member.cancel(run)
        if not run.done:
            why = self._member.explain(run)
            raise Timeout(f"not sent within {timeout:g} seconds: {why}")
        if run.error is not None:
            raise run.error

    def _join_error(self, timeout: float | None) -> JoinFailed | Timeout:
        """Why a join came to nothing."""
        member = self._member
        if member.closed is not None:
            return JoinFailed(f'the group "{member.group}" was not joined: {member.closed}')
        ways = [tried for part in member.stack.parts if (tried := getattr(part, "tried", None))]
        return Timeout(
            f'the group "{member.group}" was not joined within {timeout:g} seconds: tried'
            f" {' and '.join(ways)} from {member.peer.endpoint};"
            " check that a member runs there, or give more time"
        )


def make_member(
    group: str,
    spec: StackSpec | None,
    name: str,
    receive: bool,
    backlog_bytes: int,
    observer: Observer | None = None,
) -> Member:
    """A member that is not started yet. Raises ConfigError."""
    stack = presets.loopback() if spec is None else spec
    return Member(
        group, stack, name, receive=receive, backlog_bytes=backlog_bytes, observer=observer
    )


def checked_payload(payload: Sendable) -> Payload:
    """A message as the stack takes it. Raises TypeError for what is not bytes."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, memoryview):
        flat = payload.c_contiguous and payload.nbytes
        return payload.cast("B") if flat else payload.tobytes()
    if isinstance(payload, bytearray):  # It may change, and a memoryview of it would forbid that.
        return bytes(payload)
    raise TypeError(f"a message is bytes, not {type(payload).__name__}: encode it first")


def checked_payloads(payloads: Iterable[Sendable]) -> Sequence[Payload]:
    """Messages as the stack takes them; a list of bytes is taken as it is."""
    if isinstance(payloads, bytes | bytearray | memoryview | str):
        raise TypeError("send_many takes a list of messages: use send for one")
    if isinstance(payloads, list | tuple) and set(map(type, payloads)) <= {bytes}:
        return payloads
    return [checked_payload(payload) for payload in payloads]
