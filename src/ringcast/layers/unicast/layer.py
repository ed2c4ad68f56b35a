"""Unicast: messages for one member, in the sender's order and exactly once while both are members.

The rules are those of the multicast, for one receiver. Numbering, storing and sending are one step.
The receiver acks what its application has taken, at once after `ack_threshold` messages (or a
quarter of the window's bytes), else on the tick. It requests gaps. An idle sender with unacked
messages announces its last seqno on each tick, which repairs a lost last message and a lost ack.

A connection opens with the first message and ends when the peer leaves; messages that are unacked
by then are dropped, and the application is told (`Undelivered`). It continues across all other
views, and views promise nothing about it: a message may be delivered in a later view than it was
sent in. `connections` tells frames of former connections apart, and says what that means for
exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Undelivered
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.congestion import Congestion, first_window
from ringcast.core.reliable.gap_requester import REQUEST, GapRequester
from ringcast.core.reliable.paced_repairs import PACE, PacedRepairs
from ringcast.core.reliable.repair import Repair
from ringcast.core.reliable.repair_queue import RepairQueue
from ringcast.core.reliable.tail_probe import PROBE, Tail, TailProbe
from ringcast.core.reliable.ticker import ACK_BYTES, ACK_SECONDS, ACK_SOON, TICK, Ticker
from ringcast.core.reliable.windows import Hole, SendWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Receipt
from ringcast.core.stack.ports import Control, Ports
from ringcast.core.wire.frames import (
    Frame,
    UnicastAck,
    UnicastData,
    UnicastLast,
    UnicastNak,
    UnicastReset,
)
from ringcast.layers.unicast.connections import (
    Inbound,
    Inbounds,
    Outbound,
    Over,
    UnicastSnapshot,
    count_messages,
)
from ringcast.layers.unicast.settings import Unicast


class UnicastLayer(Layer):
    """The layer that carries messages for one member, in order."""

    kinds = (UnicastData, UnicastAck, UnicastNak, UnicastLast, UnicastReset)

    def __init__(self, env: Env, spec: Unicast) -> None:
        super().__init__(env)
        self.spec = spec
        self.outbound: dict[Address, Outbound] = {}
        self.own = SendWindow(spec.capacity, spec.max_bytes)
        """Messages of this member to itself."""
        self._members: frozenset[Address] = frozenset()
        self._inbounds = Inbounds(
            spec.capacity,
            spec.request_delay,
            spec.xmit_interval,
            spec.remembered_peers,
            spec.max_bytes,
            env.counters,
        )
        self._ticker = Ticker(self, spec.xmit_interval)
        self._soon = Ticker(self, ACK_SECONDS, ACK_SOON)
        self._gap_requester = GapRequester(self, spec, self._repairs, self._request)
        self._tail_probe = TailProbe(
            self, spec.xmit_interval, self._ticker, self._tails, self._announce_last
        )
        self._last_conn = env.rng.getrandbits(62)
        self._ack_messages = max(1, min(spec.ack_threshold, spec.capacity // 4))
        self._ack_bytes = max(1, spec.max_bytes // 4)

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]

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
            nbytes = self.spec.max_bytes
            is_controlled = self.env.sends_packets
            return self.spec.capacity, first_window(self.env, nbytes) if is_controlled else nbytes
        return outbound.room(self.env.sends_packets)

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
            outbound = self.outbound[dest] = self._new_outbound(dest)
        outbound.window.append(batch)
        self._send(outbound, batch, dest)
        if self.env.sends_packets:
            congestion = outbound.congestion
            if congestion.is_paced or self.env.now >= congestion.next_mark:
                congestion.on_sent(batch.first, batch.nbytes)
        self._tail_probe.on_sent(outbound.tail)

    def _new_outbound(self, dest: Address) -> Outbound:
        self._last_conn += 1 + self.env.rng.getrandbits(32)
        window = SendWindow(self.spec.capacity, self.spec.max_bytes)
        congestion = Congestion(self.env, self.spec.max_bytes)
        congestion.join(dest, 0)
        queue = RepairQueue(is_unicast=True)
        repairs = PacedRepairs(self, window, congestion, queue, self._resend)
        return Outbound(self._last_conn, window, congestion, repairs)

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
        """Whether nothing waits above, and peers have delivered all that this member sent them."""
        unacked = any(outbound.window.outstanding for outbound in self.outbound.values())
        return not unacked and self.above.drained

    def receipt(self) -> Receipt:
        marks = {peer: (out.conn, out.window.high) for peer, out in self.outbound.items()}
        return lambda: [
            peer for peer, (conn, mark) in marks.items() if self._lacks(peer, conn, mark)
        ]

    def _lacks(self, peer: Address, conn: int, mark: int) -> bool:
        """Whether a peer has not delivered what was sent up to a mark of a connection."""
        outbound = self.outbound.get(peer)
        if outbound is None:
            return False  # It has left, and the application was told what it lacks.
        if outbound.conn != conn:
            return bool(outbound.window.outstanding)  # Numbered anew.
        return outbound.window.low < mark

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
        missing = 0 if window.handed == window.high else window.gaps.count
        inbound.known = max(inbound.known, run.last)
        self._hand_up(window.put(run))
        if window.gaps.count != missing:  # Else no gap has opened or closed.
            self._gap_requester.note_gaps(inbound.repair)
        inbound.arrived_bytes += run.nbytes
        if inbound.arrived_bytes >= ACK_BYTES and self.env.sends_packets:
            self._soon.arm()

    def _hand_up(self, runs: list[Batch | Hole]) -> None:
        for run in runs:
            assert isinstance(run, Batch)  # Unicast skips nothing.
            self.above.up(run)

    def _on_last(self, frame: UnicastLast, source: Address) -> None:
        inbound = self._find(source, frame.conn, frame.low)
        if inbound is None:
            return
        inbound.known = max(inbound.known, frame.high)
        inbound.window.expect(inbound.known)
        self._gap_requester.note_gaps(inbound.repair)
        self._ack(inbound, source)

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """The application has taken this sender's messages to this member up to this seqno."""
        if sender == self.env.me:
            if self.own.purge(up_to):
                self.above.resume()
            return
        inbound = self._inbounds.open.get(sender)
        if inbound is None:
            return
        window = inbound.window
        # Messages of a closed connection that were still queued count here too. The only effect is
        # an early ack of messages that were handed up already.
        window.deliver(up_to)
        inbound.nbytes_owed += nbytes
        owed = window.delivered - inbound.acked
        if owed >= self._ack_messages or inbound.nbytes_owed >= self._ack_bytes:
            self._ack(inbound, sender)
        elif owed:
            inbound.ack_due = True
            self._ticker.arm()
        if inbound.known > window.high:  # Announced messages that fit only now.
            window.expect(inbound.known)
            self._gap_requester.note_gaps(inbound.repair)

    def _ack(self, inbound: Inbound, source: Address) -> None:
        inbound.acked, inbound.nbytes_owed = inbound.window.delivered, 0
        inbound.ack_due, inbound.arrived_bytes = False, 0
        self.env.out.send(UnicastAck(inbound.conn, inbound.acked, inbound.window.ahead), source)

    # Requests and retransmissions ----------------------------------------------------------------

    def _repairs(self) -> Iterable[tuple[Address, Repair]]:
        return ((source, inbound.repair) for source, inbound in self._inbounds.open.items())

    def _request(self, source: Address, wanted: RangeSet) -> None:
        conn = self._inbounds.open[source].conn
        self.env.out.send(UnicastNak(conn, wanted), source)

    def _on_nak(self, frame: UnicastNak, source: Address) -> None:
        outbound = self.outbound.get(source)
        if outbound is None or outbound.conn != frame.conn:
            # The messages were dropped when the peer left: make it stop requesting them.
            self.env.out.send(UnicastReset(frame.conn), source)
            return
        if self.env.sends_packets:
            outbound.repairs.request(source, frame.ranges, self.spec.request_delay)
        else:
            self._resend(frame.ranges, source)

    def _resend(self, wanted: RangeSet, dest: Address | None) -> int:
        """Send messages again; how many bytes."""
        assert dest is not None
        counters, nbytes = self.env.counters, 0
        outbound = self.outbound[dest]
        for run in outbound.window.get(wanted):
            nbytes += run.nbytes
            counters["resent"] += len(run)
            self._send(outbound, run, dest)
        counters["resent_bytes"] += nbytes
        return nbytes

    def _on_ack(self, frame: UnicastAck, source: Address) -> None:
        outbound = self.outbound.get(source)
        if outbound is None or outbound.conn != frame.conn:
            self.env.counters["dropped_closed_connection"] += 1
        elif frame.delivered > outbound.window.high:
            self.env.counters["dropped_foreign_ack"] += 1
        else:
            has_arrived = outbound.on_arrived(
                source, frame.delivered + frame.ahead, self.env.sends_packets
            )
            if outbound.window.purge(frame.delivered) or has_arrived:
                self.above.resume()

    # Timers: acks that are due, and announcements while anything is unacked ----------------------

    def on_timer(self, name: str) -> None:
        if name == REQUEST:
            self._gap_requester.on_timer()
        elif name == TICK:
            self._tick()
        elif name == PROBE:
            self._tail_probe.on_timer()
        elif name == ACK_SOON:
            self._ack_soon()
        elif name == PACE:
            for outbound in self.outbound.values():
                outbound.repairs.send()
                outbound.room(self.env.sends_packets)
            self.above.resume()

    def _ack_soon(self) -> None:
        """Ack what has arrived from senders that may wait for it, and measure their path by it."""
        for source, inbound in self._inbounds.open.items():
            if inbound.arrived_bytes >= ACK_BYTES:
                self._ack(inbound, source)

    def _tick(self) -> None:
        for source, inbound in self._inbounds.open.items():
            if inbound.ack_due:
                self._ack(inbound, source)
        for dest, outbound in self.outbound.items():
            window = outbound.window
            if window.outstanding:
                if not outbound.tail.is_fresh:
                    self._announce_last(dest)
                self._ticker.arm()
            outbound.tail.is_fresh = False

    def _tails(self) -> Iterable[tuple[Tail, Address | None]]:
        return ((outbound.tail, dest) for dest, outbound in self.outbound.items())

    def _announce_last(self, dest: Address | None) -> None:
        assert dest is not None
        outbound = self.outbound[dest]
        window = outbound.window
        if window.outstanding:
            self.env.out.send(UnicastLast(outbound.conn, window.low, window.high), dest)

    # Connections begin and end -------------------------------------------------------------------

    def _find(self, source: Address, conn: int, low: int) -> Inbound | None:
        """The connection of a frame, opened if it is new; None if it is over."""
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
        """Send the unacked messages again, as the first ones of a new connection."""
        self.env.counters["unicast_restarted"] += 1
        del self.outbound[dest]
        if not old.window.outstanding:
            return
        outbound = self.outbound[dest] = self._new_outbound(dest)
        unacked = RangeSet([(old.window.low + 1, old.window.high)])
        for run in old.window.get(unacked):
            outbound.window.append(run)
            self._send(outbound, run, dest)
        self._tail_probe.on_sent(outbound.tail)

    def on_view(self, installation: Installation) -> None:
        self._members = frozenset(installation.view.members)
        for peer in installation.left:  # A peer that a merge brings back is among them.
            self._inbounds.close(peer)
            outbound = self.outbound.pop(peer, None)
            held = self.above.abandon(peer)
            if outbound is not None:
                self._report_unacked(peer, outbound.window, held)
        self.above.resume()

    def _report_unacked(self, peer: Address, window: SendWindow, held: int) -> None:
        """A peer has left: tell the application how many of its messages the peer has not acked,
        with those that layers above held back."""
        count = held
        if window.outstanding:
            self.env.counters["unicast_dropped_unacked"] += window.outstanding
            count += count_messages(window.get(RangeSet([(window.low + 1, window.high)])))
        if count:
            self._control.emit(Undelivered(window.high, (peer,), direct=True, count=count))

    def snapshot(self) -> UnicastSnapshot:
        return UnicastSnapshot(
            own=self.own.marks(),
            to={peer: outbound.window.marks() for peer, outbound in self.outbound.items()},
            from_={peer: found.window.marks() for peer, found in self._inbounds.open.items()},
            remembered=self._inbounds.remembered,
        )
