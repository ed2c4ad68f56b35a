"""The desk: beside the application, it reads the letters of other members and writes to them.

It is pure, and the same over sockets and in the simulator. Whoever owns it sends what is in
`outgoing`, hands events to the application, and sees to those that are not for it: calls
(`Batch` with the flag CALL) are answered by `answer`, and StateAsked by a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ringcast.core.address import Address
from ringcast.core.batch import CALL, LETTER, Batch, Message, Payload
from ringcast.core.env import Env
from ringcast.core.inbox import Desk
from ringcast.core.part import Installation
from ringcast.core.ports import Control, Intake, Ports
from ringcast.errors import Malformed
from ringcast.services.calls import Calls, Pending, Wait
from ringcast.services.giver import Giver
from ringcast.services.letters import (
    Answer,
    Ask,
    Begin,
    Call,
    Cancel,
    End,
    Letter,
    Piece,
    Refuse,
    read,
    write,
)
from ringcast.services.replies import NO_HANDLER, NOT_YET, Outcome, Reply
from ringcast.services.seeker import Seeker

ANSWERED = 16
"""Flag of calls in the application's queue: the caller has its answer, but they are to be done."""
IGNORED = 32
"""Flag of calls in the application's queue: they are not to be done."""
ERROR_MAX = 2_000
"""Characters of a reason that is sent."""

Outgoing = tuple[Address | None, bytes, int]
"""Whom a message is for, the message and its flag."""


class ServiceDesk(Desk):
    """Calls and states of one member."""

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
        self.outgoing: deque[Outgoing] = deque()
        """What is to be sent, in this order; the owner empties it."""
        self.made = Calls(env, self)
        self.giver = Giver(env, self._post)
        self.seeker = Seeker(env, self, self._post) if seeks else None
        self._early = early
        self._control: Control
        self._intake: Intake

    def connect(self, ports: Ports) -> None:
        assert ports.numbering is not None
        assert ports.intake is not None
        self._control, self._intake = ports.control, ports.intake
        self.giver.control, self.giver.numbering = ports.control, ports.numbering
        if self.seeker is not None:
            self.seeker.control, self.seeker.numbering = ports.control, ports.numbering
            self.seeker.intake = ports.intake
            ports.intake.early = self._early

    @property
    def seeking(self) -> bool:
        """Whether the application has to wait for the state."""
        return self.seeker is not None and not self.seeker.over

    # Calls that this member makes -----------------------------------------------------------------

    def call(
        self,
        payload: Payload,
        members: Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
    ) -> Pending:
        """Ask these members, or everybody. Raises LocalError."""
        call = self.made.open(members, wait, timeout)
        message = write(Call(call.id), payload)
        for member in (None,) if members is None else members:
            self.outgoing.append((member, message, CALL))
        return call

    def sent(self, payloads: Iterable[Payload]) -> None:
        view = self._control.view
        assert view is not None
        for payload in payloads:
            letter, _ = read(payload)
            assert isinstance(letter, Call)
            self.made.sent(letter.id, view.members)

    # Calls that others make -----------------------------------------------------------------------

    def calls(self, batch: Batch) -> Batch:
        self.heard += 1
        if self.answers and not self.seeking:
            self.unserved += len(batch)
            return _marked(batch, 0)
        for payload in batch.payloads:
            self._turn_down(batch.sender, payload)
        # A newcomer does what everybody does, or its state would differ from theirs.
        is_common = self.answers and batch.dest is None
        return _marked(batch, ANSWERED if is_common else IGNORED)

    def _turn_down(self, caller: Address, payload: Payload) -> None:
        reply = NOT_YET if self.answers else NO_HANDLER
        found = self.question(Message(caller, 0, payload))
        if found is not None:
            self.answer(caller, found[0], reply)

    def question(self, message: Message) -> tuple[int, Message] | None:
        """The number of a call, and what is asked; None for what is no call."""
        try:
            letter, body = read(message.payload)
        except Malformed:
            letter, body = End(0), b""
        if not isinstance(letter, Call):
            self.env.counters["dropped_letter"] += 1
            return None
        return letter.id, message._replace(payload=body)

    def answer(self, caller: Address, id: int, reply: Reply) -> None:
        """Answer a call."""
        body = reply.payload if reply.ok else reply.error[:ERROR_MAX].encode()
        self._post(caller, Answer(id, reply.outcome.value), body)

    # Letters --------------------------------------------------------------------------------------

    def letters(self, batch: Batch) -> None:
        kept = False
        for payload in batch.payloads:
            try:
                letter, body = read(payload)
                kept = self._read(letter, body, batch.sender) or kept
            except Malformed:
                self.env.counters["dropped_letter"] += 1
        if kept and self.seeker is not None:
            self.seeker.keep(batch)
        else:
            self._intake.absorbed(batch)

    def _read(self, letter: Letter, body: Payload, source: Address) -> bool:
        """Whether the body is kept for the application to take."""
        match letter:
            case Answer(id, outcome):
                self.made.answered(source, id, _reply(outcome, body))
            case Ask(id):
                if self.gives and not self.seeking:
                    self.giver.asked(source, id)
                else:
                    self._post(source, Refuse(id, 0))
            case Cancel(id):
                self.giver.cancel((source,), id)
            case Refuse() | Begin() | Piece() | End():
                return self.seeker is not None and self.seeker.read(letter, body, source)
            case _:
                raise Malformed("a call is no letter")
        return False

    def _post(self, to: Address, letter: Letter, body: Payload = b"") -> None:
        view = self._control.view
        if view is not None and to in view:
            self.outgoing.append((to, write(letter, body), LETTER))

    # ----------------------------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        self.made.gone(installation.left)
        self.giver.cancel(installation.left)
        if self.seeker is not None:
            self.seeker.viewed(installation.left)

    def on_timer(self, name: str) -> None:
        if name.isdecimal():
            self.made.expire(name)
        elif self.seeker is not None:
            self.seeker.on_timer(name)

    def snapshot(self) -> dict[str, object]:
        return {
            "calls": len(self.made),
            "unserved": self.unserved,
            "giving": [str(transfer.joiner) for transfer in self.giver.active],
            "state": None if self.seeker is None else self.seeker.stage.value,
        }


def _marked(batch: Batch, flag: int) -> Batch:
    """The batch for the queue; a layer below may keep the one that came, to send it again."""
    return Batch(
        batch.sender,
        batch.payloads,
        batch.nbytes,
        dest=batch.dest,
        first=batch.first,
        flags=batch.flags | flag,
        sent_at=batch.sent_at,
    )


def _reply(outcome: int, body: Payload) -> Reply:
    """What a member has answered. Raises Malformed."""
    if outcome == Outcome.VALUE.value:
        return Reply(Outcome.VALUE, body)
    if outcome not in (Outcome.ERROR.value, Outcome.NO_HANDLER.value):
        raise Malformed("no answer has this outcome")
    return Reply(Outcome(outcome), error=bytes(body).decode(errors="replace"))
