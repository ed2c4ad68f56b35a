"""States of a running member: provided to newcomers in pieces, or read from the provider.

Every method is safe from any thread and never waits. Waiting and calling the application is in
`runtime.api.services_aio` and `services_blocking`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from ringcast.core.model.address import Address
from ringcast.core.model.batch import SERVICE, Payload
from ringcast.core.model.events import Event, StateAsked
from ringcast.errors import Closed, LocalError, RingcastError, StateFailed
from ringcast.runtime.loop.waiters import MakeWaiter, Waiter
from ringcast.runtime.member.outgoing import PendingSend
from ringcast.services.correlator import RequestCorrelator
from ringcast.services.messages import (
    StateEnd,
    StatePiece,
    StateRefusal,
    write,
    write_reason,
)
from ringcast.services.state_chunks import Cutter, piece_size
from ringcast.services.state_provider import StateTransfer
from ringcast.services.state_requester import Stage

if TYPE_CHECKING:
    from ringcast.runtime.member.member import Member

RUN = 16
"""Pieces that are sent at once."""

Chunk = bytes | bytearray | memoryview
StateValue = Chunk | Iterable[Chunk] | AsyncIterable[Chunk] | None
"""What an application may return as its state: all of it, or chunks; None for no state."""


class Interrupted(RingcastError):
    """The state that was being read is void, since its provider is gone: reading starts again.

    Raised by the chunks that a `load` iterates; let it pass.
    """


class EndOfState(Enum):
    """Why no more pieces follow."""

    WHOLE = "the state is whole"
    VOID = "the provider is gone"


class StateTransfers:
    """The state of one member's application, and of the group it has joined."""

    def __init__(self, member: Member, correlator: RequestCorrelator) -> None:
        self._member, self._correlator = member, correlator
        self._size = piece_size(member.stack.max_message, member.stack.env.mtu)
        self._readers: list[Waiter] = []
        self._news = 0
        self._is_read = False
        self.active = correlator.requester is not None
        """Whether `settle` has something to do: this member waits for a state."""
        self.guarded = correlator.requester is not None
        """Whether events must go through `admit` before the application gets them."""

    def settle(self) -> None:
        """Wake callers that wait for the state. Runs under the member's lock."""
        requester = self._correlator.requester
        if requester is None:
            return
        self.active = self._member.incoming.parks = not requester.over
        if self._readers and (self._member.closed is not None or requester.news != self._news):
            readers, self._readers = self._readers, []
            for waiter in readers:
                waiter.tell()

    # Reading a state -----------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to read; one reader at a time. Raises LocalError."""
        requester = self._correlator.requester
        if requester is None:
            raise LocalError("this member wants no state: join with state=True to get one")
        if requester.stage is Stage.TAKEN or self._is_read:
            raise LocalError("the state is given once, and was taken already")
        self._is_read = True

    def close(self, failed: bool) -> None:
        """End reading; if it failed, what was read is void, and is sent again."""
        self._is_read = False
        requester = self._correlator.requester
        assert requester is not None
        if failed:
            self._member.act(lambda now: requester.restart())

    def begin(self, make_waiter: MakeWaiter) -> int | Waiter | None:
        """The number of the attempt, None if no member has a state; or the waiter to wait for.

        Raises StateFailed, Closed.
        """
        requester = self._correlator.requester
        assert requester is not None

        def begin(now: float) -> int | Waiter | None:
            if requester.stage is Stage.NONE and requester.lacks:
                raise StateFailed(
                    "this member began without a state and has merged with others that may have"
                    " one: leave and join again to get it"
                )
            if requester.stage is Stage.NONE:
                requester.is_told = True
                return None
            if requester.stage is Stage.FAILED:
                raise StateFailed(f"the group's state could not be had: {self._troubles()}")
            if requester.stage in (Stage.ALONE, Stage.ASKING):
                return self._wait(make_waiter)
            return requester.attempt

        return self._member.act(begin)

    def read(self, attempt: int, make_waiter: MakeWaiter) -> list[Payload] | EndOfState | Waiter:
        """The next pieces, the end, or the waiter to wait for. Raises Closed."""
        requester = self._correlator.requester
        assert requester is not None

        def read(now: float) -> list[Payload] | EndOfState | Waiter:
            if requester.attempt != attempt or requester.over:
                return EndOfState.VOID
            if requester.waiting:
                return requester.take()
            return EndOfState.WHOLE if requester.stage is Stage.READY else self._wait(make_waiter)

        return self._member.act(read)

    def accept(self, attempt: int) -> bool:
        """The application has the state of this attempt; False when the attempt is void."""
        requester = self._correlator.requester
        assert requester is not None

        def accept(now: float) -> bool:
            if (
                requester.attempt != attempt
                or requester.stage is not Stage.READY
                or requester.waiting
            ):
                return False
            requester.accept()
            return True

        return self._member.act(accept)

    def admit(self, events: list[Event]) -> list[Event]:
        """The events that the state does not contain."""
        requester = self._correlator.requester
        assert requester is not None
        if requester.newcomer is None:
            self.guarded = False
            return events
        kept = requester.newcomer.filter(events)
        self.guarded = not requester.newcomer.over
        return kept

    def explain(self) -> str:
        """What this member waits for, as a sentence."""
        requester, view = self._correlator.requester, self._member.view
        assert requester is not None
        if requester.provider is None or view is None:
            return "the group is not joined yet"
        name = view.name(requester.provider)
        if requester.stage is Stage.ASKING:
            return f"{name} was asked and has not begun: check that its application takes events"
        return f"{name} provides it, and has not sent all of it"

    def _wait(self, make_waiter: MakeWaiter) -> Waiter:
        requester = self._correlator.requester
        assert requester is not None
        if self._member.closed is not None:
            raise Closed(f"the group is closed: {self._member.closed}")
        self._news = requester.news
        waiter = make_waiter()
        self._readers.append(waiter)
        return waiter

    def _troubles(self) -> str:
        requester, view = self._correlator.requester, self._member.view
        assert requester is not None
        name = str if view is None else view.name
        return "; ".join(f"{name(member)}: {why}" for member, why in requester.troubles.items())

    # Providing a state ----------------------------------------------------------------------------

    def find(self, asked: StateAsked) -> StateTransfer | None:
        """The transfer that is next for the application; None when no member wants it any more."""
        return self._member.act(lambda now: self._correlator.provider.find(asked))

    def give(self, transfer: StateTransfer) -> Pieces:
        """Begin to provide a state."""
        self._member.act(lambda now: self._correlator.provider.begin(transfer))
        return Pieces(transfer, self._size)

    def refuse(self, transfer: StateTransfer, error: BaseException | None) -> None:
        """Refuse: there is no state, or making it failed."""
        body = write_reason("" if error is None else f"{type(error).__name__}: {error}")
        message = StateRefusal(transfer.id, int(error is not None))
        self._member.act(lambda now: self._correlator.provider.finish(transfer, message, body))

    def send(
        self, messages: Sequence[Payload], to: Address, make_waiter: MakeWaiter
    ) -> PendingSend | None:
        """Send pieces; None when all are sent, else the run that waits for room.

        Raises Closed, and NotMember when the newcomer is gone.
        """

        def send(now: float) -> PendingSend | None:
            outgoing = self._member.outgoing
            if self._member.left:
                raise Closed("the group is being left: nothing more can be sent")
            sent = outgoing.send(messages, to, now, SERVICE)
            if sent == len(messages):
                return None
            run = PendingSend(messages, to, make_waiter(), now, SERVICE)
            run.sent = sent
            outgoing.add(run)
            return run

        return self._member.act(send) if messages else None

    def end(self, transfer: StateTransfer) -> None:
        """All is sent."""
        self._member.act(
            lambda now: self._correlator.provider.finish(transfer, StateEnd(transfer.id))
        )


class Pieces:
    """Cuts chunks of a state into service messages."""

    def __init__(self, transfer: StateTransfer, size: int) -> None:
        self.transfer = transfer
        self._cutter = Cutter(size)

    def runs(self, chunk: Payload) -> Iterator[list[Payload]]:
        """Messages with the pieces that are full, up to `RUN` at a time. Raises TypeError."""
        run: list[Payload] = []
        for piece in self._cutter.cut(chunk):
            run.append(self._letter(piece))
            if len(run) == RUN:
                yield run
                run = []
        if run:
            yield run

    def rest(self) -> list[Payload]:
        """A message with the rest, if there is any."""
        rest = self._cutter.rest()
        return [self._letter(rest)] if rest else []

    def _letter(self, piece: Payload) -> Payload:
        return write(StatePiece(self.transfer.id), piece)


def chunks_of(made: StateValue) -> Iterator[Chunk] | AsyncIterator[Chunk]:
    """What an application has made, chunk by chunk. Raises TypeError."""
    if isinstance(made, bytes | bytearray | memoryview):
        return iter((made,))
    if isinstance(made, AsyncIterable):
        return aiter(made)
    if isinstance(made, Iterable) and not isinstance(made, str | dict):
        # What is there already may change while it is sent; what is made on the way may not.
        return iter([*map(frozen, made)]) if isinstance(made, Collection) else iter(made)
    raise TypeError(f"a state is bytes, or chunks of bytes, not {type(made).__name__}")


def frozen(chunk: Chunk) -> Payload:
    """A chunk as it is now: what the application can change is copied."""
    if isinstance(chunk, bytearray) or (isinstance(chunk, memoryview) and not chunk.readonly):
        return bytes(chunk)
    return chunk


def next_of(chunks: Iterator[Chunk]) -> Payload | None:
    """The next chunk, as it is now; None when there are no more."""
    chunk = next(chunks, None)
    return None if chunk is None else frozen(chunk)
