"""Members that send, receive or answer by the asynchronous API."""

from __future__ import annotations

import asyncio
import time

import ringcast
from ringcast_bench.figures import percentiles
from ringcast_bench.job import Job, Report
from ringcast_bench.member.common import (
    address_of,
    name_of,
    stack_of,
    summary,
    wait_for_view,
)
from ringcast_bench.member.ping import WARM_UP
from ringcast_bench.messages import Check, Messages


class AsyncMember:
    """A sender or a receiver, message by message; or both in one loop, by runs."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)
        self._loop = asyncio.new_event_loop()

    def open(self, first: Report) -> Report:
        self._group = self._loop.run_until_complete(self._join(first))
        return {"endpoint": self._group.endpoint, "name": self._group.name}

    def meet(self, others: list[Report]) -> None:
        self._view = wait_for_view(self._group, len(others))
        self._names = [str(other["name"]) for other in others]

    def play(self) -> Report:
        return self._loop.run_until_complete(self._play())

    def close(self) -> None:
        self._loop.run_until_complete(self._group.close())

    async def _join(self, first: Report) -> ringcast.Group:
        job = self._job
        receive = job.role != "sender"
        return await ringcast.join(
            job.group, stack_of(job, first), name=name_of(job), receive=receive, views=True
        )

    async def _play(self) -> Report:
        if self._job.role == "both":
            sent, received = await asyncio.gather(self._send_runs(), self._receive_batches())
            return received | sent
        if self._job.role == "sender":
            began = time.monotonic()
            for payload in self._messages.each():
                await self._group.send(payload)
            return {"began": began}
        check = Check(self._messages)
        async for message in self._group:
            if check.one(message.payload):
                break
        return check.report()

    async def _send_runs(self) -> Report:
        began = time.monotonic()
        for run in self._messages.runs():
            await self._group.send_many(run)
        return {"began": began}

    async def _receive_batches(self) -> Report:
        senders = [address_of(self._view, name) for name in self._names[: self._job.senders]]
        checks = {sender: Check(self._messages) for sender in senders}
        unfinished = len(checks)
        async for batch in self._group.batches():
            if checks[batch.sender].run(batch.payloads):
                unfinished -= 1
                if not unfinished:
                    break
        return summary(checks)


class AsyncPing(AsyncMember):
    """Asks and waits for the answer, or answers; to one member, or to all."""

    async def _play(self) -> Report:
        job, group = self._job, self._group
        payload = self._messages.pool[0]
        count = job.count + WARM_UP
        other = address_of(self._view, self._names[1 - job.index])
        to = None if job.to_all else other
        if job.role == "pong":
            async for message in group:
                if message.sender == other:
                    await group.send(message.payload, to=to)
                    count -= 1
                    if not count:
                        break
            return {"count": job.count}
        times = []
        for _ in range(count):
            before = time.perf_counter()
            await group.send(payload, to=to)
            while (await group.receive()).sender != other:
                pass
            times.append(time.perf_counter() - before)
        return percentiles(times[WARM_UP:])
