"""Forks: a copy of a process has the sockets and the numbers of a member, but it is none.

If it sent anything, two would give out the same numbers, and messages of the real one would be
taken for copies. So in a fork every group is closed, with that reason, and lets go of its sockets;
the process that joined goes on and notices nothing.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from ringcast.runtime.mutex import owned_lock

if TYPE_CHECKING:
    from ringcast.runtime.member import Member

REASON = "this process is a fork of the one that joined: join again in here"


class Forkable(Protocol):
    """Somebody who has to know."""

    def on_fork(self, reason: str) -> None:
        """This is the copy, and no other thread is left."""
        ...


def tell_forks(somebody: Forkable) -> None:
    """Have it told in each fork from now on, as long as it lives."""
    _listeners.add(somebody)


def disown(member: Member, reason: str) -> None:
    """Close a member in a fork. Another thread may have had its locks, and has them for ever."""
    member._lock, member.is_inside = owned_lock()
    member._helm, member._shut = threading.Lock(), True
    member.alarm = lambda: None
    member.stack.finish(reason)
    member.outgoing.hot = False  # Nobody sends what would be noted down.
    member.transport.close()


_listeners: WeakSet[Forkable] = WeakSet()


def _on_fork() -> None:
    for somebody in list(_listeners):
        somebody.on_fork(REASON)


os.register_at_fork(after_in_child=_on_fork)
