"""Locks that know whose they are: a signal handler runs in the middle of the thread that it
interrupts, and must not wait for what that thread holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

INSIDE = (
    "this thread is inside the group already, and was interrupted there by a signal handler, a log"
    " handler or a finalizer: call the group from another thread, or later"
)


def owned_lock() -> tuple[threading.RLock, Callable[[], bool]]:
    """A lock, and whether the running thread has it. It is not meant to be taken twice."""
    lock = threading.RLock()
    # What threading.Condition asks as well; it costs a tenth of taking the lock.
    return lock, cast("Callable[[], bool]", getattr(lock, "_is_owned"))  # noqa: B009
