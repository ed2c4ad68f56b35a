"""Forks: a copy of a process has the sockets and the numbers of a member, but it is none.

If it sent anything, two would give out the same numbers, and messages of the real one would be
taken for copies. So in a fork every group is closed, with that reason, and lets go of its sockets;
the process that joined goes on and notices nothing.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

REASON = "this process is a fork of the one that joined: join again in here"


class Forkable(Protocol):
    """A listener that has to know."""

    def on_fork(self, reason: str) -> None:
        """This is the copy, and no other thread is left."""
        ...


def tell_forks(listener: Forkable) -> None:
    """Have it told in each fork from now on, as long as it lives."""
    _listeners.add(listener)


_listeners: WeakSet[Forkable] = WeakSet()


def _on_fork() -> None:
    for listener in list(_listeners):
        listener.on_fork(REASON)


os.register_at_fork(after_in_child=_on_fork)
