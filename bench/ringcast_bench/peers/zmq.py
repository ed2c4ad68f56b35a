"""ZeroMQ: one publisher that waits for its slowest subscriber (XPUB with XPUB_NODROP), over TCP.

A PUSH socket for each receiver would lose nothing either, but Python sends every message three
times then. Queues have the usual thousand messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import zmq

from ringcast_bench.job import WAIT, BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Check, Messages

HIGH_WATER = 1_000
"""Messages that wait on either side at the most."""
HIGH_WATER_BYTES = 64_000_000
TIMEOUT_MS = 1_000 * int(WAIT)


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """The publisher."""

    def __init__(self, job: Job) -> None:
        self._messages = Messages(job.size, job.count)
        self._receivers = job.receivers
        self._context = zmq.Context()

    def open(self, first: Report) -> Report:
        self._socket = _socket(self._context, zmq.XPUB, self._messages.size)
        self._socket.setsockopt(zmq.XPUB_NODROP, 1)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        return {"endpoint": f"tcp://127.0.0.1:{port}"}

    def meet(self, others: list[Report]) -> None:
        self._socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # A message for each subscriber.
        for _ in range(self._receivers):
            if not self._socket.poll(TIMEOUT_MS):
                raise BenchFailure("a subscriber did not come")
            self._socket.recv()

    def play(self) -> Report:
        send = partial(self._socket.send, copy=not self._messages.is_large)
        began = time.monotonic()
        for payload in self._messages.each():
            send(payload)
        return {"began": began}

    def close(self) -> None:
        self._context.destroy(linger=0)


class Receiver:
    """A subscriber."""

    def __init__(self, job: Job) -> None:
        self._check = Check(Messages(job.size, job.count))
        self._is_large = Messages(job.size, 0).is_large
        self._size = job.size
        self._context = zmq.Context()

    def open(self, first: Report) -> Report:
        self._socket = _socket(self._context, zmq.SUB, self._size)
        self._socket.connect(str(first["endpoint"]))
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        return {}

    def meet(self, others: list[Report]) -> None:
        pass

    def play(self) -> Report:
        self._check.each(self._payloads())
        return self._check.report()

    def close(self) -> None:
        self._context.destroy(linger=0)

    def _payloads(self) -> Iterator[bytes]:
        if self._is_large:
            return (self._socket.recv(copy=False).buffer for _ in iter(int, 1))
        return iter(self._socket.recv, None)


def _socket(context: zmq.Context, kind: int, size: int) -> zmq.Socket:
    sock = context.socket(kind)
    mark = max(1, min(HIGH_WATER, HIGH_WATER_BYTES // size))
    sock.setsockopt(zmq.SNDHWM, mark)
    sock.setsockopt(zmq.RCVHWM, mark)
    sock.setsockopt(zmq.SNDTIMEO, TIMEOUT_MS)
    sock.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
    return sock
