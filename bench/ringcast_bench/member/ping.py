"""A ping-pong of two members, by the synchronous API."""

from __future__ import annotations

import time

from ringcast import sync
from ringcast_bench.figures import percentiles
from ringcast_bench.job import Job, Report
from ringcast_bench.member.common import address_of, name_of, stack_of, wait_for_view
from ringcast_bench.messages import Messages

WARM_UP = 100
"""Round trips before those that count."""


class Ping:
    """Asks and waits for the answer, or answers; to one member, or to all."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._payload = Messages(job.size, 1).pool[0]

    def open(self, first: Report) -> Report:
        job = self._job
        self._group = sync.join(job.group, stack_of(job, first), name=name_of(job))
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        view = wait_for_view(self._group, len(others))
        self._other = address_of(view, str(others[1 - self._job.index]["name"]))

    def play(self) -> Report:
        job, group, other = self._job, self._group, self._other
        to = None if job.to_all else other
        count = job.count + WARM_UP
        if job.role == "pong":
            for message in group:
                if message.sender == other:
                    group.send(message.payload, to=to)
                    count -= 1
                    if not count:
                        break
            return {"count": job.count}
        times = []
        for _ in range(count):
            before = time.perf_counter()
            group.send(self._payload, to=to)
            while group.receive().sender != other:
                pass
            times.append(time.perf_counter() - before)
        return percentiles(times[WARM_UP:])

    def close(self) -> None:
        self._group.close()
