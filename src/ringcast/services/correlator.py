"""The RequestCorrelator: matches calls with their answers, and requests for state with states.

It is pure, and the same over sockets and in the simulator. Its owner sends what is in `outgoing`,
hands events to the application, and handles those that are not for the application: it answers
calls (`Batch` with the flag CALL) with `answer`, and StateAsked with a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, SERVICE, Batch, Message, Payload
from ringcast.core.stack.env import Env
from ringcast.core.stack.inbox import ServicePart
from ringcast.core.stack.part import Installation
from ringcast.core.stack.ports import Control, Holding, Intake, Numbering, Ports
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import Frame, StatsReply, StatsRequest
from ringcast.errors import Malformed
from ringcast.services.calls import Calls, PendingCall, Wait
from ringcast.services.inquiries import Inquiries
from ringcast.services.messages import (
    Answer,
    Call,
    ServiceMessage,
    StateBegin,
    StateCancel,
    StateEnd,
    StatePiece,
    StateRefusal,
    StateRequest,
    read,
    read_reason,
    write,
    write_reason,
)
from ringcast.services.replies import NO_HANDLER, NOT_YET, Outcome, Reply
from ringcast.services.state_provider import StateProvider
from ringcast.services.state_requester import StateRequester

ANSWERED = 16
"""Flag of calls in the application's queue: the caller has its answer, but they are to be done."""
IGNORED = 32
"""Flag of calls in the application's queue: they are not to be done."""

OutgoingMessage = tuple[Address | None, bytes, int]
"""The receiver of a message, the message and its flag."""


@dataclass(frozen=True, kw_only=True)
class ServicesSnapshot(PartSnapshot):
    """Calls and states."""

    calls: int
    """Calls of this member that are not done."""
    unserved: int
    """Calls in the application's queue that wait for their answer."""
    giving: tuple[Address, ...]
    """The joiners that this member gives its state to."""
    state: str | None
    """How far this member is with the state that it asked for; None when it needs none."""


class RequestCorrelator(ServicePart):
    """Calls, states and inquiries of one member."""

    kinds = (StatsRequest, StatsReply)

    def __init__(self, env: Env, *, answers: bool, gives: bool, seeks: bool, early: int) -> None:
        """early: bytes of messages for this member alone that are acked early while it seeks."""
        super().__init__(env)
        self.answers = answers
        """Whether the application answers calls."""
        self.gives = gives
        """Whether the application gives its state to newcomers."""
        self.heard = int(gives)
        """Rises with every event in the application's queue that is not for it; never 0 for one
        that gives states."""
        self.unserved = 0
        """Calls that are in the application's queue and wait for their answer."""
        self.outgoing: deque[OutgoingMessage] = deque()
        """What is to be sent, in this order; the owner empties it."""
        self.made = Calls(env, self)
        self.inquiries = Inquiries(env)
        self.provider = StateProvider(env, self._post)
        self.requester = StateRequester(env, self, self._post) if seeks else None
        self._early = early
        self._deferred: set[Address] = set()
        """Newcomers that were told to ask other members first."""
        self._control: Control
        self._intake: Intake

    def connect(self, ports: Ports) -> None:
        numbering = ports[Numbering]
        self._control, self._intake = ports[Control], ports[Intake]
        self.provider.control, self.provider.numbering = self._control, numbering
        self.provider.holding = ports.all(Holding)
        if self.requester is not None:
            self.requester.control, self.requester.numbering = self._control, numbering
            self.requester.intake = self._intake
            self._intake.early = self._early

    @property
    def seeking(self) -> bool:
        """Whether the application has to wait for the state."""
        return self.requester is not None and not self.requester.over

    # Calls that this member makes -----------------------------------------------------------------

    def call(
        self,
        payload: Payload,
        members: Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
    ) -> PendingCall:
        """Call these members, or all members. Raises LocalError."""
        call = self.made.open(members, wait, timeout)
        message = write(Call(call.id), payload)
        for member in (None,) if members is None else members:
            self.outgoing.append((member, message, CALL))
        return call

    def sent(self, payloads: Iterable[Payload]) -> None:
        view = self._control.view
        assert view is not None
        for payload in payloads:
            request, _ = read(payload)
            assert isinstance(request, Call)
            self.made.sent(request.id, view.members)

    # Calls that others make -----------------------------------------------------------------------

    def calls(self, batch: Batch) -> Batch:
        self.heard += 1
        if self.answers and not self.seeking:
            self.unserved += len(batch)
            return _marked(batch, 0)
        for payload in batch.payloads:
            self._turn_down(batch.sender, payload)
        # A newcomer does what all members does, or its state would differ from theirs.
        is_common = self.answers and batch.dest is None
        return _marked(batch, ANSWERED if is_common else IGNORED)

    def _turn_down(self, caller: Address, payload: bytes) -> None:
        reply = NOT_YET if self.answers else NO_HANDLER
        found = self.question(Message(caller, 0, payload))
        if found is not None:
            self.answer(caller, found[0], reply)

    def question(self, message: Message) -> tuple[int, Message] | None:
        """The number of a call, and what is asked; None for what is not a call."""
        try:
            request, body = read(message.payload)
        except Malformed:
            request, body = StateEnd(0), b""
        if not isinstance(request, Call):
            self.env.counters["dropped_service_message"] += 1
            return None
        return request.id, message._replace(payload=bytes(body))

    def answer(self, caller: Address, id: int, reply: Reply) -> None:
        """Answer a call."""
        body = reply.payload if reply.ok else write_reason(reply.error)
        self._post(caller, Answer(id, reply.outcome.value), body)

    # Service messages -----------------------------------------------------------------------------

    def service_messages(self, batch: Batch) -> None:
        kept = False
        for payload in batch.payloads:
            try:
                request, body = read(payload)
                kept = self._read(request, body, batch.sender) or kept
            except Malformed:
                self.env.counters["dropped_service_message"] += 1
        if not (kept and self.requester is not None and self.requester.keep(batch)):
            self._intake.absorbed(batch)

    def _read(self, request: ServiceMessage, body: Payload, source: Address) -> bool:
        """Whether the body is kept for the application to take."""
        match request:
            case Answer(id, outcome):
                self.made.answered(source, id, _reply(outcome, body))
            case StateRequest(id):
                self._on_ask(id, source)
            case StateCancel(id):
                self.provider.cancel((source,), id)
            case StateRefusal() | StateBegin() | StatePiece() | StateEnd():
                return self.requester is not None and self.requester.read(request, body, source)
            case _:
                raise Malformed("a call is not a service message")
        return False

    def _on_ask(self, id: int, source: Address) -> None:
        if not self.gives or self.seeking:
            self._post(source, StateRefusal(id, 0))
        elif self.requester is not None and self.requester.lacks and source not in self._deferred:
            self._deferred.add(source)
            self._post(source, StateRefusal(id, 2))
        else:
            self.provider.asked(source, id)

    def _post(self, to: Address, request: ServiceMessage, body: Payload = b"") -> None:
        view = self._control.view
        if view is not None and to in view:
            self.outgoing.append((to, write(request, body), SERVICE))

    # ----------------------------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        self.inquiries.on_frame(frame, source, self._control.view)

    def on_view(self, installation: Installation) -> None:
        self.made.gone(installation.left)
        self.inquiries.gone(installation.left)
        self.provider.cancel(installation.left)
        self._deferred.difference_update(installation.left)
        if self.requester is not None:
            self.requester.viewed(installation.left, installation.is_merge)

    def on_timer(self, name: str) -> None:
        if name.isdecimal():
            self.made.expire(name)
        elif self.requester is not None:
            self.requester.on_timer(name)

    def snapshot(self) -> ServicesSnapshot:
        return ServicesSnapshot(
            calls=len(self.made),
            unserved=self.unserved,
            giving=tuple(transfer.joiner for transfer in self.provider.active),
            state=None if self.requester is None else self.requester.stage.value,
        )


def _marked(batch: Batch, flag: int) -> Batch:
    """The batch for the queue; a layer below may keep the original, to send it again."""
    return Batch(
        batch.sender,
        batch.payloads,
        batch.nbytes,
        dest=batch.dest,
        first=batch.first,
        flags=batch.flags & ~(ANSWERED | IGNORED) | flag,
        sent_at=batch.sent_at,
    )


def _reply(outcome: int, body: Payload) -> Reply:
    """What a member has answered. Raises Malformed."""
    if outcome == Outcome.VALUE.value:
        return Reply(Outcome.VALUE, bytes(body))
    if outcome not in (Outcome.ERROR.value, Outcome.NO_HANDLER.value, Outcome.BUSY.value):
        raise Malformed("no answer has this outcome")
    return Reply(Outcome(outcome), error=read_reason(body))
