"""The callers of a member that wait for answers, found by their call and by their thread or task.

With thousands of calls at once nothing here may look at all of them for each answer.
"""

from __future__ import annotations

from ringcast.runtime.loop.waiters import Waiter


class WaitingCallers:
    """Waiters by the id of their call, in the order in which they began to wait."""

    def __init__(self) -> None:
        self.waiters: dict[int, Waiter] = {}
        """By the id of the call; to be looked at only."""
        self._ids: dict[object, dict[int, None]] = {}
        """The calls that each thread or task waits for."""

    def __len__(self) -> int:
        return len(self.waiters)

    def __contains__(self, who: object) -> bool:
        """Whether this thread or task waits."""
        return who in self._ids

    def add(self, id: int, waiter: Waiter) -> None:
        """A caller begins to wait for the answers to its call."""
        self.pop(id)
        self.waiters[id] = waiter
        self._ids.setdefault(waiter.who, {})[id] = None

    def pop(self, id: int) -> Waiter | None:
        """A caller waits no longer; None when it did not."""
        waiter = self.waiters.pop(id, None)
        if waiter is not None:
            ids = self._ids[waiter.who]
            del ids[id]
            if not ids:
                del self._ids[waiter.who]
        return waiter

    def first(self, who: object) -> int:
        """The call that this thread or task has waited for longest; else that of any caller."""
        return next(iter(self._ids.get(who) or self.waiters))

    def tell_all(self) -> None:
        """Wake all callers: none of them waits any longer."""
        waiters = list(self.waiters.values())
        self.waiters.clear()
        self._ids.clear()
        for waiter in waiters:
            waiter.tell()
