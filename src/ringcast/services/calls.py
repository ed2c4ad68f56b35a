"""Calls that this member has made: which answers it awaits, and when there are none to wait for.

Each member that is asked has a slot. It is settled by its answer, by a view without it, or by the
time; so a call ends whatever happens to the others. A call to all members asks the members of the
view in which it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part
from ringcast.errors import LocalError
from ringcast.services.replies import GONE, TIMED_OUT, Replies, Reply

CALLS_MAX = 4_096
"""Calls that may wait for answers at once."""

Wait = str | int
"""How many answers a call waits for: "all", "first" or a number."""


class PendingCall:
    """A call that was made."""

    __slots__ = ("_answers", "_over", "_replies", "_waiting", "_wanted", "id")

    def __init__(self, id: int, members: Iterable[Address] | None, wanted: int | None) -> None:
        self.id = id
        self._wanted = wanted
        self._waiting = None if members is None else set(members)
        """The members whose slots are open; None for a call to all that has not been sent."""
        self._replies: dict[Address, Reply] = {}
        self._answers = 0
        self._over = False

    @property
    def done(self) -> bool:
        """Whether there is no more to wait for."""
        if self._over or self._waiting is None:
            return self._over
        return not self._waiting or (self._wanted is not None and self._answers >= self._wanted)

    @property
    def replies(self) -> Replies:
        """The answers so far."""
        return Replies(self._replies)

    @property
    def was_sent(self) -> bool:
        """Whether the members that were asked are known."""
        return self._waiting is not None

    def sent(self, members: Iterable[Address]) -> None:
        """A call to all members is on its way to these."""
        if self._waiting is None:
            self._waiting = set(members)

    def settle(self, member: Address, reply: Reply) -> bool:
        """The slot of a member has its reply; False when none is waited for."""
        if self._waiting is None or member not in self._waiting or self.done:
            return False
        self._waiting.discard(member)
        self._replies[member] = reply
        self._answers += reply.ok
        return True

    def expire(self) -> None:
        """The time is over."""
        for member in sorted(self._waiting or ()):
            self._replies[member] = TIMED_OUT
        self._over = True


class Calls:
    """All calls of this member that wait for answers."""

    def __init__(self, env: Env, owner: Part) -> None:
        self._env = env
        self._owner = owner
        """The part that is given the timers."""
        self._open: dict[int, PendingCall] = {}
        self._last = 0
        self.finished: list[PendingCall] = []
        """Those that are done; the part that wakes their callers empties it."""

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self, members: Iterable[Address] | None, wait: Wait, timeout: float | None
    ) -> PendingCall:
        """A new call, to these or to all members. Raises LocalError."""
        wanted = answers_wanted(wait)
        if len(self._open) >= CALLS_MAX:
            raise LocalError(f"{CALLS_MAX:,} calls wait for answers: let some of them finish first")
        self._last += 1
        call = self._open[self._last] = PendingCall(self._last, members, wanted)
        if timeout is not None:
            self._env.timers.set(self._owner, _timer(call), self._env.now + timeout)
        self._check(call)
        return call

    def sent(self, id: int, members: Iterable[Address]) -> None:
        """A call to all members leaves in a view with these members."""
        call = self._open.get(id)
        if call is not None:
            call.sent(members)

    def answered(self, member: Address, id: int, reply: Reply) -> None:
        """Handle an answer."""
        call = self._open.get(id)
        if call is None or not call.settle(member, reply):
            self._env.counters["late_answers"] += 1
            return
        self._check(call)

    def gone(self, members: Iterable[Address]) -> None:
        """These are in the view no longer."""
        for call in list(self._open.values()):
            for member in members:
                call.settle(member, GONE)
            self._check(call)

    def expire(self, name: str) -> None:
        """A timer is due."""
        call = self._open.get(int(name))
        if call is not None:
            call.expire()
            self._check(call)

    def cancel(self, call: PendingCall) -> None:
        """The caller no longer waits for this call."""
        if self._open.pop(call.id, None) is not None:
            self._env.timers.cancel(self._owner, _timer(call))

    def _check(self, call: PendingCall) -> None:
        if call.done and call.id in self._open:
            self.cancel(call)
            self.finished.append(call)


def answers_wanted(wait: Wait) -> int | None:
    """How many answers are enough; None for all. Raises LocalError."""
    if wait == "all":
        return None
    if wait == "first":
        return 1
    if isinstance(wait, int) and wait >= 1:
        return wait
    raise LocalError(f'wait is {wait!r}: give "all", "first" or a number of answers')


def _timer(call: PendingCall) -> str:
    return str(call.id)
