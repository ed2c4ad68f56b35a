"""The ports of the simulated switch: each has a rate, and a queue that drops what does not fit.

A datagram leaves through its sender's uplink once, crosses the link that all members share once,
and leaves through the downlink of each of its receivers. A port without a rate costs no time.
"""

from __future__ import annotations

import math
from bisect import insort

from ringcast.errors import ConfigError

SEND_BUFFER = 4 << 20
"""Bytes that wait for a port whose queue has no bound of its own: a socket's send buffer."""
SETTINGS = ("bandwidth", "downlink", "shared", "queue")


class Port:
    """One port: the times at which it is busy from now on."""

    __slots__ = ("_busy",)

    def __init__(self) -> None:
        self._busy: list[tuple[float, float]] = []
        """Busy from–to, in order; datagrams without a pause between them are one entry."""

    def departure(
        self, nbytes: int, at: float, now: float, rate: float, queue: float | None
    ) -> float | None:
        """When a datagram that reaches the port at this time has left it; None when the queue is
        full.

        Datagrams are announced when they are sent, so one that reaches the port earlier may be
        announced later: it leaves before the others if it fits there.
        """
        busy = self._busy
        while busy and busy[0][1] <= now:
            del busy[0]
        duration = nbytes / rate
        start = self._start(at, duration)
        waiting = (start - at) * rate
        if waiting > SEND_BUFFER if queue is None else waiting + nbytes > queue:
            return None
        end = start + duration
        if busy and busy[-1][1] == start:
            busy[-1] = (busy[-1][0], end)
        else:
            insort(busy, (start, end))
        return end

    def _start(self, at: float, duration: float) -> float:
        """The first time from `at` on at which the port is free for this long."""
        busy = self._busy
        if not busy or at >= busy[-1][0]:
            return max(at, busy[-1][1]) if busy else at
        start = at
        for begin, end in busy:
            if begin - start >= duration:
                break
            start = max(start, end)
        return start


class Switch:
    """The switch between all members."""

    def __init__(
        self,
        bandwidth: float | None = None,
        downlink: float | None = None,
        shared: float | None = None,
        queue: float | None = None,
    ) -> None:
        for name, value in (("bandwidth", bandwidth), ("downlink", downlink), ("shared", shared)):
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(
                    f"{name} is {value}: give bytes per second above 0; without it there is no"
                    " limit"
                )
        if queue is not None and not queue > 0:
            raise ConfigError(f"queue is {queue}: give bytes above 0; without it, it is large")
        self.bandwidth = bandwidth
        """Bytes per second of each uplink; None for no limit."""
        self.downlink = downlink
        """Bytes per second of each downlink."""
        self.shared = shared
        """Bytes per second of the link that all members share."""
        self.queue = queue
        """Bytes that wait at a port before it drops what arrives."""
        self._downlinks: dict[str, float | None] = {}
        self._ports: dict[tuple[str, str], Port] = {}

    def __repr__(self) -> str:
        rates = {name: getattr(self, name) for name in SETTINGS}
        told = ", ".join(f"{name}={value:g}" for name, value in rates.items() if value is not None)
        return f"Switch({told})"

    def set_downlink(self, name: str, rate: float | None) -> None:
        """Give the downlink of one member a rate of its own."""
        self._downlinks[name] = rate

    def open(self) -> None:
        """Take all limits away, and forget what waits."""
        self.bandwidth = self.downlink = self.shared = self.queue = None
        self._downlinks.clear()
        self._ports.clear()

    def sent(self, source: str, nbytes: int, now: float) -> float | None:
        """When a datagram has left its sender and the shared link; None when a queue is full."""
        at = self._passed("up", source, nbytes, now, now, self.bandwidth)
        return None if at is None else self._passed("shared", "", nbytes, at, now, self.shared)

    def received(self, target: str, nbytes: int, at: float, now: float) -> float | None:
        """When it has left the downlink of a receiver; None when the queue is full."""
        rate = self._downlinks.get(target, self.downlink) if self._downlinks else self.downlink
        return at if rate is None else self._passed("down", target, nbytes, at, now, rate)

    def _passed(
        self, side: str, name: str, nbytes: int, at: float, now: float, rate: float | None
    ) -> float | None:
        if rate is None:
            return at
        port = self._ports.get((side, name))
        if port is None:
            port = self._ports[side, name] = Port()
        return port.departure(nbytes, at, now, rate, self.queue)
