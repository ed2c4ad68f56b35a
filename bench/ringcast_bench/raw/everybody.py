"""Bare UDP multicast where all processes send to all: a window per sender, and acks.

Each sender has a multicast address of its own, which it does not listen to: nobody pays for hearing
itself. Its own messages count as received, since it has them.
"""

from __future__ import annotations

import select
import time
from collections import deque

from ringcast_bench.job import WAIT, BenchFailure, Contestant, Job, Report
from ringcast_bench.messages import Check, Messages
from ringcast_bench.raw import sockets
from ringcast_bench.raw.multicast import address_of, window_of
from ringcast_bench.raw.packing import ACK, Packet, ack_every, cut, packets

PORT = 7792
BURST = 8
"""Datagrams that are taken, and sent, before it is the other's turn."""


def make(job: Job) -> Contestant:
    """One of the processes, which are all alike."""
    return Everybody(job)


class Everybody:
    """Sends and receives in turn, in one thread."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)
        others = [index for index in range(job.senders) if index != job.index]
        self._checks = {index: Check(self._messages) for index in others}
        self._acked = dict.fromkeys(others, 0)
        """How far the others have what this one sent."""
        self._told = dict.fromkeys(others, 0)
        """How far this one has told the others."""
        self._on_their_way: deque[tuple[int, int]] = deque()
        self._outstanding = 0
        self._unfinished = len(others)

    def open(self, first: Report) -> Report:
        self._socket = sockets.sender(self._job.host)
        groups = [group_of(index) for index in self._checks]
        self._listener = sockets.listener(groups, PORT, self._job.host)
        for sock in (self._socket, self._listener):
            sock.setblocking(False)
        return {
            "endpoint": self._socket.getsockname(),
            "buffer": sockets.buffer_of(self._listener),
        }

    def meet(self, others: list[Report]) -> None:
        self._addresses = [address_of(other) for other in others]
        self._by_address = {address: n for n, address in enumerate(self._addresses)}
        self._window = window_of(others, senders=len(self._checks))
        self._every = ack_every(self._job.size, self._window)

    def play(self) -> Report:
        poll = select.poll()
        for sock in (self._socket, self._listener):
            poll.register(sock, select.POLLIN)
        self._buffer = bytearray(65_536)
        left = packets(self._messages)
        began = time.monotonic()
        packet = next(left, None)
        while packet is not None or self._unfinished:
            moved = self._take() if self._unfinished else 0
            self._take_acks()
            for _ in range(BURST):
                if packet is None or self._outstanding + packet.nbytes > self._window:
                    break
                self._send(packet)
                packet = next(left, None)
                moved += 1
            if not moved and not poll.poll(1_000 * WAIT):
                raise BenchFailure("nothing came any more")
        ended = max(time.monotonic(), *(check.ended for check in self._checks.values()))
        count = sum(check.count for check in self._checks.values()) + self._messages.count
        return {"began": began, "ended": ended, "count": count}

    def progress(self) -> dict[str, int]:
        """Messages received from others, and its own that all others have."""
        received = sum(check.count for check in self._checks.values())
        return {"received": received + min(self._acked.values())}

    def close(self) -> None:
        self._socket.close()
        self._listener.close()

    def _send(self, packet: Packet) -> None:
        self._socket.sendmsg(packet.buffers, (), 0, (group_of(self._job.index), PORT))
        self._on_their_way.append((packet.high, packet.nbytes))
        self._outstanding += packet.nbytes

    def _take(self) -> int:
        """Take what is there; how many datagrams it was."""
        for taken in range(BURST):
            try:
                _, source = self._listener.recvfrom_into(self._buffer)
            except BlockingIOError:
                return taken
            sender = self._by_address[source]
            check = self._checks[sender]
            if check.run(cut(self._buffer)):
                self._unfinished -= 1
            if check.count - self._told[sender] >= self._every:
                self._told[sender] = check.count
                ack = ACK.pack(self._job.index, check.count)
                self._socket.sendto(ack, self._addresses[sender])
        return BURST

    def _take_acks(self) -> None:
        try:
            while True:
                who, count = ACK.unpack(self._socket.recv(ACK.size))
                self._acked[who] = count
        except BlockingIOError:
            pass
        low = min(self._acked.values())
        while self._on_their_way and self._on_their_way[0][0] <= low:
            self._outstanding -= self._on_their_way.popleft()[1]


def group_of(index: int) -> str:
    """The multicast address of a sender."""
    return f"239.77.9.{10 + index}"
