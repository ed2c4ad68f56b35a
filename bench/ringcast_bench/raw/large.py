"""Bare UDP multicast of large messages: pieces of a datagram each, received where they belong."""

from __future__ import annotations

import time
from collections import deque

from ringcast_bench.job import Contestant, Job, Report
from ringcast_bench.messages import Check, Messages
from ringcast_bench.raw import sockets
from ringcast_bench.raw.multicast import GROUP, PORT, address_of, window_of
from ringcast_bench.raw.packing import ACK, DATAGRAM, HEADER


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """Sends pieces while the slowest receiver is within the window."""

    def __init__(self, job: Job) -> None:
        self._messages = Messages(job.size, job.count)
        self._receivers = job.receivers

    def open(self, first: Report) -> Report:
        self._socket = sockets.sender()
        return {"endpoint": self._socket.getsockname()}

    def meet(self, others: list[Report]) -> None:
        self._window = window_of(others, senders=1)

    def play(self) -> Report:
        sock, address = self._socket, (GROUP, PORT)
        acked = dict.fromkeys(range(1, self._receivers + 1), 0)
        on_their_way: deque[int] = deque()
        sent = low = 0
        began = time.monotonic()
        for number, payload in enumerate(self._messages.each()):
            view = memoryview(payload)
            for at in range(0, len(view), DATAGRAM):
                piece = view[at : at + DATAGRAM]
                while sent + len(piece) - low > self._window and on_their_way:
                    who, acked[who] = ACK.unpack(sock.recv(ACK.size))
                    reached = min(acked.values())
                    while on_their_way and on_their_way[0] <= reached:
                        low = on_their_way.popleft()
                sock.sendmsg((HEADER.pack(number, at, len(piece)), piece), (), 0, address)
                sent += len(piece)
                on_their_way.append(sent)
        return {"began": began}

    def close(self) -> None:
        self._socket.close()


class Receiver:
    """Lets the kernel put every piece behind the one before it."""

    def __init__(self, job: Job) -> None:
        self._index, self._size = job.index, job.size
        self._check = Check(Messages(job.size, job.count))

    def open(self, first: Report) -> Report:
        self._socket = sockets.listener([GROUP], PORT)
        return {"buffer": sockets.buffer_of(self._socket)}

    def meet(self, others: list[Report]) -> None:
        self._sender = address_of(others[0])
        self._every = window_of(others, senders=1) // 3

    def play(self) -> Report:
        sock, size = self._socket, self._size
        head = bytearray(HEADER.size)
        received = told = 0
        is_last = False
        while not is_last:
            message = bytearray(size)
            view, at = memoryview(message), 0
            while at < size:
                got = sock.recvmsg_into((head, view[at : at + DATAGRAM]))[0] - HEADER.size
                at += got
                received += got
                if received - told >= self._every:
                    told = received
                    sock.sendto(ACK.pack(self._index, told), self._sender)
            is_last = self._check.one(message)
        return self._check.report()

    def close(self) -> None:
        self._socket.close()
