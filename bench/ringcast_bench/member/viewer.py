"""A member that shows the whole group as `ringcast ui` does, while the others send and receive."""

from __future__ import annotations

import threading
import time

from ringcast import sync
from ringcast.runtime.live.watch import GroupWatch
from ringcast_bench.job import WAIT, BenchFailure, Job, Report
from ringcast_bench.member.common import POLL, key_of, name_of, stack_of, wait_for_view

LOOK_INTERVAL = 0.5
"""Seconds between two looks: the page asks twice per second."""


class Viewer:
    """Joins as `ringcast ui` joins, and looks until it is closed if the job says so."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def open(self, first: Report) -> Report:
        job = self._job
        self._group = sync.join(
            job.group, stack_of(job, first), name=name_of(job), receive=False, key=key_of(job)
        )
        self._watch = GroupWatch(self._group)
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        wait_for_view(self._group, len(others))
        if self._job.api == "looks":
            self._wait_for_answers()

    def play(self) -> Report:
        if self._job.api == "looks":
            self._thread.start()
        return {}

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(WAIT)
        self._group.close()

    def _wait_for_answers(self) -> None:
        """Look until each member has answered. Raises BenchFailure."""
        until = time.monotonic() + WAIT
        while any(row["age"] < 0 for row in self._watch.look()["members"]):
            if time.monotonic() >= until:
                raise BenchFailure("a member did not answer the viewer")
            time.sleep(POLL)

    def _look_on(self) -> None:
        while not self._stop.wait(LOOK_INTERVAL):
            self._watch.look()
