"""Calls and states of a simulated member: the desk that ships, and an application beside it.

A test gives the application what it needs: `answer` answers calls, `provide` makes a state. Both
are called in their place among the events, when the application has been given what comes before.
A newcomer takes its state as it comes, unless `reads` is off, and is given what follows after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ringcast.core.batch import CALL, LETTER, Batch, Message, Payload
from ringcast.core.events import Event, StateAsked
from ringcast.core.stack import Stack
from ringcast.services.desk import ANSWERED, IGNORED, ServiceDesk
from ringcast.services.giver import Transfer
from ringcast.services.letters import End, Piece, Refuse, write
from ringcast.services.pieces import Cutter, piece_size
from ringcast.services.replies import Outcome, Reply
from ringcast.services.seeker import Stage
from ringcast.sim.log import Log
from ringcast.sim.sending import SendQueue

EARLY_BYTES = 1_000_000

Answer = Callable[[Message], Payload]
Provide = Callable[[], Iterable[bytes] | None]


class Service:
    """What the application of one life of a member does for others, and asks of them."""

    def __init__(self, stack: Stack, queue: SendQueue, log: Log, seeks: bool) -> None:
        self.reads = True
        """Whether pieces of the state are taken as they come."""
        self.pieces: list[bytes] = []
        """What has come of the state, in the attempt that counts."""
        self.attempts = 0
        """How often a state was begun."""
        self.calls: list[Message] = []
        """The calls that the application was given, in order."""
        self._stack, self._queue, self._log = stack, queue, log
        self._answer: Answer | None = None
        self._provide: Provide | None = None
        self._parked: list[Event] = []
        self._attempt = 0
        self._streams: list[tuple[Transfer, Iterator[Payload]]] = []
        self._size = piece_size(stack.max_message, stack.env.mtu)
        self.desk = ServiceDesk(
            stack.env, answers=False, gives=False, seeks=seeks, early=EARLY_BYTES
        )
        stack.seat(self.desk)

    # What a test says -----------------------------------------------------------------------------

    def answer(self, answer: Answer) -> None:
        """Answer calls from now on."""
        self._answer, self.desk.answers = answer, True

    def provide(self, provide: Provide) -> None:
        """Give states from now on; None for a newcomer that should ask another."""
        self._provide, self.desk.gives = provide, True

    @property
    def stage(self) -> Stage:
        """How far a newcomer is with its state."""
        assert self.desk.seeker is not None
        return self.desk.seeker.stage

    @property
    def state(self) -> bytes | None:
        """The state that this newcomer has taken; None when there was none."""
        return b"".join(self.pieces) if self.stage is Stage.TAKEN else None

    # What the member does -------------------------------------------------------------------------

    def give(self, event: Event) -> None:
        """The next event for the application, or for whoever sees to it in its place."""
        if self.desk.seeking:
            self._parked.append(event)
        else:
            self._give(event)

    def run(self) -> bool:
        """Take, make and send what there is; whether there was anything."""
        desk, done = self.desk, self._seek()
        while desk.outgoing:
            done = True
            to, payload, flags = desk.outgoing.popleft()
            self._queue.add([payload], to, flags)
        desk.made.finished.clear()
        for stream in list(self._streams):
            done = self._stream(*stream) or done
        return done

    # A newcomer -----------------------------------------------------------------------------------

    def _seek(self) -> bool:
        """Take what has come of the state; go on with the events when it is whole, or none."""
        seeker = self.desk.seeker
        if seeker is None:
            return False
        if seeker.attempt != self._attempt:
            self._attempt = seeker.attempt
            self.attempts += 1
            self.pieces.clear()
        took = self.reads and seeker.waiting
        if took:
            self.pieces += [bytes(piece) for piece in seeker.take()]
        if seeker.stage is Stage.READY and not seeker.waiting:
            seeker.accept()
        if seeker.over and self._parked:
            parked, self._parked = self._parked, []
            for event in parked:
                self._give(event)
            return True
        return took

    def _give(self, event: Event) -> None:
        seeker = self.desk.seeker
        if seeker is not None and seeker.newcomer is not None and not seeker.newcomer.over:
            for kept in seeker.newcomer.filter([event]):
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

    # One who is there -----------------------------------------------------------------------------

    def _serve(self, batch: Batch) -> None:
        if batch.flags & IGNORED:
            return
        for message in batch:
            found = self.desk.question(message)
            if found is None or self._answer is None:
                continue
            id, call = found
            self.calls.append(call)
            try:
                reply = Reply(Outcome.VALUE, self._answer(call))
            except Exception as error:
                reply = Reply(Outcome.ERROR, error=str(error))
            if not batch.flags & ANSWERED:
                self.desk.answer(call.sender, id, reply)
        if not batch.flags & ANSWERED:
            self.desk.unserved -= len(batch)

    def _begin(self, event: StateAsked) -> None:
        transfer = self.desk.giver.find(event)
        if transfer is None or self._provide is None:
            return
        chunks = self._provide()
        if chunks is None:
            self.desk.giver.finish(transfer, Refuse(transfer.id, 0))
            return
        self.desk.giver.begin(transfer)
        self._streams.append((transfer, self._cut(chunks)))

    def _cut(self, chunks: Iterable[bytes]) -> Iterator[Payload]:
        cutter = Cutter(self._size)
        for chunk in chunks:
            yield from cutter.cut(chunk)
        if rest := cutter.rest():
            yield rest

    def _stream(self, transfer: Transfer, pieces: Iterator[Payload]) -> bool:
        """Send pieces while there is room."""
        sent = False
        while transfer.wanted and transfer.joiner not in self._queue:
            if not self._stack.writable(transfer.joiner):
                break
            piece = next(pieces, None)
            if piece is None:
                self.desk.giver.finish(transfer, End(transfer.id))
            else:
                self._queue.add([write(Piece(transfer.id), piece)], transfer.joiner, LETTER)
                self._queue.flush(self._stack.env.now)
            sent = True
        if not transfer.wanted:
            self._streams.remove((transfer, pieces))
        return sent
