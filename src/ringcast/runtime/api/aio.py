"""The group as an asynchronous application uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message, Payload
from ringcast.core.model.events import Event
from ringcast.errors import Closed, ConfigError, Timeout
from ringcast.runtime.api.base import (
    BACKLOG_BYTES,
    JOIN_NOTICE,
    JOIN_TIMEOUT,
    Sendable,
    checked_payload,
    checked_payloads,
    waits,
)
from ringcast.runtime.api.factory import make_member
from ringcast.runtime.api.handlers import OnCall, OnStateRequest, services_of
from ringcast.runtime.api.services_aio import AsyncServices, told
from ringcast.runtime.loop.waiters import TaskWaiter
from ringcast.runtime.member.arguments import check_switches, checked_target, checked_timeout
from ringcast.runtime.member.delivery_waits import StabilityRounds, looks
from ringcast.runtime.member.observer import MemberListener
from ringcast.spec import StackSpec

LOOKS_PER_TURN = 16
"""After this many looks for messages the other tasks of the loop get their turn."""


def join(
    group: str,
    spec: StackSpec | None = None,
    *,
    name: str = "",
    timeout: float | None = JOIN_TIMEOUT,
    receive: bool = True,
    backlog_bytes: int = BACKLOG_BYTES,
    views: bool = False,
    observer: MemberListener | None = None,
    status: bool = False,
    metrics: int | str | None = None,
    state: bool = False,
    on_state_request: OnStateRequest | None = None,
    on_call: OnCall | None = None,
    key: bytes | None = None,
    key_file: str | PathLike[str] | None = None,
) -> Joining:
    """Join: `async with ringcast.join(…) as group`, or `group = await ringcast.join(…)`.

    spec: the stack; presets.loopback() when left out, for members on one machine.
    name: what people call this member.
    timeout: seconds until it gives up; None for never.
    receive: False for members that only send: messages that arrive are dropped.
    backlog_bytes: what may be put aside while the loop that receives is blocked in its own `send`.
    views: True for payloads from 4 KB on as memoryviews of the memory that they arrived in.
    observer: watches this member, say a `ringcast.trace.live.LiveTrace`.
    status: True lets `ringcast status` ask this member, on this machine and as this user only.
    metrics: a port at 127.0.0.1, or "host:port", where Prometheus finds it under /metrics.
    state: True to get the group's state first, from `group.state()`, and then what follows it.
    on_state_request: makes this application's state for newcomers: bytes, or chunks of them.
    on_call: answers calls of others: is given a Message, and returns bytes.
    key, key_file: 32 bytes that all members share, or a file of them (`ringcast keygen`): the group
        is closed. Without either, RINGCAST_KEY_FILE may name the file; else the group is open.

    Raises ConfigError, JoinFailed with what was tried, or Timeout.
    """

    def make() -> Group:
        check_switches(receive=receive, views=views, status=status, state=state)
        services = services_of(on_call, on_state_request, state, receive, is_sync=False)
        member = make_member(
            *(group, spec, name, receive, backlog_bytes, observer, status, metrics, services),
            key=key,
            key_file=key_file,
        )
        joined = Group(member, receive, on_call, on_state_request)
        joined._views = views
        return joined

    return Joining(make, timeout)


class Joining:
    """A join under way: await it, or enter it."""

    def __init__(self, make: Callable[[], Group], timeout: float | None) -> None:
        self._make = make
        self._timeout = timeout
        self._group: Group | None = None

    def __await__(self) -> Generator[object, None, Group]:
        return self._join().__await__()

    async def __aenter__(self) -> Group:
        self._group = await self._join()
        return self._group

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._group is not None
        await self._group.leave()

    if not TYPE_CHECKING:  # A type checker knows what a Joining has.

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"this join is not awaited yet, and has no {name}: write `async with"
                " ringcast.join(…) as group`, or `group = await ringcast.join(…)`"
            )

    async def _join(self) -> Group:
        timeout = checked_timeout(self._timeout, ConfigError)
        group = self._make()
        member = group._member
        group._driver.start()
        notice = asyncio.get_running_loop().call_later(JOIN_NOTICE, group._tell_whom_it_waits_for)
        try:
            async with asyncio.timeout(timeout):
                while member.view is None and member.closed is None:
                    await group._watch()
                    group._driver.step()
        except (TimeoutError, Closed):
            pass
        except BaseException:
            await group.close()
            raise
        finally:
            notice.cancel()
        if member.view is not None:
            return group
        failure = group._join_error(timeout)
        await group.close()
        raise failure


class Group(AsyncServices):
    """A member of a group. Safe from several tasks, and from several event loops.

    import ringcast

    async with ringcast.join("prices") as group:
        await group.send_many([b"a", b"b"])
        async for message in group:
            print(message.sender, message.seqno, message.payload)
            if message.payload == b"b":
                break
    """

    _turns = 0
    """How often messages were looked for."""

    async def send(
        self, payload: Sendable, to: Address | None = None, timeout: float | None = None
    ) -> None:
        """Send a message to all members, or to one; waits while the window is full.

        Raises Timeout, which names the members that are waited for; Closed, TooLarge, NotMember.
        """
        if type(payload) is not bytes:
            payload = checked_payload(payload)
        if to is None and self._note(payload):
            self._driver.spinning.asks = True
            return
        await self._send([payload], to, timeout)
        if self._member.outgoing.hot:
            await asyncio.sleep(0)  # Others of this loop get their turn even if nothing waits.

    async def send_many(
        self,
        payloads: Iterable[Sendable],
        to: Address | None = None,
        timeout: float | None = None,
    ) -> None:
        """Send messages as one run, the fast way.

        Raises what `send` raises; a Timeout says how many were sent.
        """
        messages = checked_payloads(payloads)
        if messages:
            await self._send(messages, to, timeout)

    async def receive(self, timeout: float | None = None) -> Message:
        """The next message. Raises Timeout; Closed once the group is left."""
        while (message := next(self._messages, None)) is None:
            if not self._open_batch() and not await self._more(timeout):
                raise Closed("the group is left")
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Message]:
        while True:
            for message in self._messages:
                yield message
            if not self._open_batch() and not await self._more(None):
                return

    async def batches(self, timeout: float | None = None) -> AsyncIterator[Batch]:
        """Messages as runs, the fast way; ends when the group is left. Raises Timeout, Closed."""
        while True:
            batch = self._next_batch()
            if batch is not None:
                yield batch
            elif not await self._more(timeout):
                return

    async def events(self, timeout: float | None = None) -> AsyncIterator[Event]:
        """All events in order: batches, views, suspicions, skips; ends when the group is left."""
        while True:
            event = self._next_event()
            if event is not None:
                yield event
            elif not await self._more(timeout):
                return

    async def take(self, timeout: float | None = None) -> list[Event]:
        """All events that are here; [] when the group is left. Raises Timeout, Closed.

        What they carry counts as delivered, and is acked, at the next call: first make it safe.
        """
        while not (events := self._next_events()):
            if not await self._more(timeout):
                return []
        return events

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until all other members of the view have delivered what this member has sent.

        That is, their applications have taken all messages of earlier calls, to the group or to
        one member. A member that leaves the view meanwhile is not waited for, nor one that skips
        messages (events say both).
        Raises Timeout, which names the members that are waited for; Closed.
        """
        seconds, flush = checked_timeout(timeout), self._member.flush()
        try:
            for pause in looks(seconds):
                if self._member.look(flush):
                    return
                await asyncio.sleep(pause)
        finally:
            self._member.end(flush)
        assert seconds is not None
        raise flush.timeout(seconds)

    async def stability(self, timeout: float | None = None) -> dict[Address, int]:
        """Start a round of stability; per sender, up to where all members have delivered.

        With NakAck4 no round is needed: it is what all have acked, as far as this member knows.
        Raises Timeout if a member does not vote; Closed.
        """
        rounds = StabilityRounds()
        for seconds in looks(checked_timeout(timeout)):
            if (found := self._member.stability(rounds)) is not None:
                return found
            await asyncio.sleep(seconds)
        raise rounds.timeout(timeout)

    async def leave(self, timeout: float | None = None, *, taking: bool = False) -> None:
        """Leave in order: once the others have what was sent, and a view without this member.

        With a timeout the member is gone after that, and the others find out by themselves.
        taking: the caller goes on to `take` until there is no more, and nothing is acked before.
        """
        timeout = checked_timeout(timeout)
        self._driver.detach()
        self._member.leave(taking)
        waiter = self._driver.ender(TaskWaiter)
        if waiter is not None and not await told(waiter, timeout):
            await self.close()

    async def close(self) -> None:
        """Stop at once: the others take it for a crash. Use `leave` to go in order."""
        self._driver.detach()
        self._member.close()
        waiter = self._driver.ender(TaskWaiter)
        if waiter is not None:
            await told(waiter, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.leave()

    # Waiting --------------------------------------------------------------------------------------

    async def _send(
        self, payloads: Sequence[Payload], to: Address | None, timeout: float | None
    ) -> None:
        if timeout is not None:
            timeout = checked_timeout(timeout)
        if to is not None and type(to) is not Address:
            to = checked_target(to)
        run = self._member.send(payloads, to, TaskWaiter)
        if run is None:
            self._driver.spinning.asks = len(payloads) == 1
            return
        try:
            assert run.waiter is not None
            for seconds in waits(run, timeout):
                if await told(run.waiter, seconds):
                    break
        except BaseException:
            self._member.cancel(run)
            raise
        self._check_sent(run, timeout)

    async def _more(self, timeout: float | None) -> bool:
        """Wait for events; False when the group was left. Raises Timeout, Closed."""
        if (duty := self._next_duty()) is not None:
            await self._do(duty)
            return True
        who = asyncio.current_task()
        self._turns += 1
        if self._turns % LOOKS_PER_TURN == 0:
            await asyncio.sleep(0)  # Others of this loop get their turn, however much comes.
        if self._refill(who):
            return True
        if timeout is None or (timeout := checked_timeout(timeout)) is None:
            return await self._wait_for_events(who)
        try:
            async with asyncio.timeout(timeout):
                return await self._wait_for_events(who)
        except TimeoutError:
            raise Timeout(f"nothing arrived within {timeout:g} seconds") from None

    async def _wait_for_events(self, who: object) -> bool:
        while not self._over():
            await self._watch()
            if self._refill(who) or self._has_more():
                return True
        return self._refill(who)

    async def _watch(self) -> None:
        self._driver.attach()
        waiter = self._member.watch(TaskWaiter)
        if waiter is None:
            return
        self._driver.spin_in_loop()
        try:
            if not self._has_more():
                await told(waiter, None)
        finally:
            self._member.unwatch(waiter)
