"""What an application has sent and found no room for, in order, until its stack takes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.stack import Stack
from ringcast.errors import Closed, NotMember
from ringcast.sim.checks import Checker, Witness

RUN_MAX = 4_096
"""So many messages of a longer list are tried at once: not all of it is copied each time."""


class SendQueue:
    """Runs that wait for room, a queue for each member that they are for and one for the group."""

    def __init__(self, stack: Stack, checker: Checker, witness: Witness) -> None:
        self.refused = 0
        """Messages that were queued when the group was closed, or who they were for left."""
        self._stack = stack
        self._checker = checker
        self._witness = witness
        self._queues: dict[Address | None, deque[Sequence[Payload]]] = {}

    def add(self, payloads: Sequence[Payload], to: Address | None) -> None:
        """Queue a run."""
        self._queues.setdefault(to, deque()).append(payloads)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __contains__(self, to: Address | None) -> bool:
        return to in self._queues

    @property
    def count(self) -> int:
        """How many messages wait."""
        return sum(len(run) for queue in self._queues.values() for run in queue)

    def flush(self, now: float) -> bool:
        """Send as much as there is room for; whether anything went."""
        went = False
        for to in list(self._queues):
            queue = self._queues[to]
            while queue and (count := self._offer(queue[0], to, now)):
                went = True
                run = queue.popleft()
                if count < len(run):
                    queue.appendleft(run[count:])
            if not queue:
                del self._queues[to]
        return went

    def close(self) -> None:
        """Nothing of what waits will ever be sent."""
        self.refused += self.count
        self._queues.clear()

    def _offer(self, run: Sequence[Payload], to: Address | None, now: float) -> int:
        """How many messages of a run are off the queue: sent, or never to be sent."""
        if len(run) > RUN_MAX:
            run = run[:RUN_MAX]
        try:
            count = self._stack.send(run, to, now) if self._stack.writable(to) else 0
            if count == 0 and to is not None and self._stack.view is not None:
                self._stack.send((), to, now)  # Raises when this member will never be there again.
        except (Closed, NotMember):
            self.refused += len(run)
            return len(run)
        if count:
            accepted = run if count == len(run) else run[:count]
            if to is None:
                self._checker.accepted(self._witness, accepted)
            else:
                self._checker.pairs.sent(self._witness.address, to, accepted)
        return count
