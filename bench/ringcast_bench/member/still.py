"""Members that move no messages: they idle, join and leave, or form a group."""

from __future__ import annotations

import time
from contextlib import suppress
from statistics import median

from ringcast import sync
from ringcast.errors import Timeout
from ringcast_bench.job import Job, Report
from ringcast_bench.member.common import name_of, stack_of, wait_for_view


class Idler:
    """A member whose application waits for messages, of which none come, for `count` seconds."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def open(self, first: Report) -> Report:
        job = self._job
        self._group = sync.join(job.group, stack_of(job, first), name=name_of(job))
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        wait_for_view(self._group, sum("name" in other for other in others))

    def play(self) -> Report:
        if not self._job.count:
            return {}
        began = time.monotonic()
        with suppress(Timeout):
            self._group.receive(timeout=self._job.count)
        return {"idle": time.monotonic() - began}

    def close(self) -> None:
        self._group.close()


class JoiningMember:
    """Joins a group that is there, and leaves it, `count` times."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def open(self, first: Report) -> Report:
        self._stack = stack_of(self._job, first)
        return {}

    def meet(self, others: list[Report]) -> None:
        self._members = len(others)

    def play(self) -> Report:
        times = []
        for _ in range(self._job.count):
            before = time.perf_counter()
            group = sync.join(self._job.group, self._stack, name=name_of(self._job))
            wait_for_view(group, self._members)
            times.append(time.perf_counter() - before)
            group.leave()
        return {"join": median(times)}

    def close(self) -> None:
        pass


class Former:
    """Joins when all others do, and says when all were in its view."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._group: sync.Group | None = None

    def open(self, first: Report) -> Report:
        self._stack = stack_of(self._job, first)
        return {}

    def meet(self, others: list[Report]) -> None:
        self._members = len(others)

    def play(self) -> Report:
        began = time.monotonic()
        self._group = sync.join(self._job.group, self._stack, name=name_of(self._job))
        wait_for_view(self._group, self._members)
        return {"began": began, "ended": time.monotonic(), "count": 1}

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
