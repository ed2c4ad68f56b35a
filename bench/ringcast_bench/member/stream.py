"""Members that send or receive as fast as they can, by the synchronous API."""

from __future__ import annotations

import threading
import time
from operator import attrgetter

from ringcast import sync
from ringcast.trace.live import LiveTrace
from ringcast_bench.job import WAIT, Job, Report
from ringcast_bench.member.common import (
    address_of,
    key_of,
    name_of,
    stack_of,
    summary,
    suspected_in,
    wait_for_view,
)
from ringcast_bench.messages import Check, Messages


class Member:
    """A sender, a receiver, or both."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count, job.random)

    def open(self, first: Report) -> Report:
        job = self._job
        self._group = sync.join(
            job.group,
            stack_of(job, first),
            name=name_of(job),
            receive=job.role != "sender",
            views=True,
            observer=LiveTrace(job.trace) if job.trace else None,
            key=key_of(job),
        )
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        view = wait_for_view(self._group, len(others))
        names = [str(other["name"]) for other in others[: self._job.senders]]
        senders = [address_of(view, name) for name in names]
        self._checks = {sender: Check(self._messages) for sender in senders}

    def play(self) -> Report:
        match self._job.role:
            case "sender":
                return self._send()
            case "both":
                return self._both()
        return self._receive()

    def progress(self) -> dict[str, int]:
        return {
            "received": sum(check.count for check in self._checks.values()),
            "view": self._group.view.id.number,
            "suspected": suspected_in(self._group.stats()),
        }

    def close(self) -> None:
        self._group.close()

    def _send(self) -> Report:
        began = time.monotonic()
        if self._job.api == "batch" and not self._messages.is_large:
            for run in self._messages.runs():
                self._group.send_many(run)
        else:
            send = self._group.send
            for payload in self._messages.each():
                send(payload)
        return {"began": began}

    def _receive(self) -> Report:
        if self._job.api == "batch":
            return self._receive_batches()
        check = next(iter(self._checks.values()))
        check.each(map(attrgetter("payload"), self._group))
        return check.report()

    def _receive_batches(self) -> Report:
        checks, pause = self._checks, self._job.pause
        unfinished = len(checks)
        for batch in self._group.batches():
            if pause:
                # A receiver that is skipped misses messages, so there is nothing to compare.
                time.sleep(pause * len(batch))
            elif self._job.lenient:
                checks[batch.sender].count += len(batch)
            elif checks[batch.sender].run(batch.payloads):
                unfinished -= 1
                if not unfinished:
                    break
        return summary(checks)

    def _both(self) -> Report:
        sending: Report = {}
        thread = threading.Thread(target=lambda: sending.update(self._send()), daemon=True)
        thread.start()
        received = self._receive_batches()
        thread.join(WAIT)
        return received | sending
