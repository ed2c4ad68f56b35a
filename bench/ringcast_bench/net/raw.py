"""Bare UDP multicast on a network with an Ethernet MTU: one sender, a fixed window, and acks.

The messages are one stream of bytes that datagrams cut anywhere: nothing is lost, and the receiver
puts them together again. Three ways to send the same stream:

    raw-offload     datagrams that fit the MTU, about 40 per call (UDP_SEGMENT, UDP_GRO)
    raw-datagrams   datagrams that fit the MTU, one per call
    raw-fragments   datagrams of 60 KB, which IP fragments
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque

from ringcast_bench.job import Counted, Job, Missing, Report
from ringcast_bench.messages import Check, Messages
from ringcast_bench.raw import sockets
from ringcast_bench.raw.multicast import GROUP, PORT, address_of, window_of
from ringcast_bench.raw.packing import ACK, HEADER, Packet, ack_every, cut, packets

SEGMENT = 1_472
"""Bytes of a UDP datagram in a packet of 1,500 bytes."""
_UDP_SEGMENT, _UDP_GRO = 103, 104
_BUFFER_SHARE = 3
"""A window takes a third of the socket buffer: a small datagram costs the kernel 2 KB or more."""
_BUFFER = 1_048_576


def make(job: Job) -> Counted:
    """The side that the job names."""
    return Sender(job) if job.role == "sender" else Receiver(job)


class Sender:
    """Sends while the slowest receiver is within the window."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._messages = Messages(job.size, job.count)

    def open(self, first: Report) -> Report:
        self._socket = sockets.sender(self._job.host)
        if self._job.contestant == "raw-offload":
            try:
                self._socket.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, SEGMENT)
            except OSError as error:
                raise Missing(f"the kernel has no UDP_SEGMENT: {error}") from None
        return {"endpoint": self._socket.getsockname()}

    def meet(self, others: list[Report]) -> None:
        self._window = window_of(others, senders=_BUFFER_SHARE)

    def play(self) -> Report:
        sock, limit = self._socket, self._window
        send = self._send_each if self._job.contestant == "raw-datagrams" else self._send_at_once
        acked = dict.fromkeys(range(1, self._job.receivers + 1), 0)
        on_their_way: deque[tuple[int, int]] = deque()
        outstanding = 0
        began = time.monotonic()
        for packet in packets(self._messages):
            while outstanding + packet.nbytes > limit and on_their_way:
                who, count = ACK.unpack(sock.recv(ACK.size))
                acked[who] = count
                low = min(acked.values())
                while on_their_way and on_their_way[0][0] <= low:
                    outstanding -= on_their_way.popleft()[1]
            send(packet)
            on_their_way.append((packet.high, packet.nbytes))
            outstanding += packet.nbytes
        return {"began": began}

    def progress(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        self._socket.close()

    def _send_at_once(self, packet: Packet) -> None:
        self._socket.sendmsg(packet.buffers, (), 0, (GROUP, PORT))

    def _send_each(self, packet: Packet) -> None:
        whole = memoryview(b"".join(packet.buffers))
        for at in range(0, len(whole), SEGMENT):
            self._socket.sendto(whole[at : at + SEGMENT], (GROUP, PORT))


class Receiver:
    """Puts the stream together, cuts the messages, and acks now and then."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._check = Check(Messages(job.size, job.count))

    def open(self, first: Report) -> Report:
        self._socket = sockets.listener([GROUP], PORT, self._job.host)
        if self._job.contestant == "raw-offload":
            self._socket.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, struct.pack("i", 1))
        return {"buffer": sockets.buffer_of(self._socket)}

    def meet(self, others: list[Report]) -> None:
        self._sender = address_of(others[0])
        window = window_of(others, senders=_BUFFER_SHARE)
        self._ack_every = ack_every(self._job.size, window)

    def play(self) -> Report:
        sock, check, every = self._socket, self._check, self._ack_every
        buffer = bytearray(_BUFFER)
        view, filled, acked, is_last = memoryview(buffer), 0, 0, False
        while not is_last:
            filled += sock.recv_into(view[filled:])
            at = 0
            while filled - at >= HEADER.size:
                _, count, size = HEADER.unpack_from(buffer, at)
                end = at + HEADER.size + count * size
                if end > filled:
                    break
                is_last = check.run(cut(buffer, at))
                at = end
            if at:
                view[: filled - at] = view[at:filled]
                filled -= at
            if check.count - acked >= every:
                acked = check.count
                sock.sendto(ACK.pack(self._job.index, acked), self._sender)
        return check.report()

    def progress(self) -> dict[str, int]:
        return {"received": self._check.count}

    def close(self) -> None:
        self._socket.close()
