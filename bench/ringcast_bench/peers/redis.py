"""Redis publish/subscribe: a server in between, which may hold what it likes for subscribers.

The publisher sends commands by the hundred (a pipeline), as programs in a hurry do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import redis

from ringcast_bench.job import WAIT, BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Buffer, Check, Messages

CHANNEL = "bench"
PIPELINE = 100


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """The publisher."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)

    def open(self, first: Report) -> Report:
        self._client = redis.Redis.from_url(self._job.broker, socket_timeout=WAIT)
        self._client.ping()
        return {}

    def meet(self, others: list[Report]) -> None:
        pass

    def play(self) -> Report:
        length = 1 if self._messages.is_large else PIPELINE
        payloads = self._messages.each()
        began = time.monotonic()
        while some := list(islice(payloads, length)):
            with self._client.pipeline(transaction=False) as pipeline:
                for payload in some:
                    pipeline.publish(CHANNEL, payload)
                pipeline.execute()
        return {"began": began}

    def close(self) -> None:
        self._client.close()


class Receiver:
    """A subscriber."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._check = Check(Messages(job.size, job.count))

    def open(self, first: Report) -> Report:
        self._client = redis.Redis.from_url(self._job.broker, socket_timeout=WAIT)
        self._subscription = self._client.pubsub()
        self._subscription.subscribe(CHANNEL)
        confirmed = self._subscription.get_message(timeout=WAIT)
        if not confirmed or confirmed["type"] != "subscribe":
            raise BenchFailure("the server has not confirmed the subscription")
        return {}

    def meet(self, others: list[Report]) -> None:
        pass

    def play(self) -> Report:
        self._check.each(self._payloads())
        return self._check.report()

    def close(self) -> None:
        self._subscription.close()
        self._client.close()  # A client without references closes all of its connections.

    def _payloads(self) -> Iterator[Buffer]:
        for message in self._subscription.listen():
            if message["type"] == "message":
                yield message["data"]
