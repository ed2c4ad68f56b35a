"""The two halves of a connection, and how frames of former connections are told apart.

A connection is one direction of one pair of members. Its sender numbers messages from 1 and gives
it an id; later connections of the same member have larger ids. So a receiver that remembers the
last connection of a peer knows where a frame belongs:

    an older connection     a late frame of a connection that is over: dropped
    the open connection     continue
    the closed connection   the peer left the view and is back: continue after what was handed up
    a newer one, low = 0    nothing of it was acked, so nothing can be missing: begin at 1
    a newer one, low > 0    its beginning was acked here and forgotten: ask for a new connection

Exactly once rests on this. A sender repeats messages under a new id only when it is asked to. A
receiver asks only for a connection that it does not remember, and never opens that one again. The
one exception: messages that were handed up and not acked are delivered twice when a peer left,
returns with the same identity, still holds the connection that this member closed, and more than
`remembered_peers` other members left in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, FRAGMENT, SERVICE, Batch
from ringcast.core.reliable.congestion import Congestion
from ringcast.core.reliable.paced_repairs import PacedRepairs
from ringcast.core.reliable.repair import Repair, RequestTiming
from ringcast.core.reliable.tail_probe import Tail
from ringcast.core.reliable.windows import ReceiveWindow, SendWindow
from ringcast.core.stack.snapshot import PartSnapshot, ReceivedMarks, SentMarks
from ringcast.core.wire.fragments import read_header


class Outbound:
    """What this member sends to one peer."""

    __slots__ = ("arrived", "congestion", "conn", "repairs", "tail", "window")

    def __init__(
        self, conn: int, window: SendWindow, congestion: Congestion, repairs: PacedRepairs
    ) -> None:
        self.conn = conn
        self.window = window
        self.congestion = congestion
        self.repairs = repairs
        self.tail = Tail()
        self.arrived = 0
        """How many messages have arrived: everything beyond may be in flight."""

    def room(self, is_controlled: bool) -> tuple[int, int]:
        """How many messages and bytes may be sent now."""
        window = self.window
        messages, nbytes = window.room()
        if messages <= 0 or not is_controlled:
            return messages, nbytes
        if not self.repairs.pending:
            unacked = window.high - self.arrived
            in_flight = int(unacked * window.message_bytes) if unacked else 0
            left = self.congestion.room(in_flight, nbytes + in_flight or 1)
            if left > 0:
                return messages, nbytes if nbytes < left else left
        self.repairs.await_pace()
        return 0, 0

    def on_arrived(self, peer: Address, up_to: int, is_controlled: bool) -> bool:
        """This many messages have arrived; whether that may make room."""
        if not self.arrived < up_to <= self.window.high:
            return False
        self.arrived = up_to
        if is_controlled:
            window = self.window
            self.congestion.on_arrived(peer, up_to, window.high, window.message_bytes)
        return True


class Inbound:
    """What this member receives from one peer."""

    __slots__ = (
        "ack_due",
        "acked",
        "arrived_bytes",
        "conn",
        "known",
        "nbytes_owed",
        "repair",
        "window",
    )

    def __init__(self, conn: int, window: ReceiveWindow, timing: RequestTiming) -> None:
        self.conn = conn
        self.window = window
        self.repair = Repair(window, timing)
        self.known = window.high
        """The highest seqno that the peer has sent or announced; it may be past the window."""
        self.acked = window.delivered
        self.nbytes_owed = 0
        """Bytes that the application has taken and this member has not acked."""
        self.arrived_bytes = 0
        """Bytes that have arrived since the last ack."""
        self.ack_due = False


class Over(Enum):
    """Why a frame belongs to no connection."""

    LATE = "a newer connection of the peer is known"
    LOST = "its beginning was acked, and how much of it was handed up is forgotten"


class _Memory(NamedTuple):
    """What is left of a connection that was closed."""

    conn: int
    handed: int
    is_lost: bool


class Inbounds:
    """The connections from all peers: those that are open, and the last closed one of each."""

    def __init__(
        self,
        capacity: int,
        delay_min: float,
        delay_max: float,
        remembered: int,
        max_bytes: int | None = None,
        counters: Counter[str] | None = None,
    ) -> None:
        self.open: dict[Address, Inbound] = {}
        self.forgotten = 0
        """How many closed connections were forgotten, because there were too many."""
        self._capacity, self._max_bytes = capacity, max_bytes
        self._counters = counters
        self._delays = (delay_min, delay_max)
        self._closed: dict[Address, _Memory] = {}
        self._remembered = remembered

    def find(self, peer: Address, conn: int, low: int) -> Inbound | Over:
        """The connection of a frame; a new one is opened, and ends the one before."""
        inbound = self.open.get(peer)
        if inbound is not None:
            if inbound.conn == conn:
                return inbound
            last = _Memory(inbound.conn, inbound.window.handed, False)
        else:
            last = self._closed.get(peer, _Memory(0, 0, False))
        if conn < last.conn:
            return Over.LATE
        if conn == last.conn:
            return Over.LOST if last.is_lost else self._begin(peer, conn, last.handed)
        if low == 0:
            return self._begin(peer, conn, 0)
        self.open.pop(peer, None)
        self._remember(peer, _Memory(conn, 0, True))
        return Over.LOST

    def close(self, peer: Address) -> None:
        """End the connection of a peer, if there is one, and remember what was handed up."""
        inbound = self.open.pop(peer, None)
        if inbound is not None:
            self._remember(peer, _Memory(inbound.conn, inbound.window.handed, False))

    @property
    def remembered(self) -> int:
        """How many closed connections are remembered."""
        return len(self._closed)

    def _begin(self, peer: Address, conn: int, handed: int) -> Inbound:
        self._closed.pop(peer, None)
        window = ReceiveWindow(
            self._capacity, handed, counters=self._counters, max_bytes=self._max_bytes
        )
        inbound = self.open[peer] = Inbound(conn, window, RequestTiming(*self._delays))
        return inbound

    def _remember(self, peer: Address, memory: _Memory) -> None:
        self._closed.pop(peer, None)
        self._closed[peer] = memory
        if len(self._closed) > self._remembered:
            del self._closed[next(iter(self._closed))]
            self.forgotten += 1


def count_messages(runs: Iterable[Batch]) -> int:
    """How many of the application's messages end in these runs: service messages do not count, and
    a message in fragments counts with its last one."""
    count = 0
    for run in runs:
        if run.flags & (CALL | SERVICE):
            continue
        if not run.flags & FRAGMENT:
            count += len(run)
            continue
        headers = map(read_header, run.payloads)
        count += sum(header is not None and header.index == header.count - 1 for header in headers)
    return count


@dataclass(frozen=True, kw_only=True)
class UnicastSnapshot(PartSnapshot):
    """The windows of messages for one member alone."""

    own: SentMarks
    """Messages of this member to itself."""
    to: Mapping[Address, SentMarks]
    """By member: the messages to it."""
    from_: Mapping[Address, ReceivedMarks]
    """By member: its messages to this one."""
    remembered: int
    """Former connections that are remembered, so that none is accepted again."""
