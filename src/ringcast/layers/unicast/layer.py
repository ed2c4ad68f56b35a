"""Unicast: messages for one member, in the sender's order and exactly once while both are members.

The rules are those of the multicast, for one receiver: number, store and send are one step; the
receiver acks what its application has taken, at once after `ack_threshold` messages (or a quarter
of the window's bytes), else on the tick; gaps are asked for; an idle sender with something unacked
announces its last message each tick, which repairs a lost last message as well as a lost ack.

A connection opens with the first message and ends when the peer leaves: what was not acked by then
is dropped and counted. It goes on across all other views, and is no part of what a view promises: a
message may be delivered in a later view than it was sent in. How frames of former connections are
told apart, and what that means for exactly once, is in `base`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.env import Env
from ringcast.core.frames import (
    Frame,
    UnicastAck,
    UnicastData,
    UnicastLast,
    UnicastNak,
    UnicastReset,
)
from ringcast.core.part import Installation, Spec
from ringcast.core.ranges import RangeSet
from ringcast.core.reliable import Reliable, Tail
from ringcast.core.repair import Repair
from ringcast.core.windows import Hole, SendWindow
from ringcast.errors import ConfigError
from ringcast.layers.unicast.base import Inbound, Inbounds, Outbound, Over


@dataclass(frozen=True, kw_only=True)
class Unicast(Spec):
    """Reliable messages between two members."""

    role: ClassVar[str] = "unicast"

    capacity: int = 4_096
    """Messages that may be outstanding per receiver. More hides longer round trips and costs
    memory at both ends."""
    max_bytes: int = 4_000_000
    """Bytes that may be outstanding per receiver; what a burst may put into its socket buffer."""
    ack_threshold: int = 256
    """Messages after whose delivery a receiver acks at once; at most a quarter of the capacity is
    waited for. Fewer acks cost less, and let the sender wait longer when its window is small."""
    xmit_interval: float = 0.1
    """Seconds between the ticks at which an idle sender announces its last message and receivers
    ack; the first time it does so a tenth of that after the message. Shorter finds a lost last
    message sooner, and costs a frame a tick while any is unacked."""
    request_delay: float = 0.001
    """The least seconds between seeing a gap and asking for it; grows where the path reorders."""
    request_ranges: int = 512
    """The most gaps in one request."""
    request_messages: int = 4_096
    """The most messages in one request; the rest is asked for in the next."""
    remembered_peers: int = 1_024
    """Departed members whose last connection is remembered, so that one that comes back with the
    same identity (after a partition) goes on where it was. A few numbers each."""

    def __post_init__(self) -> None:
        at_least_1 = ("capacity", "max_bytes", "ack_threshold", "request_ranges")
        for field in (*at_least_1, "request_messages", "remembered_peers"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Unicast.{field} is {getattr(self, field)}: give at least 1")
        if self.xmit_interval <= 0:
            raise ConfigError(
                f"Unicast.xmit_interval is {self.xmit_interval}: give seconds above 0"
            )
        if not 0 <= self.request_delay <= self.xmit_interval:
            raise ConfigError(
                f"Unicast.request_delay is {self.request_delay}: give 0 up to the xmit_interval"
                f" of {self.xmit_interval} seconds"
            )

    def build(self, env: Env) -> UnicastLayer:
        """The layer with these settings."""
        return UnicastLayer(env, self)


class UnicastLayer(Reliable):
    """The layer that gets messages for one member there, in order."""

    kinds = (UnicastData, UnicastAck, UnicastNak, UnicastLast, UnicastReset)

    def __init__(self, env: Env, spec: Unicast) -> None:
        super().__init__(env)
        self.spec: Unicast = spec
        self.outbound: dict[Address, Outbound] = {}
        self.own = SendWindow(spec.capacity, spec.max_bytes)
        """Messages of this member to itself."""
        self._members: frozenset[Address] = frozenset()
        self._inbounds = Inbounds(
            spec.capacity, spec.request_delay, spec.xmit_interval, spec.remembered_peers
        )
        self._last_conn = env.rng.getrandbits(62)
        self._ack_messages = max(1, min(spec.ack_threshold, spec.capacity // 4))
        self._ack_bytes = max(1, spec.max_bytes // 4)

    # Sending -------------------------------------------------------------------------------------

    def room(self, dest: Address | None) -> tuple[int, int]:
        if dest is None:
            return self.below.room(None)
        if dest == self.env.me:
            return self.own.room()
        if dest not in self._members:
            return 0, 0
        outbound = self.outbound.get(dest)
        if outbound is None:
            return self.spec.capacity, self.spec.max_bytes
        return outbound.window.room()

    def down(self, batch: Batch) -> None:
        dest = batch.dest
        if dest is None:
            self.below.down(batch)
            return
        batch.sent_at = self.env.clock
        if dest == self.env.me:
            self.own.append(batch)
            self.above.up(batch)
            return
        assert dest in self._members
        outbound = self.outbound.get(dest)
        if outbound is None:
            outbound = self.outbound[dest] = self._new_outbound()
        outbound.window.append(batch)
        self._send(outbound, batch, dest)
        self._on_sent(outbound.tail)

    def _new_outbound(self) -> Outbound:
        self._last_conn += 1 + self.env.rng.getrandbits(32)
        return Outbound(self._last_conn, SendWindow(self.spec.capacity, self.spec.max_bytes))

    def _send(self, outbound: Outbound, run: Batch, dest: Address) -> None:
        frame = UnicastData(
            outbound.conn,
            run.first,
            outbound.window.low,
            run.sent_at,
            run.flags,
            run.payloads,
            run.nbytes,
            run.size,
        )
        self.env.out.send(frame, dest)

    @property
    def drained(self) -> bool:
        """Whether nothing waits above, and all that this member sent to others was delivered."""
        unacked = any(outbound.window.outstanding for outbound in self.outbound.values())
        return not unacked and self.above.drained

    # Receiving -----------------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if source not in self._members:
            self.env.counters["dropped_not_member"] += 1
        elif isinstance(frame, UnicastData):
            self._on_data(frame, source)
        elif isinstance(frame, UnicastAck):
            self._on_ack(frame, source)
        elif isinstance(frame, UnicastNak):
            self._on_nak(frame, source)
        elif isinstance(frame, UnicastLast):
            self._on_last(frame, source)
        elif isinstance(frame, UnicastReset):
            self._on_reset(frame, source)

    def _on_data(self, frame: UnicastData, source: Address) -> None:
        inbound = self._find(source, frame.conn, frame.low)
        if inbound is None:
            return
        run = Batch(
            source,
            frame.payloads,
            frame.nbytes,
            dest=self.env.me,
            first=frame.first,
            flags=frame.flags,
            sent_at=frame.sent_at,
            size=frame.size,
        )
        window = inbound.window
        in_order = window.handed == window.high
        inbound.known = max(inbound.known, run.last)
        self._hand_up(window.put(run))
        if not in_order or window.gaps:
            self._note(inbound.repair)

    def _hand_up(self, runs: list[Batch | Hole]) -> None:
        for run in runs:
            assert isinstance(run, Batch)  # Nothing is ever skipped here.
            self.above.up(run)

    def _on_last(self, frame: UnicastLast, source: Address) -> None:
        inbound = self._find(source, frame.conn, frame.low)
        if inbound is None:
            return
        inbound.known = max(inbound.known, frame.high)
        inbound.window.expect(inbound.known)
        self._note(inbound.repair)
        self._ack(inbound, source)

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """The application has taken this sender's messages to this member up to here."""
        if sender == self.env.me:
            if self.own.purge(up_to):
                self.above.resume()
            return
        inbound = self._inbounds.open.get(sender)
        if inbound is None:
            return
        window = inbound.window
        # Messages of a closed connection that were still waiting count here: an ack too early, for
        # what has been handed up already, is all that comes of it.
        window.deliver(up_to)
        inbound.nbytes_owed += nbytes
        owed = window.delivered - inbound.acked
        if owed >= self._ack_messages or inbound.nbytes_owed >= self._ack_bytes:
            self._ack(inbound, sender)
        elif owed:
            inbound.ack_due = True
            self._arm()
        if inbound.known > window.high:  # The window was too small for them, and has moved.
            window.expect(inbound.known)
            self._note(inbound.repair)

    def _ack(self, inbound: Inbound, source: Address) -> None:
        inbound.acked, inbound.nbytes_owed = inbound.window.delivered, 0
        inbound.ack_due = False
        self.env.out.send(UnicastAck(inbound.conn, inbound.acked), source)

    # Asking and answering ------------------------------------------------------------------------

    def _open_repairs(self) -> Iterable[tuple[Address, Repair]]:
        return ((source, inbound.repair) for source, inbound in self._inbounds.open.items())

    def _request(self, source: Address, wanted: RangeSet) -> None:
        conn = self._inbounds.open[source].conn
        self.env.out.send(UnicastNak(conn, wanted), source)

    def _on_nak(self, frame: UnicastNak, source: Address) -> None:
        outbound = self.outbound.get(source)
        if outbound is None or outbound.conn != frame.conn:
            # Asked for messages that were dropped when the peer had left: let it stop asking.
            self.env.out.send(UnicastReset(frame.conn), source)
            return
        for run in outbound.window.get(frame.ranges):
            self.env.counters["resent"] += len(run)
            self._send(outbound, run, source)

    def _on_ack(self, frame: UnicastAck, source: Address) -> None:
        outbound = self.outbound.get(source)
        if outbound is None or outbound.conn != frame.conn:
            self.env.counters["dropped_closed_connection"] += 1
        elif frame.delivered > outbound.window.high:
            self.env.counters["dropped_foreign_ack"] += 1
        elif outbound.window.purge(frame.delivered):
            self.above.resume()

    # The tick: acks that are due, and announcements while anything is unacked -----------------

    def _tick(self) -> None:
        for source, inbound in self._inbounds.open.items():
            if inbound.ack_due:
                self._ack(inbound, source)
        for dest, outbound in self.outbound.items():
            window = outbound.window
            if window.outstanding:
                if not outbound.tail.is_fresh:
                    self._announce_tail(dest)
                self._arm()
            outbound.tail.is_fresh = False

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        return ((outbound.tail, dest) for dest, outbound in self.outbound.items())

    def _announce_tail(self, dest: Address | None) -> None:
        assert dest is not None
        outbound = self.outbound[dest]
        window = outbound.window
        if window.outstanding:
            self.env.out.send(UnicastLast(outbound.conn, window.low, window.high), dest)

    # Connections begin and end -------------------------------------------------------------------

    def _find(self, source: Address, conn: int, low: int) -> Inbound | None:
        """The connection that a frame belongs to, opened if need be; None if it is over."""
        found = self._inbounds.find(source, conn, low)
        if isinstance(found, Inbound):
            return found
        if found is Over.LOST:
            self.env.out.send(UnicastReset(conn), source)
        else:
            self.env.counters["dropped_closed_connection"] += 1
        return None

    def _on_reset(self, frame: UnicastReset, source: Address) -> None:
        """The peer does not know a connection: its own to this member, or this member's to it."""
        outbound, inbound = self.outbound.get(source), self._inbounds.open.get(source)
        if outbound is not None and outbound.conn == frame.conn:
            self._restart(outbound, source)
        elif inbound is not None and inbound.conn == frame.conn:
            self._inbounds.close(source)
        else:
            self.env.counters["dropped_closed_connection"] += 1

    def _restart(self, old: Outbound, dest: Address) -> None:
        """Send what is unacked anew, as the beginning of a new connection."""
        self.env.counters["unicast_restarted"] += 1
        del self.outbound[dest]
        if not old.window.outstanding:
            return
        outbound = self.outbound[dest] = self._new_outbound()
        unacked = RangeSet([(old.window.low + 1, old.window.high)])
        for run in old.window.get(unacked):
            outbound.window.append(run)
            self._send(outbound, run, dest)
        self._on_sent(outbound.tail)

    def on_view(self, installation: Installation) -> None:
        self._members = frozenset(installation.view.members)
        for peer in installation.left:  # Among them who comes back with this very view, by a merge.
            self._inbounds.close(peer)
            outbound = self.outbound.pop(peer, None)
            if outbound is not None:
                self.env.counters["unicast_dropped_unacked"] += outbound.window.outstanding
        self.above.resume()

    def snapshot(self) -> dict[str, object]:
        return {
            "own": {"low": self.own.low, "high": self.own.high, "nbytes": self.own.nbytes},
            "to": {
                str(peer): {
                    "low": outbound.window.low,
                    "high": outbound.window.high,
                    "nbytes": outbound.window.nbytes,
                }
                for peer, outbound in self.outbound.items()
            },
            "from": {
                str(peer): {
                    "delivered": inbound.window.delivered,
                    "handed": inbound.window.handed,
                    "high": inbound.window.high,
                    "missing": inbound.window.gaps.count,
                }
                for peer, inbound in self._inbounds.open.items()
            },
            "remembered": self._inbounds.remembered,
        }
