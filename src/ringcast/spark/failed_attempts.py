"""Keeps why an attempt at a task failed, so that the next attempts on that machine say so at once.

Spark tries a task four times on a cluster. Without this, a group that nobody is in would fail the
job after four times the timeout.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringcast.errors import ConfigError, JoinFailed, RingcastError, Timeout
from ringcast.gateway.settings import Settings

KINDS: dict[str, type[RingcastError]] = {
    kind.__name__: kind for kind in (ConfigError, JoinFailed, Timeout)
}
"""What the next attempt would not get either, as a rule."""
SUFFIX = ".failed"


@contextmanager
def failing_once(settings: Settings, job: str, attempt: int) -> Iterator[None]:
    """Do the work of an attempt inside; raises at once what an earlier attempt at this job raised.

    The first attempt, number 0, always does its work.
    """
    place = settings.path_base().with_suffix(SUFFIX)
    if attempt and (known := _kept(place, job, 2 * settings.timeout)) is not None:
        raise known
    try:
        yield
    except tuple(KINDS.values()) as error:
        told = {"job": job, "kind": type(error).__name__, "sentence": str(error), "at": time.time()}
        draft = place.with_suffix(f"{SUFFIX}-{time.monotonic_ns()}")
        with suppress(OSError):
            draft.write_text(json.dumps(told))
            draft.replace(place)
        raise


def _kept(place: Path, job: str, seconds: float) -> RingcastError | None:
    """What an attempt at this job raised in the last seconds."""
    with suppress(OSError, ValueError, KeyError):
        known = json.loads(place.read_text())
        if known["job"] == job and time.time() - known["at"] < seconds:
            return KINDS[known["kind"]](known["sentence"])
    return None
