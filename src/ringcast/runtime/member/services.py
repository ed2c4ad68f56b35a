"""Calls and states of a running member: sends service messages, and wakes waiting callers.

Verbs are safe from any thread, and nothing waits here; `settle` and `step` run under the member's
lock, after each change.

A caller that waits for answers may be the very one that takes messages, or keep it waiting. Then
messages are put aside meanwhile, as for a blocked sender, so that no sender waits for this member's
window; and the caller is told to answer the calls among them, or two members that call each other
would wait for each other for ever. It answers no call that comes behind a request for the state:
that has to find the application as it was there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, Batch, Payload
from ringcast.core.model.events import Event, StateAsked
from ringcast.errors import Closed, LocalError, NotMember, Timeout, TooLarge
from ringcast.runtime.loop.callers import WaitingCallers
from ringcast.runtime.loop.waiters import MakeWaiter, Waiter
from ringcast.runtime.member.arguments import checked_targets
from ringcast.runtime.member.blocked_senders import MAKING_VIEW, names
from ringcast.runtime.member.incoming import RELIEF_SECONDS
from ringcast.runtime.member.state_transfer import StateTransfers
from ringcast.runtime.member.stats import member_report, packed
from ringcast.services.calls import CALLS_MAX, PendingCall, Wait
from ringcast.services.correlator import ANSWERED, IGNORED, RequestCorrelator
from ringcast.services.inquiries import Received
from ringcast.services.messages import Call, write
from ringcast.services.replies import Outcome, Replies, Reply

if TYPE_CHECKING:
    from ringcast.runtime.member.member import Member

_HEAD = len(write(Call(0))) + 8
"""Bytes that a call or an answer may need besides what it carries."""


@dataclass(frozen=True)
class ServiceOptions:
    """What an application does besides sending and receiving."""

    answers: bool = False
    """Whether it answers calls."""
    gives: bool = False
    """Whether it gives its state to newcomers."""
    seeks: bool = False
    """Whether it wants the group's state before its first message."""


class MemberServices:
    """Calls and states of one member."""

    def __init__(self, member: Member, services: ServiceOptions, backlog_bytes: int) -> None:
        self._member = member
        self.correlator = RequestCorrelator(
            member.stack.env,
            answers=services.answers,
            gives=services.gives,
            seeks=services.seeks,
            early=backlog_bytes,
        )
        member.stack.attach(self.correlator)
        self._inquiries = self.correlator.inquiries
        self.states = StateTransfers(member, self.correlator)
        self._callers = WaitingCallers()
        self._queued: deque[Waiter] = deque()
        """Callers that wait until fewer calls wait for answers."""
        self._tasks: tuple[Collection[object], ...] = (
            self.correlator.outgoing,
            self._callers.waiters,
            self._queued,
            self._inquiries.asked,
        )
        """What `step` and `settle` work off."""
        self._looked = 0
        """How many calls had arrived when a waiter was last told to answer them."""
        self._to_answer: set[int] = set()
        """Calls whose callers were woken to answer the calls of others."""
        self._hand_seen = -1
        """The refill up to which the application's own queue has no unclaimed call."""

    # Under the member's lock ----------------------------------------------------------------------

    def is_busy(self) -> bool:
        """Whether `step` and `settle` have something to do."""
        return self.states.active or any(self._tasks)

    def has_waiters(self) -> bool:
        """Whether a caller may have to be helped soon."""
        return bool(self._callers.waiters)

    def step(self, now: float) -> bool:
        """Send service messages, and make room for waiting callers; whether there was anything."""
        correlator, posted = self.correlator, False
        while correlator.outgoing:
            to, payload, flags = correlator.outgoing.popleft()
            self._member.outgoing.send_service(payload, to, flags, now)
            posted = True
        if self._inquiries.asked:
            posted = True
            report = packed(member_report(self._member, now))
            while self._inquiries.asked:
                self._inquiries.answer(report)
        return (bool(self._callers) and self._relieve(now)) or posted

    def settle(self) -> None:
        """Wake the callers that have what they waited for."""
        made = self.correlator.made
        for call in made.finished:
            waiter = self._callers.pop(call.id)
            if waiter is not None:
                waiter.tell()
        made.finished.clear()
        is_closed = self._member.closed is not None
        if is_closed:
            self._callers.tell_all()
        if self._queued:
            room = len(self._queued) if is_closed else CALLS_MAX - len(made)
            for _ in range(min(room, len(self._queued))):
                self._queued.popleft().tell()
        self.states.settle()

    def _relieve(self, now: float) -> bool:
        """Do for callers what they cannot do; whether anything was put aside."""
        incoming, unserved = self._member.incoming, self.correlator.unserved
        if not (incoming.ready or unserved):
            return False
        idle = now - incoming.visited
        if idle == float("inf") and not unserved:
            return False  # No caller has ever asked for messages.
        if incoming.reader not in self._callers and idle < RELIEF_SECONDS:
            return False
        took = incoming.put_aside(now)
        if unserved and (took or self._looked != self.correlator.heard):
            self._looked = self.correlator.heard
            self._wake_caller(incoming.reader)
        return took

    def _wake_caller(self, reader: object) -> None:
        """Tell the caller that takes messages otherwise, if it is among them; else the first.

        It is no longer one that waits: if a handler calls in turn, that call is the next to tell.
        """
        id = self._callers.first(reader)
        waiter = self._callers.pop(id)
        assert waiter is not None
        self._to_answer.add(id)
        waiter.tell()

    # Callers --------------------------------------------------------------------------------------

    def call(
        self,
        payload: Payload,
        to: Address | Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
        make_waiter: MakeWaiter,
    ) -> PendingCall | Waiter:
        """Make a call; or the waiter to wait for, since too many calls wait for answers.

        Raises Closed, NotMember, TooLarge, LocalError.
        """
        members = None if to is None else checked_targets(to)
        self._check_size(payload)
        member = self._member

        def call(now: float) -> PendingCall | Waiter:
            view = member.view
            if member.closed is not None or member.left or view is None:
                reason = member.closed or "it is being left"
                raise Closed(f"the group is closed: {reason}")
            for address in members or ():
                if address not in view:
                    raise NotMember(f"{address} is not in the view; call some of view.members")
            if len(self.correlator.made) >= CALLS_MAX:
                waiter = make_waiter()
                self._queued.append(waiter)
                return waiter
            return self.correlator.call(payload, members, wait, timeout)

        return member.act(call)

    def await_answers(self, call: PendingCall, make_waiter: MakeWaiter) -> Waiter | None:
        """A waiter to be told of answers, or to look for calls; None when the call is done.

        Raises Closed.
        """

        def wait(now: float) -> Waiter | None:
            if call.done:
                return None
            if self._member.closed is not None:
                raise Closed(f"the group is closed: {self._member.closed}")
            waiter = make_waiter()
            self._callers.add(call.id, waiter)
            return waiter

        return self._member.act(wait)

    def result(self, call: PendingCall, timeout: float | None) -> Replies:
        """What came of a call that is done. Raises Timeout when it could not even be sent."""
        if call.was_sent:
            return call.replies
        stack = self._member.stack
        who = tuple(names(stack, stack.waits_for))
        why = stack.block_text or (
            f"the window is full, and waits for {', '.join(who)}" if who else MAKING_VIEW
        )
        raise Timeout(f"the call was not sent within {timeout:g} seconds: {why}", waits_for=who)

    def cancel(self, call: PendingCall) -> None:
        """The caller no longer waits for this call."""

        def cancel(now: float) -> None:
            self._callers.pop(call.id)
            self.correlator.made.cancel(call)
            if call.id in self._to_answer:  # Another caller has to do it.
                self._to_answer.discard(call.id)
                self._looked = -1

        self._member.act(cancel)

    def give_up_queue(self, waiter: Waiter) -> None:
        """A caller that waits to make its call goes away; if it had its turn, the next has it."""

        def leave(now: float) -> None:
            if waiter in self._queued:
                self._queued.remove(waiter)

        self._member.act(leave)

    # Those who watch ------------------------------------------------------------------------------

    def inquire(self) -> dict[Address, Received]:
        """Ask all members for their figures; returns the reports that have arrived until now.

        This member's own is among them. Never waits; call it again for later ones.
        """

        def ask(now: float) -> dict[Address, Received]:
            view, me = self._member.view, self._member.peer.address
            reports = dict(self._inquiries.reports)
            self._inquiries.ask(() if view is None else view.members)
            reports[me] = Received(packed(member_report(self._member, now)), now, 0.0)
            return reports

        return self._member.act(ask)

    def start_answering(self, receive: bool) -> None:
        """The application answers calls from now on. Raises LocalError."""
        if not receive:
            raise LocalError(
                "a member that answers calls asks for events: join without receive=False"
            )

        def start(now: float) -> None:
            self.correlator.answers = True

        self._member.act(start)

    # Those who answer -----------------------------------------------------------------------------

    def claim(self, batch: Batch) -> bool:
        """Whether these calls are the caller's to answer: no other thread has begun to."""
        return self._member.act(lambda now: self._claim(batch))

    def claim_waiting(
        self, call: PendingCall, refills: int, in_hand: Callable[[], Sequence[Event]]
    ) -> list[Batch]:
        """The calls that a woken caller has to answer: those among what the application has in hand
        and what was put aside, up to a request for the state. Each is looked at once.

        refills: how often the application's queue was refilled.
        """
        if call.id not in self._to_answer:
            return []  # It was woken for its answers.

        def claim(now: float) -> list[Batch]:
            self._to_answer.discard(call.id)
            claimed: list[Batch] = []
            if refills != self._hand_seen:
                for event in in_hand():
                    if isinstance(event, StateAsked):
                        return claimed
                    if isinstance(event, Batch) and self._claim_unanswered(event):
                        claimed.append(event)
                self._hand_seen = refills
            duties = self._member.incoming.duties
            while duties and isinstance(duty := duties[0], Batch):
                duties.popleft()
                if self._claim_unanswered(duty):
                    claimed.append(duty)
            return claimed

        return self._member.act(claim)

    def _claim_unanswered(self, batch: Batch) -> bool:
        return batch.flags & (CALL | ANSWERED) == CALL and self._claim(batch)

    def _claim(self, batch: Batch) -> bool:
        if batch.flags & IGNORED:
            return False
        batch.flags |= IGNORED
        if not batch.flags & ANSWERED:
            self.correlator.unserved -= len(batch)
        return True

    def answer(self, caller: Address, id: int, reply: Reply) -> None:
        """Answer a call, unless the group is closed."""
        try:
            self._check_size(reply.payload)
        except TooLarge as error:
            reply = Reply(Outcome.ERROR, error=str(error))
        self._member.act(lambda now: self.correlator.answer(caller, id, reply))

    def _check_size(self, payload: Payload) -> None:
        largest = self._member.stack.max_message - _HEAD
        if len(payload) > largest:
            raise TooLarge(
                f"a call or an answer of {len(payload):,} bytes is larger than the {largest:,} that"
                " this stack carries; split it, or use a stack with Fragment and a larger"
                " max_message"
            )
