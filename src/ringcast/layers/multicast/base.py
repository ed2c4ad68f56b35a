"""What every reliable multicast does: number, store and send; order and hand up; request and
resend.

The rules that hold the components together:

- Numbering, storing and sending are one step, so the wire order is the seqno order. A numbered
  message is kept until all members have it.
- Own messages are handed up from here and never taken from the network.
- Each run carries its sender's view and where that view begins in the sender's seqnos. A receiver
  hands up nothing of a view that it has not installed; so a message is delivered in the view it was
  sent in, or not at all.
- Before a view change every member stops sending and fetches what the others have (`ViewFlush`).

The subclasses differ in how long messages are kept, and how a sender learns that all members have
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.block_times import BlockTimes
from ringcast.core.model.events import Skipped
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.ack_map import AckMap
from ringcast.core.reliable.gap_requester import REQUEST
from ringcast.core.reliable.paced_repairs import PACE, PacedRepairs
from ringcast.core.reliable.repair_queue import RepairQueue
from ringcast.core.reliable.tail_probe import PROBE
from ringcast.core.reliable.ticker import ACK_SECONDS, ACK_SOON, TICK, Ticker
from ringcast.core.reliable.windows import Hole, ReceiveWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer
from ringcast.core.stack.ports import Ports, Tracker, ViewChanger
from ringcast.core.wire.frames import Ack, Data, Frame, KnownSeqnos, Last, Nak
from ringcast.layers.multicast.ack_sender import AckSender, AckSpec
from ringcast.layers.multicast.early_data import EarlyData
from ringcast.layers.multicast.flight_control import FlightControl
from ringcast.layers.multicast.give_up import FREED_BY_SENDER, GiveUp
from ringcast.layers.multicast.group_windows import GroupWindows, MulticastSnapshot
from ringcast.layers.multicast.last_seqno import LastSeqno
from ringcast.layers.multicast.peer_repair import PeerRepair, SilentSenders
from ringcast.layers.multicast.retransmit_targets import RetransmitTargets
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.multicast.settings import MulticastSpec
from ringcast.layers.multicast.view_flush import ViewFlush


class ReliableMulticast(Layer):
    """The layer that carries every message of the group to every member, in its sender's order."""

    __slots__ = (
        "_ack_map",
        "_ack_sender",
        "_early",
        "_flight",
        "_flush",
        "_frame",
        "_gaps",
        "_give_up",
        "_group",
        "_last_seqno",
        "_membership",
        "_on_arrived",
        "_on_delivered",
        "_on_sent",
        "_peer_repair",
        "_purge_sent",
        "_repairs",
        "_retransmit_targets",
        "_silent_senders",
        "_tail",
        "_ticker",
        "_tracker",
        "aim",
        "arrived",
        "beside_gap",
        "digest",
        "expect",
        "freeze",
        "give_up",
        "handed",
        "held",
        "lacks",
        "reached",
        "sent",
        "silence",
        "spec",
        "windows",
    )
    # CPython looks the fields of an object up slowly where there are more than 30 of them.

    kinds: ClassVar[tuple[type[Frame], ...]] = (Data, Nak, Last, Ack, KnownSeqnos)

    def __init__(self, env: Env, spec: MulticastSpec, keep: bool, acks: AckSpec) -> None:
        """keep: whether receivers keep delivered messages for other members."""
        super().__init__(env)
        self.spec = spec
        self._group = group = GroupWindows(env, spec, keep)
        self._gaps = SenderGaps(self, spec, group, self._request)
        self._ticker = Ticker(self, spec.xmit_interval)
        self._flush = flush = ViewFlush(group, self._gaps, self._hand_up)
        self._peer_repair = PeerRepair(env, group)
        self._silent_senders = SilentSenders(env, group, flush, self._gaps, self._peer_repair)
        self._early = EarlyData(group, flush, spec.early_frames, spec.max_bytes)
        self._give_up = GiveUp(group, self._gaps, flush, self._hand_up, env.counters)
        self._retransmit_targets = RetransmitTargets(env, spec)
        self._tracker: Tracker | None = None
        self._ack_map = AckMap()
        self._flight = flight = FlightControl(
            env, acks.flight_bytes, acks.max_bytes, group.sent, self._ack_map
        )
        self._last_seqno = LastSeqno(
            self,
            group,
            flush,
            self._ticker,
            spec.xmit_interval,
            self._announce_to,
            flight.lacking,
        )
        soon = Ticker(self, ACK_SECONDS, ACK_SOON)
        self._ack_sender = AckSender(env, acks, group, flight, self._ticker, soon)
        queue = RepairQueue(is_unicast=spec.answer == "unicast")
        self._repairs = PacedRepairs(
            self, group.sent, flight.congestion, queue, self._resend_wanted
        )
        self._bind()

    def _bind(self) -> None:
        """Make fields of what the data path and the ports use of the components."""
        group, flush, give_up = self._group, self._flush, self._give_up
        self.sent, self.windows = group.sent, group.windows
        self.digest, self.handed = group.digest, group.handed
        self._frame, self._purge_sent = group.frame, group.purge_sent
        self._on_sent, self._tail = self._last_seqno.probe.on_sent, self._last_seqno.tail
        self._on_arrived = self._ack_sender.on_arrived
        """Called when messages of another member have arrived, in order or not."""
        self._on_delivered: Callable[[Address, ReceiveWindow, int], None] = _ignore
        """Called when the application has taken messages of another member."""
        self.silence: Callable[[Collection[Address]], None] = self._silent_senders.note
        # ports.Flush
        self.freeze, self.held = flush.freeze, flush.held
        self.aim, self.reached = flush.aim, flush.reached
        # ports.Numbering
        self.expect, self.arrived, self.lacks = give_up.expect, give_up.arrived, give_up.lacks
        self.beside_gap, self.give_up = give_up.beside_gap, give_up.give_up

    def connect(self, ports: Ports) -> None:
        self._membership = self._flush.membership = ports[ViewChanger]
        self._tracker = self._last_seqno.tracker = ports.get(Tracker)

    def owes(self) -> bool:
        """Whether a member that is not waited for has still to be told what it will not get."""
        return self._ack_map.is_short(self.sent.high)

    @property
    def block_times(self) -> BlockTimes:
        """How long a message may wait for room, by its size."""
        return BlockTimes(self.spec.max_block_times)

    # Sending -------------------------------------------------------------------------------------

    def room(self, dest: Address | None) -> tuple[int, int]:
        if dest is not None:
            return self.below.room(dest)
        if self._flush.is_frozen:
            return 0, 0
        messages, nbytes = self.sent.room()
        if messages <= 0 or not self.windows:
            return messages, nbytes
        left = 0 if self._repairs.pending else self._flight.room()
        if left > 0:
            return messages, min(nbytes, left)
        self._repairs.await_pace()
        return 0, 0

    @property
    def block_reason(self) -> str:
        if self._flush.is_frozen:
            return "view_change"
        return "window" if self.sent.room()[0] <= 0 else "flight"

    def down(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.below.down(batch)
            return
        env = self.env
        assert not self._flush.is_frozen
        batch.sent_at = env.clock
        self.sent.append(batch)
        frame, on_sent = self._frame, self._on_sent  # Not called as fields, which costs more.
        env.out.send(frame(batch))
        if env.tracer is not None:
            env.tracer.sent(self._group.view, batch)
        if self.spec.loopback:
            self.above.up(batch)
        else:
            self.deliver(env.me, self.sent.high, batch.nbytes)
        on_sent(self._tail)
        self._flight.on_sent(batch)

    # Receiving -----------------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Data):
            self._on_data(frame, source)
        elif isinstance(frame, Ack):
            self._on_ack(frame, source)
        elif isinstance(frame, Nak):
            if source in self.windows:  # The messages go where the view says that the member is.
                self._on_nak(frame, source)
            else:
                self.env.counters["dropped_not_member"] += 1
        elif isinstance(frame, Last):
            self._on_last(frame, source)
        elif isinstance(frame, KnownSeqnos):
            self._silent_senders.on_known(frame, source)

    def _on_data(self, frame: Data, source: Address) -> None:
        origin = frame.origin
        window = self.windows.get(origin)
        if window is None:
            self._on_foreign_data(frame, source)
            return
        view, flush = self._group.view, self._flush
        if source != origin:
            is_wanted = origin in flush.holders or origin in self._peer_repair.helped
            if not is_wanted or source not in self.windows:
                self.env.counters["dropped_on_behalf"] += 1
                return
        elif frame.view == view:
            if window.held_at is not None:
                self._early.refute(window, frame.first + len(frame.payloads) - 1)
        elif not self._early.admit(origin, window, frame):
            self.env.counters["dropped_old_view"] += 1
            return
        if frame.low > window.low and frame.view == view:
            # In a later view the sender no longer waits for this member.
            window.purge(frame.low)
        run = Batch(
            origin,
            frame.payloads,
            frame.nbytes,
            first=frame.first,
            flags=frame.flags,
            sent_at=frame.sent_at,
            size=frame.size,
        )
        missing = 0 if window.handed == window.high else window.gaps.count
        self._hand_up(origin, window.put(run))
        if window.gaps.count != missing:  # Else no gap has opened or closed.
            self._gaps.note(origin, window)
        on_arrived = self._on_arrived
        on_arrived(origin, window, run.nbytes)
        if flush.is_aiming:
            flush.check()

    def _on_foreign_data(self, frame: Data, source: Address) -> None:
        """Handle messages of a sender that is not in the view, or not yet."""
        if frame.view.number > self._group.view.number and source == frame.origin:
            if not self._early.park(frame, source):
                self.env.counters["dropped_parking_full"] += 1
            return
        self.env.counters["dropped_not_member"] += 1
        if source not in self.windows:
            self._membership.stranger(source)

    def _on_last(self, frame: Last, source: Address) -> None:
        window = self.windows.get(source)
        if window is None:
            return
        view, flush = self._group.view, self._flush
        high = frame.high
        if frame.view != view:
            if not self._early.admit(source, window, frame):
                return
            high = min(high, window.held_at or 0)
        elif window.held_at is not None:
            self._early.refute(window, high)
            self._hand_up(source, window.hand())
        low = min(frame.low, flush.aims.get(source, frame.low))
        if window.handed < low <= frame.high and frame.view in (view, flush.next_view):
            # Members of the next view still keep for this member all that they keep.
            self.env.counters["skipped"] += min(low, window.high) - window.handed
            window.skip(low)
            self._hand_up(source, window.hand())
        if frame.view == view:  # In a later view the sender no longer waits for this member.
            window.purge(frame.low)
        window.expect(high)
        self._gaps.note(source, window)
        if frame.low < frame.high:
            self._on_announced(source)
        flush.check()

    def _hand_up(
        self, origin: Address, runs: list[Batch | Hole], reason: str = FREED_BY_SENDER
    ) -> None:
        for run in runs:
            if isinstance(run, Hole):
                self.above.skipped(Skipped(origin, run.first, run.last, reason))
            else:
                self.above.up(run)

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """The application has taken this sender's messages up to here."""
        if sender == self.env.me:
            self.sent.deliver(up_to)
            self._on_self_delivered()
            return
        window = self.windows.get(sender)
        if window is not None:
            window.deliver(up_to)
            on_delivered = self._on_delivered
            on_delivered(sender, window, nbytes)
            if self._flush.is_aiming:
                aim = self._flush.aims.get(sender, 0)
                window.reach(aim)
                window.expect(aim)
                self._gaps.note(sender, window)

    # Requests and retransmissions ----------------------------------------------------------------

    def _request(self, source: Address, wanted: RangeSet) -> None:
        if self.env.tracer is not None:
            self.env.tracer.requested(source, wanted)
        flush = self._flush
        if flush.is_aiming:
            target = flush.request_target(source)
        else:
            target = self._peer_repair.target(source, wanted)
        self.env.out.send(Nak(source, wanted), target)
        if self._tracker is not None:
            self._tracker.requested(source, wanted)

    def _on_nak(self, frame: Nak, source: Address) -> None:
        if frame.origin == self.env.me:
            if frame.ranges.first <= self.sent.low:
                self.env.out.send(self._last_seqno.frame(), source)
            if not self._flight.is_controlled:
                self._resend(self.sent.get(frame.ranges), source)
                return
            # One message tells whether anything arrives at a member that is still.
            ranges = frame.ranges
            if self._flight.is_still(source):
                ranges = ranges.clip(self.sent.low + 1, self.sent.high).limited(None, 1)
            self._repairs.request(source, ranges, self.spec.request_delay)
            return
        window = self._group.departed.get(frame.origin) or self.windows.get(frame.origin)
        runs = [] if window is None else window.get(frame.ranges)
        self._resend(runs, source)

    def _resend_wanted(self, wanted: RangeSet, receiver: Address | None) -> int:
        return self._resend(self.sent.get(wanted), receiver)

    def _resend(self, runs: list[Batch], requester: Address | None) -> int:
        """Send runs again, to the member that requested them or to the group; how many bytes."""
        counters, nbytes = self.env.counters, 0
        targets: Iterable[tuple[Batch, Address | None]] = [(run, None) for run in runs]
        if requester is not None:
            targets = self._retransmit_targets.choose(runs, requester)
        for run, target in targets:
            counters["resent"] += len(run)
            if self.env.tracer is not None:
                self.env.tracer.resent(run, target)
            nbytes += self.env.out.send_again(self._frame(run), target)
        counters["resent_bytes"] += nbytes
        return nbytes

    def on_timer(self, name: str) -> None:
        if name == REQUEST:
            self._gaps.on_timer()
        elif name == TICK:
            self._tick()
        elif name == PROBE:
            self._last_seqno.probe.on_timer()
        elif name == ACK_SOON:
            self._ack_sender.send_soon()
        elif name == PACE:
            self._repairs.send()
            self.room(None)
            self.above.resume()

    def _tick(self) -> None:
        self._ack_sender.send_due()
        self._last_seqno.tick()
        if self._flight.is_controlled and self._flight.pass_over_still():
            self.above.resume()

    # Views ---------------------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        return not self.sent.outstanding and self.above.drained

    def on_suspect(self, member: Address, suspected: bool) -> None:
        self._flush.on_suspect(member, suspected)

    def on_view(self, installation: Installation) -> None:
        self._flush.thaw()
        self._peer_repair.clear()
        self._silent_senders.clear()
        for member in (*installation.left, *self._group.ahead(installation)):
            self._early.forget(member)
            self._gaps.forget(member)
        self._group.install(installation)
        self._ack_map.install(installation, self._group.start)
        for member in installation.left:
            self._repairs.forget(member)
        self._flight.install(installation, self._group.start)
        self._ack_sender.install(installation)
        self._on_members(installation)
        for member, window in self.windows.items():
            self._early.release(member, window)
            self._hand_up(member, window.hand())
            if window.gaps:
                self._gaps.note(member, window)
        for frame, source in self._early.unpark(installation.view.id):
            self._on_data(frame, source)
        self._ticker.arm()
        self.above.resume()

    def snapshot(self) -> MulticastSnapshot:
        return self._group.snapshot()

    # Ports.Numbering, as far as a multicast without acks has a use for it -------------------------

    @property
    def sent_high(self) -> int:
        """The seqno of the last message that this member has sent."""
        return self.sent.high

    def forget(self, up_to: int, without: Iterable[Address]) -> None:
        """Free the own messages up to here as soon as all members but these have them."""
        if self._purge_sent(min(up_to, self.sent.delivered)):
            self.above.resume()

    def acked(self, member: Address, up_to: int) -> None:
        """A member has acked a whole large message that ends here."""

    def acked_by_large(self, sender: Address, up_to: int) -> None:
        """This member has acked a whole large message of a sender that ends here."""

    def suppress_acks_until(self, sender: Address, up_to: int) -> None:
        """The ack of a whole large message will cover this sender's messages up to here."""

    # What the subclasses differ in ---------------------------------------------------------------

    def _on_ack(self, frame: Ack, source: Address) -> None:
        """A receiver says how much has arrived: that is no longer in flight."""
        if source not in self.windows:
            self.env.counters["dropped_foreign_ack"] += 1
        elif self._flight.on_arrived(source, frame.delivered + frame.ahead):
            self.above.resume()

    def _on_self_delivered(self) -> None:
        """The own application has taken own messages."""

    def _on_announced(self, sender: Address) -> None:
        """A sender has announced its last seqno, since a member is behind."""
        self._ack_sender.ack_on_tick(sender)

    def _on_members(self, installation: Installation) -> None:
        """The members have changed; the windows are in place."""

    def _announce_to(self) -> Sequence[Address] | None:
        """The members that an announcement on the tick goes to; None for the group."""
        return None


def _ignore(sender: Address, window: ReceiveWindow, nbytes: int) -> None:
    """Do nothing."""
