"""What an asynchronous group does for others and asks of them: calls, answers, states."""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Sequence,
)
from contextlib import suppress
from inspect import isawaitable
from typing import cast, overload

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message, Payload
from ringcast.core.model.events import StateAsked
from ringcast.errors import Closed, LocalError, Timeout
from ringcast.runtime.api.base import Duty, GroupBase, Sendable, checked_payload
from ringcast.runtime.api.handlers import (
    CALL_TIMEOUT,
    CANCELLED,
    HANDLERS_MAX,
    STATE_TIMEOUT,
    TOO_MANY,
    Loaded,
    OnCall,
    OnStateRequest,
    failure,
    log_state_failure,
    not_made,
    reply_of,
)
from ringcast.runtime.loop.waiters import TaskWaiter, Waiter
from ringcast.runtime.member.arguments import checked_handler, checked_timeout
from ringcast.runtime.member.member import Member
from ringcast.runtime.member.state_transfer import (
    EndOfState,
    Interrupted,
    StateValue,
    chunks_of,
    frozen,
    next_of,
)
from ringcast.services.calls import PendingCall, Wait
from ringcast.services.correlator import ANSWERED
from ringcast.services.replies import Replies, Reply
from ringcast.services.state_provider import StateTransfer


class AsyncServices(GroupBase):
    """Calls and states of a group whose application has an event loop."""

    def __init__(
        self,
        member: Member,
        receive: bool,
        on_call: OnCall | None = None,
        on_state_request: OnStateRequest | None = None,
    ) -> None:
        super().__init__(member, receive)
        self._on_call = on_call
        self._on_state_request = on_state_request
        self._tasks: set[asyncio.Task[None]] = set()

    # Calls ----------------------------------------------------------------------------------------

    async def call(
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
        timeout = checked_timeout(timeout)
        call = await self._make_call(checked_payload(payload), to, wait, timeout)
        try:
            while (waiter := self._service.await_answers(call, TaskWaiter)) is not None:
                self._driver.attach()
                self._driver.spinning.asks = True
                self._driver.spin_in_loop()
                await told(waiter, None)
                self._driver.spinning.answered()
                await self._answer_waiting(call)
        except BaseException:
            self._service.cancel(call)
            raise
        return self._service.result(call, timeout)

    async def _make_call(
        self,
        payload: Payload,
        to: Address | Sequence[Address] | None,
        wait: Wait,
        timeout: float | None,
    ) -> PendingCall:
        """Make a call as soon as fewer than `CALLS_MAX` wait for answers. Raises Timeout."""
        service, until = self._service, time.monotonic() + (timeout or 0.0)
        left = timeout
        while isinstance(call := service.call(payload, to, wait, left, TaskWaiter), Waiter):
            self._driver.attach()
            try:
                is_told = await told(call, left)
            except BaseException:
                service.give_up_queue(call)
                raise
            left = None if timeout is None else max(0.0, until - time.monotonic())
            if not is_told or left == 0.0:
                service.give_up_queue(call)
                raise not_made(timeout)
        return call

    def on_call(self, handler: OnCall) -> None:
        """Answer calls from now on, or with another handler."""
        self._on_call = checked_handler(handler)
        self._service.start_answering(self._receive)

    async def _do(self, duty: Duty) -> None:
        """What has to be done in this place, before the application gets its next event."""
        if isinstance(duty, StateAsked):
            await self._give(duty)
        elif self._service.claim(duty):
            self._answer(duty)
            await asyncio.sleep(0)  # What was begun runs up to its first wait.

    async def _answer_waiting(self, call: PendingCall) -> None:
        """Answer calls for an application that cannot come for them, since it waits itself."""
        batches = self._service.claim_waiting(call, self._refills, self._in_hand)
        for batch in batches:
            self._answer(batch)
        if batches:
            await asyncio.sleep(0)

    def _answer(self, batch: Batch) -> None:
        for message in batch:
            found = self._service.correlator.question(message)
            if found is not None:
                number = None if batch.flags & ANSWERED else found[0]
                self._begin_answer(found[1], number)

    def _begin_answer(self, call: Message, number: int | None) -> None:
        assert self._on_call is not None
        try:
            made = self._on_call(call)
        except Exception as error:
            self._reply(call, number, failure(error))
            return
        if not isawaitable(made):
            self._reply(call, number, reply_of(made))
        elif len(self._tasks) < HANDLERS_MAX:
            self._start(self._finish_answer(call, number, made))
        else:
            if asyncio.iscoroutine(made):
                made.close()
            self._reply(call, number, TOO_MANY)

    async def _finish_answer(
        self, call: Message, number: int | None, made: Awaitable[object]
    ) -> None:
        reply = CANCELLED
        try:
            reply = reply_of(await made)
        except Exception as error:
            reply = failure(error)
        finally:
            self._reply(call, number, reply)

    def _reply(self, call: Message, number: int | None, reply: Reply) -> None:
        if number is not None:
            with suppress(Closed):
                self._service.answer(call.sender, number, reply)
            self._driver.spinning.asks = True

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Giving the state -----------------------------------------------------------------------------

    async def _give(self, asked: StateAsked) -> None:
        """Take the state here and now; it is sent beside what follows."""
        states = self._service.states
        transfer = states.find(asked)
        if transfer is None:
            return
        assert self._on_state_request is not None
        try:
            made = self._on_state_request()
            if isawaitable(made):
                made = await made
            if made is None:
                states.refuse(transfer, None)
                return
            chunks = _Chunks(cast(StateValue, made))
            first = await chunks.next()  # Whatever the application copies, it copies now.
        except Exception as error:
            log_state_failure(error)
            states.refuse(transfer, error)
            return
        except BaseException as error:
            states.refuse(transfer, error)
            raise
        self._start(self._stream(transfer, chunks, first))

    async def _stream(
        self, transfer: StateTransfer, chunks: _Chunks, chunk: Payload | None
    ) -> None:
        states = self._service.states
        pieces = states.give(transfer)
        try:
            while chunk is not None:
                for run in pieces.runs(chunk):
                    if not transfer.wanted:
                        return
                    await self._send_pieces(run, transfer.joiner)
                chunk = await chunks.next()
            await self._send_pieces(pieces.rest(), transfer.joiner)
            states.end(transfer)
        except LocalError:
            pass  # The newcomer is gone, or this member is.
        except Exception as error:
            log_state_failure(error)
            states.refuse(transfer, error)
        finally:
            await chunks.close()

    async def _send_pieces(self, messages: Sequence[Payload], to: Address) -> None:
        run = self._service.states.send(messages, to, TaskWaiter)
        if run is not None:
            assert run.waiter is not None
            try:
                await told(run.waiter, None)
            finally:
                self._member.cancel(run)
            self._check_sent(run, None)

    # Getting the state ----------------------------------------------------------------------------

    @overload
    async def state(
        self, load: None = None, timeout: float | None = STATE_TIMEOUT
    ) -> bytes | None: ...

    @overload
    async def state(
        self,
        load: Callable[[AsyncIterator[bytes]], Awaitable[Loaded]],
        timeout: float | None = STATE_TIMEOUT,
    ) -> Loaded | None: ...

    async def state(
        self,
        load: Callable[[AsyncIterator[bytes]], Awaitable[object]] | None = None,
        timeout: float | None = STATE_TIMEOUT,
    ) -> object:
        """The group's state, for a member that joined with state=True; None when no member has one.

        load: is given the chunks as they arrive; what it returns is returned here. It is called
        again when the provider crashes half way. Without it the state is returned in one piece.
        Raises StateFailed, Timeout, Closed, LocalError.
        """
        timeout = checked_timeout(timeout)
        states, failed = self._service.states, True
        states.open()
        clock = asyncio.timeout(timeout)
        try:
            async with clock:
                loaded = await self._load(load or _join)
            failed = False
            return loaded
        except TimeoutError:
            if not clock.expired():
                raise
            why = states.explain()
            raise Timeout(f"no state came within {timeout:g} seconds: {why}") from None
        finally:
            states.close(failed)

    async def _load(self, load: Callable[[AsyncIterator[bytes]], Awaitable[object]]) -> object:
        states = self._service.states
        while True:
            while isinstance(begun := states.begin(TaskWaiter), Waiter):
                self._driver.attach()
                await told(begun, None)
            if begun is None:
                return None
            try:
                loaded = await load(self._chunks(begun))
                async for _ in self._chunks(begun):
                    pass  # What it did not want.
            except Interrupted:
                continue
            if states.accept(begun):
                return loaded

    async def _chunks(self, attempt: int) -> AsyncIterator[bytes]:
        states = self._service.states
        while (read := states.read(attempt, TaskWaiter)) is not EndOfState.WHOLE:
            if isinstance(read, list):
                for piece in read:
                    yield bytes(piece)
            elif isinstance(read, Waiter):
                self._driver.attach()
                await told(read, None)
            else:
                raise Interrupted("the member that gave the state is gone: it is read anew")


class _Chunks:
    """The chunks of a state, however the application makes them."""

    def __init__(self, made: StateValue) -> None:
        self._chunks = chunks_of(made)

    async def next(self) -> Payload | None:
        """The next one, as it is now; None when there are no more."""
        if not isinstance(self._chunks, AsyncIterator):
            return next_of(self._chunks)
        chunk = await anext(self._chunks, None)
        return None if chunk is None else frozen(chunk)

    async def close(self) -> None:
        """Let go of what the application may hold open."""
        chunks = self._chunks
        if isinstance(chunks, Iterator):
            if hasattr(chunks, "close"):
                chunks.close()
        elif hasattr(chunks, "aclose"):
            await chunks.aclose()


async def _join(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def told(waiter: Waiter, timeout: float | None) -> bool:
    """Wait until told; False when the time was over first."""
    assert isinstance(waiter, TaskWaiter)
    return await waiter.wait(timeout)
