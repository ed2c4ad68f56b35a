"""Strangers that send as much as they can: `python -m ringcast_bench.flood KIND`, until killed.

    garbage  40,000 datagrams of 100 random bytes per second to the multicast port
    alive    as many ALIVEs of processes in no view
    discover as many questions of discovery, each of another process
    tcp      one connection that says hello and then sends 2.5 MB of empty frames per second

Each has an "-elsewhere", which sends the same where no member listens: what is lost then is lost to
the CPU that the flood itself takes.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Self

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Alive, Discover
from ringcast.runtime.net.connection import encode_hello
from ringcast.transports import Udp
from ringcast_bench.job import Job
from ringcast_bench.namespace import Namespace

KINDS = ("garbage", "alive", "discover", "tcp")
ELSEWHERE = "-elsewhere"
RATE = 40_000
"""Datagrams per second."""
SIZE = 100
TCP_RATE = 2_500_000
"""Bytes per second."""
TICK = 0.001
STRANGERS = 8_192
"""Addresses that frames come from."""
_LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""


class Flood:
    """A process that floods the namespace while the context is open; empty for none."""

    def __init__(self, namespace: Namespace, kind: str) -> None:
        self._words = [*namespace.enter, sys.executable, "-m", "ringcast_bench.flood", kind]
        self._process: subprocess.Popen[bytes] | None = None
        self._kind = kind

    def __enter__(self) -> Self:
        if self._kind:
            self._process = subprocess.Popen(self._words)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            with self._process as process:
                process.kill()


def main() -> None:
    """Send until this process is killed, or has lost the one that started it."""
    name = sys.argv[1]
    kind, is_elsewhere = name.removesuffix(ELSEWHERE), name.endswith(ELSEWHERE)
    if kind == "tcp":
        _flood_stream(_sink() if is_elsewhere else _listening_port())
    else:
        _flood_datagrams(list(datagrams(kind)), is_elsewhere)


def datagrams(kind: str) -> Iterator[bytes]:
    """What strangers send, in turn."""
    rng = random.Random(1)
    for _ in range(STRANGERS):
        if kind == "garbage":
            yield rng.randbytes(SIZE)
            continue
        source = Address(rng.getrandbits(62) + 1)
        question = Discover(Peer(source, "", "127.0.0.1:9"), NO_VIEW, 0)
        frame = Alive() if kind == "alive" else question
        yield b"".join(encode(group_id(Job.group), source, [frame]))


def _flood_datagrams(sent: list[bytes], is_elsewhere: bool) -> None:
    transport = Udp()
    target = (transport.multicast, transport.multicast_port + is_elsewhere)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(transport.bind))
        content = cycle(sent)

        def send(count: int) -> None:
            for data in islice(content, count):
                with suppress(OSError):
                    sock.sendto(data, target)

        _pace(RATE, send)


def _flood_stream(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(encode_hello(group_id(Job.group), Address(0xBAD)))
        sock.setblocking(False)

        def send(count: int) -> None:
            with suppress(BlockingIOError):  # A member that reads slowly stops this flood.
                sock.send(bytes(4 * (count // 4)))

        with suppress(ConnectionError):
            _pace(TCP_RATE, send)
    while os.getppid() != 1:  # It was ended, as it should be.
        time.sleep(0.1)


def _pace(rate: int, send: Callable[[int], None]) -> None:
    parent, due = os.getppid(), time.monotonic()
    while os.getppid() == parent:
        send(round(rate * TICK))
        due = max(due + TICK, time.monotonic() - 10 * TICK)
        time.sleep(max(0.0, due - time.monotonic()))


def _sink() -> int:
    """A listener of this process that reads and drops everything."""
    listener = socket.create_server(("127.0.0.1", 0))

    def drop() -> None:
        caller, _ = listener.accept()
        while caller.recv(65_536):
            pass

    threading.Thread(target=drop, daemon=True).start()
    return int(listener.getsockname()[1])


def _listening_port() -> int:
    """The lowest port of this namespace that a member listens at, as soon as there is one."""
    while True:
        lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
        fields = [line.split() for line in lines]
        ports = [int(f[1].rpartition(":")[2], 16) for f in fields if f[3] == _LISTENS]
        if ports:
            return min(ports)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
