"""Bare TCP, one sender: a connection for each receiver, the same packing, windows of the kernel."""

from __future__ import annotations

import socket
import time

from ringcast_bench.job import WAIT, BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Check, Messages
from ringcast_bench.raw.multicast import address_of
from ringcast_bench.raw.packing import HEADER, cut, packets

BUFFER = 1_048_576


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """Gathers messages, and sends them to one after the other."""

    def __init__(self, job: Job) -> None:
        self._messages = Messages(job.size, job.count)
        self._receivers = job.receivers
        self._host = job.host
        self._connections: list[socket.socket] = []

    def open(self, first: Report) -> Report:
        self._listener = socket.create_server((self._host, 0))
        self._listener.settimeout(WAIT)
        return {"endpoint": self._listener.getsockname()}

    def meet(self, others: list[Report]) -> None:
        for _ in range(self._receivers):
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(None)
            self._connections.append(connection)

    def play(self) -> Report:
        began = time.monotonic()
        for packet in packets(self._messages):
            for connection in self._connections:
                # A socket that blocks takes all of it.
                connection.sendmsg(packet.buffers)
        return {"began": began}

    def progress(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        for sock in (self._listener, *self._connections):
            sock.close()


class Receiver:
    """Reads as much as there is, and cuts it."""

    def __init__(self, job: Job) -> None:
        self._check = Check(Messages(job.size, job.count))

    def open(self, first: Report) -> Report:
        self._socket = socket.create_connection(address_of(first), WAIT)
        self._socket.settimeout(None)
        return {}

    def meet(self, others: list[Report]) -> None:
        pass

    def play(self) -> Report:
        check, read = self._check, self._socket.recv_into
        buffer = bytearray(BUFFER)
        view, filled, is_last = memoryview(buffer), 0, False
        while not is_last:
            got = read(view[filled:])
            if not got:
                raise BenchFailure("the sender has closed the connection")
            filled += got
            at = 0
            while filled - at >= HEADER.size:
                _, count, size = HEADER.unpack_from(buffer, at)
                end = at + HEADER.size + count * size
                if end > filled:
                    break
                is_last = check.run(cut(buffer, at))
                at = end
            view[: filled - at] = view[at:filled]
            filled -= at
        return check.report()

    def progress(self) -> dict[str, int]:
        return {"received": self._check.count}

    def close(self) -> None:
        self._socket.close()
