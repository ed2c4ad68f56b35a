"""States of a running member: given to newcomers piece by piece, or read from whoever gives one.

Verbs are safe from any thread, and nothing waits here. What waits, and calls the application, is in
`answering` and `answering_sync`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from ringcast.core.address import Address
from ringcast.core.batch import LETTER, Payload
from ringcast.core.events import Event, StateAsked
from ringcast.errors import Closed, LocalError, RingcastError, StateFailed
from ringcast.runtime.outgoing import Run
from ringcast.runtime.waiters import MakeWaiter, Waiter
from ringcast.services.desk import ERROR_MAX, ServiceDesk
from ringcast.services.giver import Transfer
from ringcast.services.letters import End, Piece, Refuse, write
from ringcast.services.pieces import Cutter, piece_size
from ringcast.services.seeker import Stage

if TYPE_CHECKING:
    from ringcast.runtime.member import Member

RUN = 16
"""Pieces that are sent at once."""

Chunk = bytes | bytearray | memoryview
Made = Chunk | Iterable[Chunk] | AsyncIterable[Chunk] | None
"""What an application may give as its state: all of it, or chunk by chunk; None for nothing."""


class Interrupted(RingcastError):
    """The state that was being read is void, since its giver is gone: it is read anew.

    Raised by the chunks that a `load` iterates; let it pass.
    """


class Ending(Enum):
    """Why there are no more pieces."""

    WHOLE = "the state is whole"
    VOID = "the giver is gone"


class States:
    """The state of one member's application, and of the group it has joined."""

    def __init__(self, member: Member, desk: ServiceDesk) -> None:
        self._member, self._desk = member, desk
        self._size = piece_size(member.stack.max_message, member.stack.env.mtu)
        self._readers: list[Waiter] = []
        self._news = 0
        self._is_read = False
        self.active = desk.seeker is not None
        """Whether `settle` has something to do: a state is sought."""
        self.guarded = desk.seeker is not None
        """Whether events must go through `admit` before the application gets them."""

    def settle(self) -> None:
        """Under the member's lock: tell whoever waits for the state."""
        seeker = self._desk.seeker
        if seeker is None:
            return
        self.active = self._member.incoming.parks = not seeker.over
        if self._readers and (self._member.closed is not None or seeker.news != self._news):
            readers, self._readers = self._readers, []
            for waiter in readers:
                waiter.tell()

    # A newcomer reads -----------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to read, one at a time. Raises LocalError."""
        seeker = self._desk.seeker
        if seeker is None:
            raise LocalError("this member wants no state: join with state=True to get one")
        if seeker.stage is Stage.TAKEN or self._is_read:
            raise LocalError("the state is given once, and somebody has taken it already")
        self._is_read = True

    def close(self, failed: bool) -> None:
        """Read no longer; what was read is void if that failed, and comes anew."""
        self._is_read = False
        seeker = self._desk.seeker
        assert seeker is not None
        if failed:
            self._member.act(lambda now: seeker.restart())

    def begin(self, make_waiter: MakeWaiter) -> int | Waiter | None:
        """The number of the attempt that has begun, None if nobody has a state; or who to wait.

        Raises StateFailed, Closed.
        """
        seeker = self._desk.seeker
        assert seeker is not None

        def begin(now: float) -> int | Waiter | None:
            if seeker.stage is Stage.NONE:
                return None
            if seeker.stage is Stage.FAILED:
                raise StateFailed(f"the group's state could not be had: {self._troubles()}")
            if seeker.stage in (Stage.ALONE, Stage.ASKING):
                return self._wait(make_waiter)
            return seeker.attempt

        return self._member.act(begin)

    def read(self, attempt: int, make_waiter: MakeWaiter) -> list[Payload] | Ending | Waiter:
        """The next pieces, or that there are no more; or who to wait. Raises Closed."""
        seeker = self._desk.seeker
        assert seeker is not None

        def read(now: float) -> list[Payload] | Ending | Waiter:
            if seeker.attempt != attempt or seeker.over:
                return Ending.VOID
            if seeker.waiting:
                return seeker.take()
            return Ending.WHOLE if seeker.stage is Stage.READY else self._wait(make_waiter)

        return self._member.act(read)

    def accept(self, attempt: int) -> bool:
        """The application has the state of this attempt; False when that is void."""
        seeker = self._desk.seeker
        assert seeker is not None

        def accept(now: float) -> bool:
            if seeker.attempt != attempt or seeker.stage is not Stage.READY or seeker.waiting:
                return False
            seeker.accept()
            return True

        return self._member.act(accept)

    def admit(self, events: list[Event]) -> list[Event]:
        """Of these events, what is not part of the state that was taken."""
        seeker = self._desk.seeker
        assert seeker is not None
        if seeker.newcomer is None:
            self.guarded = False
            return events
        kept = seeker.newcomer.filter(events)
        self.guarded = not seeker.newcomer.over
        return kept

    def explain(self) -> str:
        """What is waited for, in words."""
        seeker, view = self._desk.seeker, self._member.view
        assert seeker is not None
        if seeker.giver is None or view is None:
            return "the group is not joined yet"
        name = view.name(seeker.giver)
        if seeker.stage is Stage.ASKING:
            return f"{name} was asked and has not begun; does its application take events?"
        return f"{name} gives it, and has not come to its end"

    def _wait(self, make_waiter: MakeWaiter) -> Waiter:
        seeker = self._desk.seeker
        assert seeker is not None
        if self._member.closed is not None:
            raise Closed(f"the group is closed: {self._member.closed}")
        self._news = seeker.news
        waiter = make_waiter()
        self._readers.append(waiter)
        return waiter

    def _troubles(self) -> str:
        seeker, view = self._desk.seeker, self._member.view
        assert seeker is not None
        name = str if view is None else view.name
        return "; ".join(f"{name(member)}: {why}" for member, why in seeker.troubles.items())

    # A member gives -------------------------------------------------------------------------------

    def find(self, asked: StateAsked) -> Transfer | None:
        """The transfer that the application has come to; None when it is no longer wanted."""
        return self._member.act(lambda now: self._desk.giver.find(asked))

    def give(self, transfer: Transfer) -> Pieces:
        """Begin to give."""
        self._member.act(lambda now: self._desk.giver.begin(transfer))
        return Pieces(transfer, self._size)

    def refuse(self, transfer: Transfer, error: BaseException | None) -> None:
        """Give nothing: there is no state, or it cannot be had."""
        text = "" if error is None else f"{type(error).__name__}: {error}"[:ERROR_MAX]
        letter, body = Refuse(transfer.id, int(error is not None)), text.encode()
        self._member.act(lambda now: self._desk.giver.finish(transfer, letter, body))

    def send(self, letters: Sequence[Payload], to: Address, make_waiter: MakeWaiter) -> Run | None:
        """Send pieces; None when all are sent, else the run that waits for room.

        Raises Closed, and NotMember when the newcomer is gone.
        """

        def send(now: float) -> Run | None:
            outgoing = self._member.outgoing
            if self._member.left:
                raise Closed("the group is being left: nothing more can be sent")
            sent = outgoing.send(letters, to, now, LETTER)
            if sent == len(letters):
                return None
            run = Run(letters, to, make_waiter(), now, LETTER)
            run.sent = sent
            outgoing.add(run)
            return run

        return self._member.act(send) if letters else None

    def end(self, transfer: Transfer) -> None:
        """All is sent."""
        self._member.act(lambda now: self._desk.giver.finish(transfer, End(transfer.id)))


class Pieces:
    """Chunks on their way to letters."""

    def __init__(self, transfer: Transfer, size: int) -> None:
        self.transfer = transfer
        self._cutter = Cutter(size)

    def runs(self, chunk: Payload) -> Iterator[list[Payload]]:
        """Letters with what is full by now, some at a time. Raises TypeError."""
        run: list[Payload] = []
        for piece in self._cutter.cut(chunk):
            run.append(self._letter(piece))
            if len(run) == RUN:
                yield run
                run = []
        if run:
            yield run

    def rest(self) -> list[Payload]:
        """A letter with what is left, if anything is."""
        rest = self._cutter.rest()
        return [self._letter(rest)] if rest else []

    def _letter(self, piece: Payload) -> Payload:
        return write(Piece(self.transfer.id), piece)


def chunks_of(made: Made) -> Iterator[Chunk] | AsyncIterator[Chunk]:
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
