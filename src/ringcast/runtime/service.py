"""The desk of a running member: its letters are sent, and callers that wait are let go on.

Verbs are safe from any thread, and nothing waits here; `settle` and `step` run under the member's
lock, after each change.

A caller that waits for answers may be the very one that takes messages, or keep it waiting. Then
messages are put aside meanwhile, as for a blocked sender, so that nobody waits for this member's
window; and the caller is told to answer the calls among them, or two members that call each other
would wait for each other for ever. It answers no call that comes behind a request for the state:
that has to find the application as it was there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringcast.core.address import Address
from ringcast.core.batch import CALL, Batch, Payload
from ringcast.core.events import Event, StateAsked
from ringcast.errors import Closed, LocalError, NotMember, Timeout, TooLarge
from ringcast.runtime.arguments import checked_targets
from ringcast.runtime.blame import names
from ringcast.runtime.incoming import RELIEF_AFTER
from ringcast.runtime.states import States
from ringcast.runtime.waiters import MakeWaiter, Waiter
from ringcast.services.calls import Pending, Wait
from ringcast.services.desk import ANSWERED, IGNORED, ServiceDesk
from ringcast.services.letters import Call, write
from ringcast.services.replies import Outcome, Replies, Reply

if TYPE_CHECKING:
    from ringcast.runtime.member import Member

_HEAD = len(write(Call(0))) + 8
"""Bytes that a call or an answer may need besides what it carries."""


@dataclass(frozen=True)
class Services:
    """What an application does besides sending and receiving."""

    answers: bool = False
    """Whether it answers calls."""
    gives: bool = False
    """Whether it gives its state to newcomers."""
    seeks: bool = False
    """Whether it wants the group's state before its first message."""


class Service:
    """Calls and states of one member."""

    def __init__(self, member: Member, services: Services, backlog_bytes: int) -> None:
        self._member = member
        self.desk = ServiceDesk(
            member.stack.env,
            answers=services.answers,
            gives=services.gives,
            seeks=services.seeks,
            early=backlog_bytes,
        )
        member.stack.seat(self.desk)
        self.states = States(member, self.desk)
        self._callers: dict[int, Waiter] = {}
        self._looked = 0
        """How many calls had come when somebody was told to answer them the last time."""

    # Under the member's lock ----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether `step` and `settle` have something to do."""
        return bool(self.desk.outgoing or self._callers or self.states.active)

    @property
    def waiting(self) -> bool:
        """Whether a caller may have to be helped soon."""
        return bool(self._callers)

    def step(self, now: float) -> bool:
        """Send letters, and make room for those who wait; whether there was anything."""
        desk, posted = self.desk, False
        while desk.outgoing:
            to, payload, flags = desk.outgoing.popleft()
            self._member.outgoing.talk(payload, to, flags, now)
            posted = True
        return (bool(self._callers) and self._relieve(now)) or posted

    def settle(self) -> None:
        """Let those go on who have what they waited for."""
        made = self.desk.made
        for call in made.finished:
            waiter = self._callers.pop(call.id, None)
            if waiter is not None:
                waiter.tell()
        made.finished.clear()
        if self._member.closed is not None:
            for waiter in self._callers.values():
                waiter.tell()
            self._callers.clear()
        self.states.settle()

    def _relieve(self, now: float) -> bool:
        """Do for callers what they cannot do; whether anything was put aside."""
        incoming, unserved = self._member.incoming, self.desk.unserved
        if not (incoming.ready or unserved):
            return False
        idle = now - incoming.visited
        if idle == float("inf") and not unserved:
            return False  # Nobody has ever come for messages.
        blocked = [waiter.who for waiter in self._callers.values()]
        if incoming.reader not in blocked and idle < RELIEF_AFTER:
            return False
        took = incoming.put_aside(now)
        if unserved and (took or self._looked != self.desk.heard):
            self._looked = self.desk.heard
            self._wake_caller(incoming.reader)
        return took

    def _wake_caller(self, reader: object) -> None:
        """Tell the caller that takes messages otherwise, if it is among them; else the first.

        It is no longer one that waits: if a handler calls in turn, that call is the next to tell.
        """
        callers = self._callers
        id = next((id for id, waiter in callers.items() if waiter.who == reader), min(callers))
        callers.pop(id).tell()

    # Callers --------------------------------------------------------------------------------------

    def call(
        self,
        payload: Payload,
        to: Address | Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
    ) -> Pending:
        """Make a call. Raises Closed, NotMember, TooLarge, LocalError."""
        members = None if to is None else checked_targets(to)
        self._check_size(payload)
        member = self._member

        def call(now: float) -> Pending:
            view = member.view
            if member.closed is not None or member.left or view is None:
                reason = member.closed or "it is being left"
                raise Closed(f"the group is closed: {reason}")
            for address in members or ():
                if address not in view:
                    raise NotMember(f"{address} is not in the view; call some of view.members")
            return self.desk.call(payload, members, wait, timeout)

        return member.act(call)

    def await_answers(self, call: Pending, make_waiter: MakeWaiter) -> Waiter | None:
        """Somebody to be told of answers, or to look for calls; None when the call is done.

        Raises Closed.
        """

        def wait(now: float) -> Waiter | None:
            if call.done:
                return None
            if self._member.closed is not None:
                raise Closed(f"the group is closed: {self._member.closed}")
            waiter = self._callers[call.id] = make_waiter()
            return waiter

        return self._member.act(wait)

    def result(self, call: Pending, timeout: float | None) -> Replies:
        """What came of a call that is done. Raises Timeout when it could not even be sent."""
        if call.was_sent:
            return call.replies
        stack = self._member.stack
        who = tuple(names(stack, stack.waits_for))
        whom = ", ".join(who) or "a change of the view"
        why = f"the call was not sent within {timeout:g} seconds: the window is full, and waits for"
        raise Timeout(f"{why} {whom}", waits_for=who)

    def cancel(self, call: Pending) -> None:
        """Nobody waits for this call any more."""

        def cancel(now: float) -> None:
            self._callers.pop(call.id, None)
            self.desk.made.cancel(call)

        self._member.act(cancel)

    def start_answering(self, receive: bool) -> None:
        """The application answers calls from now on. Raises LocalError."""
        if not receive:
            raise LocalError("whoever answers calls asks for events: join without receive=False")

        def start(now: float) -> None:
            self.desk.answers = True

        self._member.act(start)

    # Those who answer -----------------------------------------------------------------------------

    def claim(self, batch: Batch) -> bool:
        """Whether these calls are the caller's to answer: nobody else has begun to."""
        return self._member.act(lambda now: self._claim(batch))

    def claim_waiting(self, in_hand: Sequence[Event]) -> list[Batch]:
        """The calls among these events and those put aside, up to a request for the state."""

        def claim(now: float) -> list[Batch]:
            claimed: list[Batch] = []
            for event in (*in_hand, *self._member.incoming.backlog):
                if isinstance(event, StateAsked):
                    break
                if isinstance(event, Batch) and event.flags & (CALL | ANSWERED) == CALL:
                    claimed += [event] if self._claim(event) else []
            return claimed

        return self._member.act(claim) if self.desk.unserved else []

    def _claim(self, batch: Batch) -> bool:
        if batch.flags & IGNORED:
            return False
        batch.flags |= IGNORED
        if not batch.flags & ANSWERED:
            self.desk.unserved -= len(batch)
        return True

    def answer(self, caller: Address, id: int, reply: Reply) -> None:
        """Answer a call, unless the group is closed."""
        try:
            self._check_size(reply.payload)
        except TooLarge as error:
            reply = Reply(Outcome.ERROR, error=str(error))
        self._member.act(lambda now: self.desk.answer(caller, id, reply))

    def _check_size(self, payload: Payload) -> None:
        largest = self._member.stack.max_message - _HEAD
        if len(payload) > largest:
            raise TooLarge(
                f"a call or an answer of {len(payload):,} bytes is larger than the {largest:,} that"
                " this stack carries; split it, or use a stack with Fragment and a larger"
                " max_message"
            )
