"""A bare UDP ping-pong in asyncio: the round trip that an asynchronous program can have at all."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from ringcast_bench.figures import percentiles
from ringcast_bench.job import WAIT, Contestant, Job, Report
from ringcast_bench.messages import Messages
from ringcast_bench.raw.multicast import address_of
from ringcast_bench.raw.sockets import HOST

WARM_UP = 100
"""Round trips before those that count."""


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Ping(job)


class Ping:
    """Sends and waits for the answer, or answers."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._payload = bytes(Messages(job.size, 1).pool[0])
        self._loop = asyncio.new_event_loop()

    def open(self, first: Report) -> Report:
        self._loop.run_until_complete(self._listen())
        return {"endpoint": self._transport.get_extra_info("sockname")}

    def meet(self, others: list[Report]) -> None:
        self._other = address_of(others[1 - self._job.index])

    def play(self) -> Report:
        return self._loop.run_until_complete(asyncio.wait_for(self._play(), WAIT))

    def close(self) -> None:
        self._transport.close()

    async def _listen(self) -> None:
        count = self._job.count + WARM_UP
        self._transport, self._protocol = await self._loop.create_datagram_endpoint(
            lambda: _Protocol(count if self._job.role == "pong" else 0), local_addr=(HOST, 0)
        )

    async def _play(self) -> Report:
        protocol = self._protocol
        if self._job.role == "pong":
            await protocol.finished()
            return {"count": self._job.count}
        times = []
        for _ in range(self._job.count + WARM_UP):
            before = time.perf_counter()
            protocol.send(self._payload, self._other)
            await protocol.finished()
            times.append(time.perf_counter() - before)
        return percentiles(times[WARM_UP:])


class _Protocol(asyncio.DatagramProtocol):
    """Answers this many datagrams; then, and with each further one, it wakes the waiting task."""

    def __init__(self, answers: int) -> None:
        self._left = answers
        self._waiting: asyncio.Future[None] | None = None
        self._has_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self.send = self._transport.sendto

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._left:
            self._transport.sendto(data, addr)
            self._left -= 1
            self._has_answered = not self._left
        if self._waiting is not None and not self._left:
            self._waiting.set_result(None)
            self._waiting = None

    async def finished(self) -> None:
        """Wait until all is answered, or for the next datagram where nothing is to be answered."""
        if not self._has_answered:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
