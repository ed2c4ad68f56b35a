"""Zenoh, peer to peer over TCP: a publisher that waits for slow subscribers (BLOCK), reliable."""

from __future__ import annotations

import json
import socket
import threading
import time

import zenoh

from ringcast_bench.job import WAIT, BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Check, Messages

KEY = "bench"
HELLO = b"hello"
"""Sent until all subscribers have heard it, since a publisher does not know how many there are."""
HELLO_INTERVAL = 0.02


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """The publisher."""

    def __init__(self, job: Job) -> None:
        self._messages = Messages(job.size, job.count)
        self._greeted = threading.Event()

    def open(self, first: Report) -> Report:
        endpoint = f"tcp/127.0.0.1:{_free_port()}"
        self._session = _open(listen=endpoint)
        self._publisher = self._session.declare_publisher(
            KEY,
            congestion_control=zenoh.CongestionControl.BLOCK,
            reliability=zenoh.Reliability.RELIABLE,
        )
        return {"endpoint": endpoint}

    def meet(self, others: list[Report]) -> None:
        self._greeter = threading.Thread(target=self._greet, daemon=True)
        self._greeter.start()

    def play(self) -> Report:
        self._greeted.set()
        self._greeter.join()
        put, is_large = self._publisher.put, self._messages.is_large
        began = time.monotonic()
        for payload in self._messages.each():
            put(bytes(payload) if is_large else payload)
        return {"began": began}

    def close(self) -> None:
        self._session.close()

    def _greet(self) -> None:
        while not self._greeted.wait(HELLO_INTERVAL):
            self._publisher.put(HELLO)


class Receiver:
    """A subscriber."""

    def __init__(self, job: Job) -> None:
        self._check = Check(Messages(job.size, job.count))
        self._heard, self._done = threading.Event(), threading.Event()
        self._failed: BenchFailure | None = None

    def open(self, first: Report) -> Report:
        self._session = _open(connect=str(first["endpoint"]))
        self._subscriber = self._session.declare_subscriber(KEY, self._on)
        return {}

    def meet(self, others: list[Report]) -> None:
        if not self._heard.wait(WAIT):
            raise BenchFailure("the publisher was not heard")

    def play(self) -> Report:
        self._done.wait()
        if self._failed is not None:
            raise self._failed
        return self._check.report()

    def close(self) -> None:
        self._session.close()

    def _on(self, sample: zenoh.Sample) -> None:
        payload = sample.payload.to_bytes()
        if payload == HELLO:
            self._heard.set()
            return
        try:
            if self._check.one(payload):
                self._done.set()
        except BenchFailure as error:
            self._failed = error
            self._done.set()


def _open(*, listen: str = "", connect: str = "") -> zenoh.Session:
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps("peer"))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps([listen] if listen else []))
    config.insert_json5("connect/endpoints", json.dumps([connect] if connect else []))
    return zenoh.open(config)


def _free_port() -> int:
    """A port that is free now; Zenoh does not say which one it would take by itself."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
