"""NATS: a server between publisher and subscribers, all limits on what waits lifted.

A core NATS server drops slow subscribers, so it may hold a gigabyte for each; subscribers hold
whatever comes. The publisher flushes every thousand messages.
"""

from __future__ import annotations

import asyncio
import time

import nats
from nats.aio.msg import Msg

from ringcast_bench.job import Contestant, Job, Report
from ringcast_bench.messages import Check, Messages

SUBJECT = "bench"
FLUSH_EVERY = 1_000
UNLIMITED = 1 << 40


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Side:
    """A connection to the server, and the loop that serves it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)
        self._loop = asyncio.new_event_loop()

    def open(self, first: Report) -> Report:
        self._loop.run_until_complete(self._connect())
        return {}

    def meet(self, others: list[Report]) -> None:
        pass

    def play(self) -> Report:
        return self._loop.run_until_complete(self._play())

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())

    async def _connect(self) -> None:
        self._connection = await nats.connect(self._job.broker)

    async def _play(self) -> Report:
        raise NotImplementedError


class Sender(Side):
    """The publisher."""

    async def _play(self) -> Report:
        connection, is_large = self._connection, self._messages.is_large
        began = time.monotonic()
        for number, payload in enumerate(self._messages.each(), start=1):
            await connection.publish(SUBJECT, bytes(payload) if is_large else payload)
            if number % FLUSH_EVERY == 0 or is_large:
                await connection.flush(timeout=60)
        await connection.flush(timeout=60)
        return {"began": began}


class Receiver(Side):
    """A subscriber."""

    async def _connect(self) -> None:
        await super()._connect()
        self._check = Check(self._messages)
        self._done = self._loop.create_future()
        await self._connection.subscribe(
            SUBJECT, cb=self._on, pending_msgs_limit=UNLIMITED, pending_bytes_limit=UNLIMITED
        )
        await self._connection.flush()

    async def _on(self, message: Msg) -> None:
        try:
            if self._check.one(message.data):
                self._done.set_result(None)
        except Exception as error:  # The waiting side is told.
            if not self._done.done():
                self._done.set_exception(error)

    async def _play(self) -> Report:
        await self._done
        return self._check.report()
