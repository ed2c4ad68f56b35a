"""The acks of a receiver: when it tells each sender how far its application is.

Acks go out after `ack_threshold` delivered messages or a quarter of the bytes, else on the tick.
They go out sooner where messages of ACK_BYTES have arrived since the last ack, at most once per
ACK_SECONDS: a sender with a small window waits for it, and measures the path by it.
While a large message arrives whose ack will cover its fragments, deliveries are acked for the
window's need only.
"""

from __future__ import annotations

from typing import Protocol

from ringcast.core.model.address import Address
from ringcast.core.reliable.ticker import ACK_BYTES, ACK_SECONDS, Ticker
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation
from ringcast.core.wire.frames import Ack, Last
from ringcast.layers.multicast.flight_control import FlightControl
from ringcast.layers.multicast.group_windows import GroupWindows

ACK_GROUP_SIZE = 4
"""In groups with more members, acks are rarer, so that a sender does not get more of them."""


class AckSpec(Protocol):
    """The settings that acks depend on."""

    @property
    def capacity(self) -> int:
        """Messages in a window."""
        ...

    @property
    def max_bytes(self) -> int:
        """Bytes in a window."""
        ...

    @property
    def flight_bytes(self) -> int:
        """Bytes in flight."""
        ...

    @property
    def ack_threshold(self) -> int:
        """Delivered messages after which an ack goes out at once."""
        ...


class _Unacked:
    """What was delivered of one sender since the last ack."""

    __slots__ = (
        "acked",
        "arrived_bytes",
        "delivered_bytes",
        "final",
        "is_due",
        "suppressed_to",
    )

    def __init__(self, acked: int) -> None:
        self.acked = acked
        self.delivered_bytes = 0
        self.arrived_bytes = 0
        self.is_due = False
        """Whether the next tick sends an ack, even if nothing was delivered."""
        self.final = 0
        """The last seqno, as the sender announced it when nothing was outstanding."""
        self.suppressed_to = 0
        """Up to here the ack of a whole message will cover its fragments."""


class AckSender:
    """The acks of one receiver, to all senders of the view."""

    __slots__ = (
        "_ack_bytes",
        "_ack_messages",
        "_capacity",
        "_env",
        "_flight",
        "_group",
        "_is_soon",
        "_max_bytes",
        "_soon",
        "_ticker",
        "_unacked",
    )

    def __init__(
        self,
        env: Env,
        spec: AckSpec,
        group: GroupWindows,
        flight: FlightControl,
        ticker: Ticker,
        soon: Ticker,
    ) -> None:
        """soon: calls `send_soon`."""
        self._env = env
        self._group = group
        self._flight = flight
        self._ticker = ticker
        self._soon = soon
        self._is_soon = False
        """Whether `soon` is running."""
        self._capacity = spec.capacity
        self._max_bytes = spec.max_bytes
        self._ack_messages = max(1, min(spec.ack_threshold, spec.capacity // 4))
        self._ack_bytes = max(1, min(spec.max_bytes, spec.flight_bytes) // 4)
        self._unacked: dict[Address, _Unacked] = {}

    def on_arrived(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        """Ack arrivals that are not delivered yet: they are no longer in flight."""
        flight, env = self._flight, self._env
        if not (flight.is_shared or env.sends_packets):
            return
        flight.sent_at[sender] = env.now
        unacked = self._unacked[sender]
        unacked.arrived_bytes += nbytes
        enough = self._ack_bytes // flight.count_senders()
        # Without gaps, the ack of the delivery is about to say the same.
        if unacked.arrived_bytes >= (enough if window.gaps else 2 * enough):
            self._ack(sender, window)
        elif not self._is_soon and unacked.arrived_bytes >= ACK_BYTES and env.sends_packets:
            self._is_soon = True
            self._soon.arm()

    def on_delivered(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        """Ack deliveries, at once or on the tick."""
        unacked = self._unacked[sender]
        count = window.delivered - unacked.acked
        if count <= 0:
            return  # The ack of a whole message covered it.
        unacked.delivered_bytes += nbytes
        if window.delivered < unacked.suppressed_to:
            is_half = 2 * count >= self._capacity or 2 * unacked.delivered_bytes >= self._max_bytes
            if is_half and not self._fits_window(unacked, count):
                self._ack(sender, window)
        elif (
            count >= self._ack_messages
            or unacked.delivered_bytes * self._flight.active_senders >= self._ack_bytes
        ):
            self._ack(sender, window)
        else:
            unacked.is_due = True
            self._ticker.arm()

    def _fits_window(self, unacked: _Unacked, count: int) -> bool:
        """Whether a large message fits the window together with what is not acked before it, so
        that its sender needs no ack in its middle."""
        messages = unacked.suppressed_to - unacked.acked
        nbytes = unacked.delivered_bytes * messages // count
        return messages <= self._capacity and nbytes <= self._max_bytes

    def ack_on_tick(self, sender: Address) -> None:
        """Ack on the next tick, even if nothing is delivered until then."""
        self._unacked[sender].is_due = True
        self._ticker.arm()

    def on_last(self, frame: Last, source: Address) -> None:
        """A sender without outstanding messages announces them once; when it repeats itself, it
        lacks an ack."""
        unacked = self._unacked.get(source)
        if unacked is not None and frame.low == frame.high:
            if unacked.final == frame.high:
                self.ack_on_tick(source)
            unacked.final = frame.high

    def acked_by_large(self, sender: Address, up_to: int) -> None:
        """The ack of a whole message has told the sender everything up to here."""
        unacked = self._unacked[sender]
        unacked.acked = max(unacked.acked, up_to)
        unacked.delivered_bytes, unacked.is_due = 0, False

    def suppress_until(self, sender: Address, up_to: int) -> None:
        """The ack of a whole message will cover everything up to here."""
        self._unacked[sender].suppressed_to = up_to

    def send_due(self) -> None:
        """Send the acks that wait for the tick."""
        for sender, unacked in self._unacked.items():
            if unacked.is_due:
                self._ack(sender, self._group.windows[sender])

    def send_soon(self) -> None:
        """Ack what has arrived of senders that may wait for it."""
        self._is_soon = False
        self._soon.interval = self.interval
        for sender, unacked in self._unacked.items():
            if unacked.arrived_bytes >= ACK_BYTES:
                self._ack(sender, self._group.windows[sender])

    @property
    def interval(self) -> float:
        """The least seconds between two acks to one sender."""
        crowd = max(1.0, self._group.size / ACK_GROUP_SIZE)
        return ACK_SECONDS * crowd * self._flight.active_senders

    def install(self, installation: Installation) -> None:
        """Ack the members of a new view."""
        for member in installation.left:
            self._unacked.pop(member, None)
        for member, window in self._group.windows.items():
            unacked = self._unacked.get(member)
            if unacked is None or unacked.acked > window.delivered:
                self._unacked[member] = _Unacked(window.delivered)
        assert self._unacked.keys() == self._group.windows.keys()

    def _ack(self, sender: Address, window: ReceiveWindow) -> None:
        unacked = self._unacked[sender]
        unacked.acked, unacked.is_due = window.delivered, False
        unacked.delivered_bytes = unacked.arrived_bytes = 0
        self._env.out.send(Ack(window.delivered, window.ahead), sender)
