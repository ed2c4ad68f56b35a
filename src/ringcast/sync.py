"""The same group for programs without an event loop: the same verbs, without `await`.

from ringcast import sync

with sync.join("prices") as group:
    group.send(b"tick", timeout=2.0)
    for message in group:
        print(group.view.name(message.sender), message.payload)
        break
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Self

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message, Payload
from ringcast.core.model.events import Event
from ringcast.errors import Closed, ConfigError, LocalError, Timeout
from ringcast.job_rows import Row, RowDeduplicator
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
from ringcast.runtime.api.handlers import SyncOnCall, SyncOnStateRequest, services_of
from ringcast.runtime.api.services_blocking import BlockingServices
from ringcast.runtime.loop.locks import INSIDE
from ringcast.runtime.loop.waiters import ThreadWaiter, Waiter
from ringcast.runtime.member.arguments import check_switches, checked_target, checked_timeout
from ringcast.runtime.member.delivery_waits import StabilityRounds, looks
from ringcast.runtime.member.observer import MemberListener
from ringcast.spec import StackSpec


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
    on_state_request: SyncOnStateRequest | None = None,
    on_call: SyncOnCall | None = None,
    key: bytes | None = None,
    key_file: str | PathLike[str] | None = None,
) -> Group:
    """Join a group; `ringcast.join` says what the settings mean.

    Raises ConfigError, JoinFailed with what was tried, or Timeout.
    """
    timeout = checked_timeout(timeout, ConfigError)
    check_switches(receive=receive, views=views, status=status, state=state)
    services = services_of(on_call, on_state_request, state, receive, is_sync=True)
    member = make_member(
        *(group, spec, name, receive, backlog_bytes, observer, status, metrics, services),
        key=key,
        key_file=key_file,
    )
    joined = Group(member, receive, on_call, on_state_request)
    joined._views = views
    joined._driver.start()
    try:
        until, notice = _until(timeout), time.monotonic() + JOIN_NOTICE
        while member.view is None and member.closed is None and time.monotonic() < until:
            joined._driver.attend(min(until, notice))
            if time.monotonic() >= notice:
                joined._tell_whom_it_waits_for()
                notice = _until(None)  # Once is enough.
    except BaseException:
        joined.close()
        raise
    if member.view is not None:
        return joined
    failure = joined._join_error(timeout)
    joined.close()
    raise failure


class Group(BlockingServices):
    """A member of a group. Safe from several threads.

    Made by `ringcast.sync.join`; at the end of a `with` block it leaves the group.
    """

    def send(
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
        self._send([payload], to, timeout)

    def send_many(
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
            self._send(messages, to, timeout)

    def receive(self, timeout: float | None = None) -> Message:
        """The next message. Raises Timeout; Closed once the group is left."""
        while (message := next(self._messages, None)) is None:
            if not self._open_batch() and not self._more(timeout):
                raise Closed("the group is left")
        return message

    def __iter__(self) -> Iterator[Message]:
        while True:
            yield from self._messages
            if not self._open_batch() and not self._more(None):
                return

    def batches(self, timeout: float | None = None) -> Iterator[Batch]:
        """Messages as runs, the fast way; ends when the group is left. Raises Timeout, Closed."""
        while True:
            batch = self._next_batch()
            if batch is not None:
                yield batch
            elif not self._more(timeout):
                return

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """All events in order: batches, views, suspicions, skips; ends when the group is left."""
        while True:
            event = self._next_event()
            if event is not None:
                yield event
            elif not self._more(timeout):
                return

    def take(self, timeout: float | None = None) -> list[Event]:
        """All events that are here; [] when the group is left. Raises Timeout, Closed.

        What they carry counts as delivered, and is acked, at the next call: first make it safe.
        """
        while not (events := self._next_events()):
            if not self._more(timeout):
                return []
        return events

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all other members of the view have delivered what this member has sent.

        That is, their applications have taken all messages of earlier calls, to the group or to
        one member. A member that leaves the view meanwhile is not waited for, nor one that skips
        messages (events say both).
        Raises Timeout, which names the members that are waited for; Closed.
        """
        self._check_outside()
        seconds, flush = checked_timeout(timeout), self._member.flush()
        try:
            for pause in looks(seconds):
                if self._member.look(flush):
                    return
                time.sleep(pause)
        finally:
            self._member.end(flush)
        assert seconds is not None
        raise flush.timeout(seconds)

    def stability(self, timeout: float | None = None) -> dict[Address, int]:
        """Start a round of stability; per sender, up to where all members have delivered.

        With NakAck4 no round is needed: it is what all have acked, as far as this member knows.
        Raises Timeout if a member does not vote; Closed.
        """
        self._check_outside()
        rounds = StabilityRounds()
        for seconds in looks(checked_timeout(timeout)):
            if (found := self._member.stability(rounds)) is not None:
                return found
            time.sleep(seconds)
        raise rounds.timeout(timeout)

    def leave(self, timeout: float | None = None, *, taking: bool = False) -> None:
        """Leave in order: once the others have what was sent, and a view without this member.

        With a timeout the member is gone after that, and the others find out by themselves.
        taking: another thread goes on to `take` until no more is left; nothing is acked before.
        A signal handler that interrupts a call of the group does not wait: that call ends then.
        """
        timeout = checked_timeout(timeout)
        if self._driver.is_interrupted:
            self._beside(lambda: self.leave(timeout, taking=taking))
            return
        self._member.leave(taking)
        waiter = self._driver.ender(ThreadWaiter)
        if waiter is not None and not _told(waiter, timeout):
            self.close()

    def close(self) -> None:
        """Stop at once: the others take it for a crash. Use `leave` to go in order."""
        if self._driver.is_interrupted:
            self._beside(self.close)
            return
        self._member.close()
        waiter = self._driver.ender(ThreadWaiter)
        if waiter is not None:
            _told(waiter, None)

    def _beside(self, work: Callable[[], None]) -> None:
        """For a signal handler: what it interrupts has to go on before this can be done."""
        threading.Thread(target=work, name=f"ringcast-end-{self.name}", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    # Waiting --------------------------------------------------------------------------------------

    def _send(self, payloads: Sequence[Payload], to: Address | None, timeout: float | None) -> None:
        if timeout is not None:
            timeout = checked_timeout(timeout)
        if to is not None and type(to) is not Address:
            to = checked_target(to)
        if self._member.is_inside():
            raise LocalError(INSIDE)
        run = self._member.send(payloads, to, ThreadWaiter)
        if run is None:
            self._driver.spinning.asks = len(payloads) == 1
            return
        try:
            assert isinstance(run.waiter, ThreadWaiter)
            for seconds in waits(run, timeout):
                self._driver.wait(run.waiter, _until(seconds))
                run.waiter.waker = None  # The next wait may be at the waiter's own lock.
                if run.waiter.told:
                    break
        except BaseException:
            self._member.cancel(run)
            raise
        self._check_sent(run, timeout)

    def _more(self, timeout: float | None) -> bool:
        """Wait for events; False when the group was left. Raises Timeout, Closed."""
        if self._member.is_inside():
            raise LocalError(INSIDE)
        if (duty := self._next_duty()) is not None:
            self._do(duty)
            return True
        who = threading.get_ident()
        if timeout is not None:
            timeout = checked_timeout(timeout)
        until = _until(timeout)
        while not self._refill(who):
            if self._over():
                return self._refill(who)
            if time.monotonic() >= until:
                raise Timeout(f"nothing arrived within {timeout:g} seconds")
            self._driver.listen(until, self._has_more)
            if self._has_more():
                break
        return True


def rows(group: Group, deduplicator: RowDeduplicator | None = None) -> Iterator[Row]:
    """The rows that jobs write to a group, each once; see `ringcast.rows`."""
    accept_each = (RowDeduplicator() if deduplicator is None else deduplicator).accept_each
    for batch in group.batches():
        yield from accept_each(batch.payloads)


def _until(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _told(waiter: Waiter, timeout: float | None) -> bool:
    assert isinstance(waiter, ThreadWaiter)
    return waiter.wait(timeout)
