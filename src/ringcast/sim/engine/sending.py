"""What an application has sent and found no room for, in order, until its stack takes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.batch import SERVICE, Payload
from ringcast.core.stack.stack import Stack
from ringcast.core.stack.timers import NEVER
from ringcast.errors import Closed, NotMember, Timeout
from ringcast.sim.checks.guarantees import Checker, MemberRecord

RUN_MAX = 4_096
"""Up to this many messages of a longer list are tried at once: the rest is not copied each time."""


class _QueuedRun:
    """Messages that wait for room."""

    __slots__ = ("asked_at", "count", "flags", "limit", "moved_at", "payloads")

    def __init__(self, payloads: Sequence[Payload], now: float, flags: int) -> None:
        self.payloads = payloads
        """What is left of it."""
        self.count = len(payloads)
        self.asked_at = self.moved_at = now
        """When the application wanted to send it, and when something of it was sent last."""
        self.flags = flags
        self.limit: float | None = None
        """How long it may wait without being moved."""

    @property
    def deadline(self) -> float:
        return NEVER if self.limit is None else self.moved_at + self.limit


class SendQueue:
    """Runs that wait for room, a queue for each member that they are for and one for the group."""

    def __init__(self, stack: Stack, checker: Checker, record: MemberRecord) -> None:
        self.refused = 0
        """Messages that were queued when the group was closed, or who they were for left."""
        self._stack = stack
        self._checker = checker
        self._record = record
        self._queues: dict[Address | None, deque[_QueuedRun]] = {}

    def add(self, payloads: Sequence[Payload], to: Address | None, flags: int = 0) -> None:
        """Queue a run. Raises Closed and TooLarge."""
        self._stack.check(payloads, None)
        run = _QueuedRun(payloads, self._checker.now, flags)
        if not flags and self._stack.block_times:
            run.limit = self._stack.block_times.limit(max(map(len, payloads)))
        self._queues.setdefault(to, deque()).append(run)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __contains__(self, to: Address | None) -> bool:
        return to in self._queues

    @property
    def count(self) -> int:
        """How many messages wait."""
        return sum(len(run.payloads) for queue in self._queues.values() for run in queue)

    def flush(self, now: float) -> bool:
        """Send as much as there is room for; whether anything went."""
        went = False
        for to in list(self._queues):
            queue = self._queues[to]
            while queue and (count := self._offer(queue[0], to, now)):
                went = True
                run = queue[0]
                if count < len(run.payloads):
                    run.payloads, run.moved_at = run.payloads[count:], now
                else:
                    queue.popleft()
            if not queue:
                del self._queues[to]
        if None in self._queues:
            self._stack.blocked_time.begin()
        return went

    @property
    def deadline(self) -> float:
        """When the first of those that wait has waited for too long."""
        runs = (run for queue in self._queues.values() for run in queue)
        return min((run.deadline for run in runs), default=NEVER)

    def expire(self, now: float) -> list[Timeout]:
        """Take out what has waited for too long; what its callers get."""
        if self.deadline > now:
            return []
        found: list[Timeout] = []
        for to, queue in list(self._queues.items()):
            found += [self._timeout(run, to) for run in queue if run.deadline <= now]
            left = deque(run for run in queue if run.deadline > now)
            if left:
                self._queues[to] = left
            else:
                del self._queues[to]
        return found

    def _timeout(self, run: _QueuedRun, to: Address | None) -> Timeout:
        view, members = self._stack.view, self._stack.waits_for if to is None else [to]
        names = tuple(str(m) if view is None else view.name(m) for m in members)
        what = f"not sent within {run.limit:g} seconds, waiting for {', '.join(names) or 'a view'}"
        return Timeout(what, sent=run.count - len(run.payloads), waits_for=names)

    def close(self) -> None:
        """Nothing of what waits will ever be sent."""
        self.refused += self.count
        self._queues.clear()

    def _offer(self, waiting: _QueuedRun, to: Address | None, now: float) -> int:
        """How many messages of a run are off the queue: sent, or never to be sent."""
        run, flags = waiting.payloads, waiting.flags
        if len(run) > RUN_MAX:
            run = run[:RUN_MAX]
        try:
            count = self._stack.send(run, to, now, flags) if self._stack.writable(to) else 0
            if count == 0 and to is not None and self._stack.view is not None:
                self._stack.send((), to, now)  # Raises when this member will never be there again.
        except (Closed, NotMember):
            self.refused += len(run)
            return len(run)
        if count:
            accepted = run if count == len(run) else run[:count]
            if flags & SERVICE:
                pass  # No application will be given it.
            elif to is None:
                self._checker.accepted(self._record, accepted, waiting.asked_at)
            else:
                self._checker.pairs.sent(self._record.address, to, accepted, flags)
        return count
