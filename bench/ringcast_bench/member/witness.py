"""A member that watches the group change: when it saw which view, and how long its sends waited."""

from __future__ import annotations

import threading
import time

from ringcast import sync
from ringcast.core.model.events import ViewChange
from ringcast.errors import Closed, Timeout
from ringcast_bench.job import Job, Report
from ringcast_bench.member.common import name_of, stack_of, wait_for_view

SEND_PAUSE, SEND_MEMBERS = 0.002, 5
"""Seconds between two messages of a member, in a group of up to this many members. In larger ones
they are longer, so that the machine has as many deliveries to make."""
LEAVE_AFTER = 0.5
"""Seconds after which a member leaves whose job says so (`api` is "leave")."""


class Witness:
    """Sends now and then for `count` tenths of a second, and notes views and the longest send."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._views: list[tuple[float, int]] = []
        self._longest = 0.0

    def open(self, first: Report) -> Report:
        stack = stack_of(self._job, first)
        self._group = sync.join(self._job.group, stack, name=name_of(self._job))
        threading.Thread(target=self._watch, daemon=True).start()
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        wait_for_view(self._group, sum("name" in other for other in others))

    def play(self) -> Report:
        began = now = time.monotonic()
        leave_at = began + LEAVE_AFTER if self._job.api == "leave" else float("inf")
        payload = bytes(self._job.size)
        pause = SEND_PAUSE * max(1.0, self._job.senders / SEND_MEMBERS) ** 2
        while now < began + self._job.count / 10 and now < leave_at:
            self._group.send(payload)
            after = time.monotonic()
            self._longest = max(self._longest, after - now)
            time.sleep(pause)
            now = time.monotonic()
        acted = time.monotonic()
        if now >= leave_at:
            self._group.leave()
        return {"views": self._views, "stall": self._longest, "acted": acted}

    def close(self) -> None:
        self._group.close()

    def _watch(self) -> None:
        try:
            for event in self._group.events():
                if isinstance(event, ViewChange):
                    self._views.append((time.monotonic(), len(event.view)))
        except (Closed, Timeout):
            return
