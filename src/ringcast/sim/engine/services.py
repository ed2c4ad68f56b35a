"""Calls and states of a simulated member: the correlator that ships, and an application beside it.

A test gives the application what it needs: `answer` answers calls, `provide` makes a state. Both
are called in their place among the events, when the application has been given what comes before.
A newcomer takes its state as it comes, unless `reads` is off, and is given what follows after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ringcast.core.model.batch import CALL, SERVICE, Batch, Message, Payload
from ringcast.core.model.events import Event, StateAsked
from ringcast.core.stack.stack import Stack
from ringcast.services.correlator import ANSWERED, IGNORED, RequestCorrelator
from ringcast.services.messages import StateEnd, StatePiece, StateRefusal, write
from ringcast.services.replies import Outcome, Reply
from ringcast.services.state_chunks import Cutter, piece_size
from ringcast.services.state_provider import StateTransfer
from ringcast.services.state_requester import Stage, StateRequester
from ringcast.sim.engine.log import Log
from ringcast.sim.engine.sending import SendQueue

EARLY_BYTES = 1_000_000

Answer = Callable[[Message], bytes]
Provide = Callable[[], Iterable[bytes] | None]


class Service:
    """What the application of one life of a member does for others, and asks of them."""

    def __init__(self, stack: Stack, queue: SendQueue, log: Log, seeks: bool) -> None:
        self.reads = True
        """Whether pieces of the state are taken as they come."""
        self.pieces: list[bytes] = []
        """What has arrived of the state, in the attempt that counts."""
        self.attempts = 0
        """How often a state was begun."""
        self.calls: list[Message] = []
        """The calls that the application was given, in order."""
        self.hear: Callable[[Event], None] | None = None
        """Called with each event that the application is given, if set."""
        self.over_at: float | None = None
        """When the search for a state had ended, of a newcomer."""
        self._stack, self._queue, self._log = stack, queue, log
        self._answer: Answer | None = None
        self._provide: Provide | None = None
        self._parked: list[Event] = []
        self._attempt = 0
        self._streams: list[tuple[StateTransfer, Iterator[Payload]]] = []
        self._size = piece_size(stack.max_message, stack.env.mtu)
        self.correlator = RequestCorrelator(
            stack.env, answers=False, gives=False, seeks=seeks, early=EARLY_BYTES
        )
        stack.attach(self.correlator)

    # What a test says -----------------------------------------------------------------------------

    def answer(self, answer: Answer) -> None:
        """Answer calls from now on."""
        self._answer, self.correlator.answers = answer, True

    def provide(self, provide: Provide) -> None:
        """Give states from now on; None for a newcomer that should ask another."""
        self._provide, self.correlator.gives = provide, True

    @property
    def requester(self) -> StateRequester:
        """The search of a newcomer."""
        assert self.correlator.requester is not None
        return self.correlator.requester

    @property
    def stage(self) -> Stage:
        """How far a newcomer is with its state."""
        return self.requester.stage

    @property
    def state(self) -> bytes | None:
        """The state that this newcomer has taken; None when there was none."""
        return b"".join(self.pieces) if self.stage is Stage.TAKEN else None

    # What the member does -------------------------------------------------------------------------

    def give(self, event: Event) -> None:
        """The next event for the application, or for the handler that acts in its place."""
        if self.correlator.seeking:
            self._parked.append(event)
        else:
            self._give(event)

    def run(self) -> bool:
        """Take, make and send what there is; whether there was anything."""
        correlator, done = self.correlator, self._seek()
        while correlator.outgoing:
            done = True
            to, payload, flags = correlator.outgoing.popleft()
            self._queue.add([payload], to, flags)
        correlator.made.finished.clear()
        for stream in list(self._streams):
            done = self._stream(*stream) or done
        return done

    # A newcomer -----------------------------------------------------------------------------------

    def _seek(self) -> bool:
        """Take what has arrived of the state; go on with the events when it is whole, or none."""
        requester = self.correlator.requester
        if requester is None:
            return False
        if requester.attempt != self._attempt:
            self._attempt = requester.attempt
            self.attempts += 1
            self.pieces.clear()
        took = self.reads and requester.waiting
        if took:
            self.pieces += [bytes(piece) for piece in requester.take()]
        if requester.stage is Stage.READY and not requester.waiting:
            requester.accept()
        if self.reads and requester.stage is Stage.NONE:
            requester.is_told = True
        if requester.over and self.over_at is None:
            self.over_at = self._stack.env.now
        if requester.over and self._parked:
            parked, self._parked = self._parked, []
            for event in parked:
                self._give(event)
            return True
        return took

    def _give(self, event: Event) -> None:
        requester = self.correlator.requester
        if requester is not None and requester.newcomer is not None and not requester.newcomer.over:
            for kept in requester.newcomer.filter([event]):
                self._hand(kept)
        else:
            self._hand(event)

    def _hand(self, event: Event) -> None:
        if isinstance(event, StateAsked):
            self._begin(event)
        elif isinstance(event, Batch) and event.flags & CALL:
            self._serve(event)
        else:
            self._log.add(event)
            if self.hear is not None:
                self.hear(event)

    # A provider -----------------------------------------------------------------------------------

    def _serve(self, batch: Batch) -> None:
        if batch.flags & IGNORED:
            return
        for message in batch:
            found = self.correlator.question(message)
            if found is None or self._answer is None:
                continue
            id, call = found
            self.calls.append(call)
            try:
                reply = Reply(Outcome.VALUE, self._answer(call))
            except Exception as error:
                reply = Reply(Outcome.ERROR, error=str(error))
            if not batch.flags & ANSWERED:
                self.correlator.answer(call.sender, id, reply)
        if not batch.flags & ANSWERED:
            self.correlator.unserved -= len(batch)

    def _begin(self, event: StateAsked) -> None:
        transfer = self.correlator.provider.find(event)
        if transfer is None or self._provide is None:
            return
        chunks = self._provide()
        if chunks is None:
            self.correlator.provider.finish(transfer, StateRefusal(transfer.id, 0))
            return
        self.correlator.provider.begin(transfer)
        self._streams.append((transfer, self._cut(chunks)))

    def _cut(self, chunks: Iterable[bytes]) -> Iterator[Payload]:
        cutter = Cutter(self._size)
        for chunk in chunks:
            yield from cutter.cut(chunk)
        if rest := cutter.rest():
            yield rest

    def _stream(self, transfer: StateTransfer, pieces: Iterator[Payload]) -> bool:
        """Send pieces while there is room."""
        sent = False
        while transfer.wanted and transfer.joiner not in self._queue:
            if not self._stack.writable(transfer.joiner):
                break
            piece = next(pieces, None)
            if piece is None:
                self.correlator.provider.finish(transfer, StateEnd(transfer.id))
            else:
                self._queue.add([write(StatePiece(transfer.id), piece)], transfer.joiner, SERVICE)
                self._queue.flush(self._stack.env.now)
            sent = True
        if not transfer.wanted:
            self._streams.remove((transfer, pieces))
        return sent
