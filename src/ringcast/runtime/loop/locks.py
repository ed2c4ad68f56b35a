"""Locks that know their owner: a signal handler runs inside the thread that it interrupts, and must
not wait for a lock that this thread holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

INSIDE = (
    "this thread is inside the group already, and was interrupted there by a signal handler, a log"
    " handler or a finalizer: call the group from another thread, or later"
)


def owned_lock() -> tuple[threading.RLock, Callable[[], bool]]:
    """A lock, and a function that tells whether the running thread holds it."""
    lock = threading.RLock()
    # threading.Condition uses it too; it costs a tenth of taking the lock.
    return lock, cast("Callable[[], bool]", getattr(lock, "_is_owned"))  # noqa: B009
