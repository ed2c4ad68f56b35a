"""The two halves of a connection, and how frames of former connections are told apart.

A connection is one direction of one pair of members. Its sender numbers messages from 1 and gives
it an id; every later connection of the same member has a larger one. So a receiver that remembers
the last connection of a peer knows what a frame belongs to:

    an older connection     it is over, and this is a late frame of it: dropped
    the one it has          go on
    the one it had          the peer left the view and is back: go on behind what was handed up
    a newer one, low = 0    nothing of it was acked, so nothing can be missing: begin at 1
    a newer one, low > 0    its beginning was acked here and forgotten: ask for a new connection

That is what exactly once rests on. A sender repeats messages under a new id only when it is asked
to, and a receiver asks only for a connection of which it has no memory, and never opens that one
again. What it had handed up of it and not acked comes a second time then. This takes a peer that
left, is back under the same identity, still holds the connection that this member closed, and more
departures in between than `remembered_peers`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ringcast.core.address import Address
from ringcast.core.reliable import Tail
from ringcast.core.repair import Pace, Repair
from ringcast.core.windows import ReceiveWindow, SendWindow


class Outbound:
    """What this member sends to one peer."""

    __slots__ = ("conn", "tail", "window")

    def __init__(self, conn: int, window: SendWindow) -> None:
        self.conn = conn
        self.window = window
        self.tail = Tail()


class Inbound:
    """What comes from one peer."""

    __slots__ = ("ack_due", "acked", "conn", "known", "nbytes_owed", "repair", "window")

    def __init__(self, conn: int, window: ReceiveWindow, pace: Pace) -> None:
        self.conn = conn
        self.window = window
        self.repair = Repair(window, pace)
        self.known = window.high
        """The highest seqno that the peer has spoken of; it may be past the window."""
        self.acked = window.delivered
        self.nbytes_owed = 0
        """Bytes that the application has taken and that are not acked."""
        self.ack_due = False


class Over(Enum):
    """Why a frame belongs to no connection."""

    LATE = "a newer connection of the peer is known"
    LOST = "its beginning was acked, and how far it had come is no longer known"


class _Memory(NamedTuple):
    """What is left of a connection that was closed."""

    conn: int
    handed: int
    is_lost: bool


class Inbounds:
    """The connections from all peers: those that are open, and the last closed one of each."""

    def __init__(self, capacity: int, delay_min: float, delay_max: float, remembered: int) -> None:
        self.open: dict[Address, Inbound] = {}
        self.forgotten = 0
        """How many closed connections are no longer remembered, since there were too many."""
        self._capacity = capacity
        self._delays = (delay_min, delay_max)
        self._closed: dict[Address, _Memory] = {}
        self._remembered = remembered

    def find(self, peer: Address, conn: int, low: int) -> Inbound | Over:
        """The connection that a frame belongs to; a new one is opened, and ends the one before."""
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
        """End the connection of a peer, if there is one, and remember how far it was."""
        inbound = self.open.pop(peer, None)
        if inbound is not None:
            self._remember(peer, _Memory(inbound.conn, inbound.window.handed, False))

    @property
    def remembered(self) -> int:
        """How many closed connections are remembered."""
        return len(self._closed)

    def _begin(self, peer: Address, conn: int, handed: int) -> Inbound:
        self._closed.pop(peer, None)
        window = ReceiveWindow(self._capacity, handed)
        inbound = self.open[peer] = Inbound(conn, window, Pace(*self._delays))
        return inbound

    def _remember(self, peer: Address, memory: _Memory) -> None:
        self._closed.pop(peer, None)
        self._closed[peer] = memory
        if len(self._closed) > self._remembered:
            del self._closed[next(iter(self._closed))]
            self.forgotten += 1
