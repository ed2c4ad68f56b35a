"""Bare UDP multicast, one sender: a fixed window in bytes, and acks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from ringcast_bench.job import BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Check, Messages
from ringcast_bench.raw import sockets
from ringcast_bench.raw.packing import ACK, WINDOW, ack_every, cut, cut_by_struct, packets

GROUP, PORT = "239.77.9.1", 7791


def make(job: Job) -> Contestant:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """Sends while the slowest receiver is within the window."""

    def __init__(self, job: Job) -> None:
        self._messages = Messages(job.size, job.count)
        self._receivers = job.receivers

    def open(self, first: Report) -> Report:
        self._socket = sockets.sender()
        return {"endpoint": self._socket.getsockname()}

    def meet(self, others: list[Report]) -> None:
        self._window = window_of(others, senders=1)

    def play(self) -> Report:
        sock, limit = self._socket, self._window
        acked = dict.fromkeys(range(1, self._receivers + 1), 0)
        on_their_way: deque[tuple[int, int]] = deque()
        outstanding = 0
        address = (GROUP, PORT)
        began = time.monotonic()
        for packet in packets(self._messages):
            while outstanding + packet.nbytes > limit and on_their_way:
                who, count = ACK.unpack(sock.recv(ACK.size))
                acked[who] = count
                low = min(acked.values())
                while on_their_way and on_their_way[0][0] <= low:
                    outstanding -= on_their_way.popleft()[1]
            sock.sendmsg(packet.buffers, (), 0, address)
            on_their_way.append((packet.high, packet.nbytes))
            outstanding += packet.nbytes
        return {"began": began}

    def close(self) -> None:
        self._socket.close()


class Receiver:
    """Cuts what comes, and acks now and then."""

    def __init__(self, job: Job) -> None:
        self._index = job.index
        self._size = job.size
        self._cut = cut_by_struct if job.api == "struct" else cut
        self._check = Check(Messages(job.size, job.count))

    def open(self, first: Report) -> Report:
        self._socket = sockets.listener([GROUP], PORT)
        return {"buffer": sockets.buffer_of(self._socket)}

    def meet(self, others: list[Report]) -> None:
        self._sender = address_of(others[0])
        self._ack_every = ack_every(self._size, window_of(others, senders=1))

    def play(self) -> Report:
        sock, check, index, every = self._socket, self._check, self._index, self._ack_every
        separate = self._cut
        buffer = bytearray(65_536)
        acked, is_last = 0, False
        while not is_last:
            sock.recvfrom_into(buffer)
            is_last = check.run(separate(buffer))
            if check.count - acked >= every:
                acked = check.count
                sock.sendto(ACK.pack(index, acked), self._sender)
        return check.report()

    def close(self) -> None:
        self._socket.close()


def window_of(others: Sequence[Report], senders: int) -> int:
    """Bytes that each sender may have on their way, so that no buffer overflows."""
    smallest = min(int(str(o["buffer"])) for o in others if "buffer" in o)
    window = min(WINDOW, smallest // senders)
    if window < 150_000:
        raise BenchFailure(
            f"the kernel gives {smallest:,} bytes of socket buffer: set net.core.rmem_max"
        )
    return window


def address_of(opened: Report) -> tuple[str, int]:
    """Where a process is reached."""
    endpoint = opened["endpoint"]
    assert isinstance(endpoint, list)
    return str(endpoint[0]), int(endpoint[1])
