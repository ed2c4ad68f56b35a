"""Members that send or receive as fast as they can, by the synchronous API."""

from __future__ import annotations

import threading
import time
from operator import attrgetter

from ringcast import sync
from ringcast.bench.job import WAIT, Job, Report
from ringcast.bench.member.common import (
    GROUP,
    address_of,
    name_of,
    stack_of,
    summary,
    wait_for_view,
)
from ringcast.bench.messages import Check, Messages
from ringcast.trace.live import LiveTrace


class Member:
    """A sender, a receiver, or both."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)

    def open(self, first: Report) -> Report:
        job = self._job
        self._group = sync.join(
            GROUP,
            stack_of(job, first),
            name=name_of(job),
            receive=job.role != "sender",
            observer=LiveTrace(job.trace) if job.trace else None,
        )
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        view = wait_for_view(self._group, len(others))
        names = [str(other["name"]) for other in others[: self._job.senders]]
        self._senders = [address_of(view, name) for name in names]

    def play(self) -> Report:
        match self._job.role:
            case "sender":
                return self._send()
            case "both":
                return self._both()
        return self._receive()

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
        check = Check(self._messages)
        check.each(map(attrgetter("payload"), self._group))
        return check.report()

    def _receive_batches(self) -> Report:
        checks = {sender: Check(self._messages) for sender in self._senders}
        unfinished, pause = len(checks), self._job.pause
        for batch in self._group.batches():
            if pause:
                # Whoever is skipped misses messages, so there is nothing to compare.
                time.sleep(pause * len(batch))
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
