"""What a group without an event loop does for others and asks of them: calls, answers, states."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import overload

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message, Payload
from ringcast.core.model.events import StateAsked
from ringcast.errors import Closed, LocalError, Timeout
from ringcast.runtime.api.base import Duty, GroupBase, Sendable, checked_payload
from ringcast.runtime.api.handlers import (
    CALL_TIMEOUT,
    CANCELLED,
    STATE_TIMEOUT,
    Loaded,
    SyncOnCall,
    SyncOnStateRequest,
    failure,
    log_state_failure,
    not_made,
    reply_of,
)
from ringcast.runtime.loop.waiters import ThreadWaiter, Waiter
from ringcast.runtime.member.arguments import checked_handler, checked_timeout
from ringcast.runtime.member.member import Member
from ringcast.runtime.member.state_transfer import (
    Chunk,
    EndOfState,
    Interrupted,
    chunks_of,
    next_of,
)
from ringcast.services.calls import PendingCall, Wait
from ringcast.services.correlator import ANSWERED
from ringcast.services.replies import Replies, Reply
from ringcast.services.state_provider import StateTransfer

FOREVER = float("inf")


class BlockingServices(GroupBase):
    """Calls and states of a group whose application has threads."""

    def __init__(
        self,
        member: Member,
        receive: bool,
        on_call: SyncOnCall | None = None,
        on_state_request: SyncOnStateRequest | None = None,
    ) -> None:
        super().__init__(member, receive)
        self._on_call = on_call
        self._on_state_request = on_state_request

    # Calls ----------------------------------------------------------------------------------------

    def call(
        self,
        payload: Sendable,
        to: Address | Sequence[Address] | None = None,
        *,
        wait: Wait = "all",
        timeout: float | None = CALL_TIMEOUT,
    ) -> Replies:
        """Call all members, or some of them, and wait for the answers of their `on_call` handlers.

        wait: "all", "first", or how many answers are enough.
        timeout: seconds after which members that have not answered are TIMED_OUT; None for never.
        A member that crashes or leaves meanwhile is GONE, one that answers too many calls is BUSY.
        Waits while 4,096 calls of this member wait for answers. Raises Timeout when the call could
        not even be sent; Closed, NotMember, TooLarge, LocalError.
        """
        self._check_outside()
        timeout = checked_timeout(timeout)
        call = self._make_call(checked_payload(payload), to, wait, timeout)
        try:
            while (waiter := self._service.await_answers(call, ThreadWaiter)) is not None:
                self._driver.spinning.asks = True
                self._driver.wait(waiter, FOREVER)
                self._driver.spinning.answered()
                for batch in self._service.claim_waiting(call, self._refills, self._in_hand):
                    self._answer(batch)
        except BaseException:
            self._service.cancel(call)
            raise
        return self._service.result(call, timeout)

    def _make_call(
        self,
        payload: Payload,
        to: Address | Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
    ) -> PendingCall:
        """Make a call as soon as fewer than `CALLS_MAX` wait for answers. Raises Timeout."""
        service, until = self._service, time.monotonic() + (FOREVER if timeout is None else timeout)
        left = timeout
        while isinstance(call := service.call(payload, to, wait, left, ThreadWaiter), Waiter):
            try:
                self._driver.wait(call, until)
            finally:
                service.give_up_queue(call)
            left = None if timeout is None else max(0.0, until - time.monotonic())
            if left == 0.0:
                raise not_made(timeout)
        return call

    def on_call(self, handler: SyncOnCall) -> None:
        """Answer calls from now on, or with another handler."""
        self._on_call = checked_handler(handler)
        self._service.start_answering(self._receive)

    def _do(self, duty: Duty) -> None:
        """What has to be done in this place, before the application gets its next event."""
        if isinstance(duty, StateAsked):
            self._give(duty)
        elif self._service.claim(duty):
            self._answer(duty)

    def _answer(self, batch: Batch) -> None:
        for message in batch:
            found = self._service.correlator.question(message)
            if found is not None:
                reply = CANCELLED  # What an interrupt or an exit means for the caller.
                try:
                    reply = self._ask(found[1])
                finally:
                    if not batch.flags & ANSWERED:
                        with suppress(Closed):
                            self._service.answer(message.sender, found[0], reply)
                        self._driver.spinning.asks = True

    def _ask(self, call: Message) -> Reply:
        assert self._on_call is not None
        try:
            return reply_of(self._on_call(call))
        except Exception as error:
            return failure(error)

    # Giving the state -----------------------------------------------------------------------------

    def _give(self, asked: StateAsked) -> None:
        """Take the state here and now; it is sent beside what follows, by a thread of its own."""
        states = self._service.states
        transfer = states.find(asked)
        if transfer is None:
            return
        assert self._on_state_request is not None
        try:
            made = self._on_state_request()
            if made is None:
                states.refuse(transfer, None)
                return
            chunks = chunks_of(made)
            if not isinstance(chunks, Iterator):
                raise TypeError("asynchronous chunks need ringcast.join")
            first = next_of(chunks)  # Whatever the application copies, it copies now.
        except BaseException as error:
            states.refuse(transfer, error)
            if not isinstance(error, Exception):
                raise
            log_state_failure(error)
            return
        work = (transfer, chunks, first)
        threading.Thread(
            target=self._stream, args=work, name=f"ringcast-state-{self.name}", daemon=True
        ).start()

    def _stream(
        self, transfer: StateTransfer, chunks: Iterator[Chunk], chunk: Payload | None
    ) -> None:
        states = self._service.states
        pieces = states.give(transfer)
        try:
            while chunk is not None:
                for run in pieces.runs(chunk):
                    if not transfer.wanted:
                        return
                    self._send_pieces(run, transfer.joiner)
                chunk = next_of(chunks)
            self._send_pieces(pieces.rest(), transfer.joiner)
            states.end(transfer)
        except LocalError:
            pass  # The newcomer is gone, or this member is.
        except Exception as error:
            log_state_failure(error)
            states.refuse(transfer, error)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()

    def _send_pieces(self, messages: Sequence[Payload], to: Address) -> None:
        run = self._service.states.send(messages, to, ThreadWaiter)
        if run is not None:
            assert isinstance(run.waiter, ThreadWaiter)
            run.waiter.wait(None)
            self._check_sent(run, None)

    # Getting the state ----------------------------------------------------------------------------

    @overload
    def state(self, load: None = None, timeout: float | None = STATE_TIMEOUT) -> bytes | None: ...

    @overload
    def state(
        self,
        load: Callable[[Iterator[bytes]], Loaded],
        timeout: float | None = STATE_TIMEOUT,
    ) -> Loaded | None: ...

    def state(
        self,
        load: Callable[[Iterator[bytes]], object] | None = None,
        timeout: float | None = STATE_TIMEOUT,
    ) -> object:
        """The group's state, for a member that joined with state=True; None when no member has one.

        load: is given the chunks as they arrive; what it returns is returned here. It is called
        again when the provider crashes half way. Without it the state is returned in one piece.
        Raises StateFailed, Timeout, Closed, LocalError.
        """
        self._check_outside()
        timeout = checked_timeout(timeout)
        until = FOREVER if timeout is None else time.monotonic() + timeout
        states, failed = self._service.states, True
        states.open()
        try:
            loaded = self._load(load or b"".join, until)
            failed = False
            return loaded
        except _TimeIsOver:
            why = states.explain()
            raise Timeout(f"no state came within {timeout:g} seconds: {why}") from None
        finally:
            states.close(failed)

    def _load(self, load: Callable[[Iterator[bytes]], object], until: float) -> object:
        states = self._service.states
        while True:
            while isinstance(begun := states.begin(ThreadWaiter), Waiter):
                self._wait(begun, until)
            if begun is None:
                return None
            try:
                loaded = load(self._chunks(begun, until))
                for _ in self._chunks(begun, until):
                    pass  # What it did not want.
            except Interrupted:
                continue
            if states.accept(begun):
                return loaded

    def _chunks(self, attempt: int, until: float) -> Iterator[bytes]:
        states = self._service.states
        while (read := states.read(attempt, ThreadWaiter)) is not EndOfState.WHOLE:
            if isinstance(read, list):
                yield from map(bytes, read)
            elif isinstance(read, Waiter):
                self._wait(read, until)
            else:
                raise Interrupted("the member that gave the state is gone: it is read anew")

    def _wait(self, waiter: Waiter, until: float) -> None:
        if time.monotonic() >= until:
            raise _TimeIsOver
        self._driver.wait(waiter, until)


class _TimeIsOver(Exception):
    """The bound of a wait for the state."""
