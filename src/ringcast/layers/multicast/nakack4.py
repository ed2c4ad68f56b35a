"""NAKACK4: a window of fixed size, and acks. Flow control is built in, and no stability protocol is
needed.

The sender waits while the window is full; a receiver drops what does not fit. A receiver acks what
its application has taken, at once after `ack_threshold` messages (or a quarter of the window's
bytes), else on the tick. The sender keeps the highest ack per member; when the minimum rises, it
purges, and who waits goes on.

Two bounds of bytes hold a sender back. `max_bytes` is what it keeps, and what a receiver may have
to hold behind a gap. `flight_bytes` is what may be on its way at once, so that a burst does not
drown the receivers' socket buffers: an ack says also how much has come beyond what was delivered,
and that is no longer on its way. So a loss stops nobody while it is repaired, unless the first
bound is hit. Since the messages of all senders meet in the same buffers, those who send at the same
time share it.

With `retain` receivers keep what they delivered until the sender says that everybody has it: then
the survivors of a crash can give each other the sender's last messages, and all of them deliver the
same. Without it a receiver frees a message as soon as its application has it, and survivors of a
crash may differ in the crashed sender's last messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.env import Env
from ringcast.core.frames import Ack, Frame, Last
from ringcast.core.part import Installation
from ringcast.core.windows import ReceiveWindow
from ringcast.errors import ConfigError
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.settings import MulticastSpec

FEW = 4
"""Up to so many members are told one by one what was sent last, more of them all at once."""
LATELY = 0.05
"""Who has sent within so many seconds shares what may be on its way with the others."""


@dataclass(frozen=True, kw_only=True)
class NakAck4(MulticastSpec):
    """Fixed windows and acks."""

    max_bytes: int = 16_000_000
    """Bytes that may be outstanding per sender: what it keeps until everybody has it, and what a
    receiver may have to hold behind a gap."""
    flight_bytes: int = 4_000_000
    """Bytes that may be on their way at once, of all who send together: what a burst may put into
    the receivers' socket buffers. More hides longer round trips, and is lost where buffers are
    small."""
    ack_threshold: int = 1_024
    """Messages after whose delivery a receiver acks at once; at most a quarter of the capacity is
    waited for. Fewer acks cost less, and let the sender wait longer when its window is small."""
    retain: bool = True
    """Whether receivers keep messages until everybody has them, so that survivors of a crash agree
    on the crashed sender's last messages. Costs up to a window of memory per sender."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ack_threshold < 1:
            raise ConfigError(f"NakAck4.ack_threshold is {self.ack_threshold}: give at least 1")
        if self.flight_bytes < 1:
            raise ConfigError(f"NakAck4.flight_bytes is {self.flight_bytes}: give at least 1")

    def build(self, env: Env) -> NakAck4Layer:
        """The layer with these settings."""
        return NakAck4Layer(env, self)


class _Owed:
    """What was delivered of one sender and not acked yet."""

    __slots__ = ("acked", "come", "due", "final", "hushed", "nbytes")

    def __init__(self, acked: int) -> None:
        self.acked = acked
        self.nbytes = 0
        self.come = 0
        """Bytes that have come since the last ack."""
        self.due = False
        """Set when an ack is wanted at the tick, even if nothing new was delivered."""
        self.final = 0
        """The last seqno, as announced by the sender when it had freed everything."""
        self.hushed = 0
        """Up to here the ack of a whole message will speak for its fragments."""


class NakAck4Layer(ReliableMulticast):
    """Reliable multicast with an ack map."""

    kinds = (*ReliableMulticast.kinds, Ack)

    def __init__(self, env: Env, spec: NakAck4) -> None:
        super().__init__(env, spec, keep=spec.retain)
        self.acks: dict[Address, int] = {}
        """The highest ack of each member of the view, this one included."""
        self._ack_messages = max(1, min(spec.ack_threshold, spec.capacity // 4))
        self._ack_bytes = max(1, min(spec.max_bytes, spec.flight_bytes) // 4)
        self._flight_bytes = spec.flight_bytes
        self._is_shared = spec.flight_bytes < spec.max_bytes
        """Whether that bound counts; else the window stops a sender sooner."""
        self._sent_lately: dict[Address, float] = {}
        """When each member has sent last, as far as is known here."""
        self._sharing = 1
        self._counted_at = float("-inf")
        self._arrivals: dict[Address, int] = {}
        """Per other member: its ack, and what it had ahead of that."""
        self._arrived = 0
        """The least of them: everything beyond may be on its way."""
        self._owed: dict[Address, _Owed] = {}
        self._released: set[Address] = set()
        """Members that are not waited for, since they are too far behind."""
        self._told_low = 0
        """The low that was announced last: who has nothing can skip up to there, and ack it."""

    # The receiver acks ---------------------------------------------------------------------------

    def _on_arrived(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        """What has come is not on its way any more: tell the sender, though it is not delivered."""
        if not self._is_shared:
            return
        self._sent_lately[sender] = self.env.now
        owed = self._owed[sender]
        owed.come += nbytes
        # Where nothing is missing, the ack of the delivery is about to say it.
        enough = self._ack_bytes // self._sharers()
        if owed.come >= (enough if window.gaps else 2 * enough):
            self._ack(sender, window)

    def _sharers(self) -> int:
        """How many send at this time; counted now and then."""
        now = self.env.now
        if now >= self._counted_at + LATELY / 4:
            self._counted_at = now
            since = now - LATELY
            self._sharing = max(1, sum([at > since for at in self._sent_lately.values()]))
        return self._sharing

    def _on_delivered(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        owed = self._owed[sender]
        count = window.delivered - owed.acked
        if count <= 0:
            return  # It was acked with a whole message.
        owed.nbytes += nbytes
        if window.delivered < owed.hushed:
            if 2 * count >= self.spec.capacity or 2 * owed.nbytes >= self.spec.max_bytes:
                self._ack(sender, window)
        elif count >= self._ack_messages or owed.nbytes * self._sharing >= self._ack_bytes:
            self._ack(sender, window)
        else:
            owed.due = True
            self._arm()

    def hush(self, sender: Address, up_to: int) -> None:
        self._owed[sender].hushed = up_to

    def answered(self, sender: Address, up_to: int) -> None:
        owed = self._owed[sender]
        owed.acked, owed.nbytes, owed.due = max(owed.acked, up_to), 0, False

    def _on_announced(self, sender: Address, window: ReceiveWindow) -> None:
        self._owed[sender].due = True
        self._arm()

    def _on_last(self, frame: Last, source: Address) -> None:
        super()._on_last(frame, source)
        owed = self._owed.get(source)
        if owed is not None and frame.low == frame.high:
            # Said once to all; who hears it again is one whose ack the sender lacks.
            if owed.final == frame.high:
                self._on_announced(source, self.windows[source])
            owed.final = frame.high

    def _ack(self, sender: Address, window: ReceiveWindow) -> None:
        owed = self._owed[sender]
        owed.acked, owed.nbytes, owed.come, owed.due = window.delivered, 0, 0, False
        self.env.out.send(Ack(window.delivered, window.ahead), sender)

    def _tick(self) -> None:
        for sender, owed in self._owed.items():
            if owed.due:
                self._ack(sender, self.windows[sender])
        super()._tick()
        for member in self._released:
            self.env.out.send(self._last(), member)
            self._arm()

    def _announce(self) -> None:
        """Tell only those whose ack is wanted, where they are few: whoever is told acks."""
        behind = self._behind if self._tracker is not None else ()
        if not behind or len(behind) > FEW:
            super()._announce()
            return
        for member in behind:
            if member not in self._released:  # Those are told on every tick.
                self.env.out.send(self._last(), member)

    @property
    def _behind(self) -> list[Address]:
        """The others that have not acked everything, or that a full window waits for."""
        below = self.sent.low + 1 if self._full else self.sent.high
        return [m for m, ack in self.acks.items() if ack < below and m != self.env.me]

    # The sender counts ---------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if not isinstance(frame, Ack):
            super().on_frame(frame, source)
            return
        if source in self.acks and source != self.env.me:
            self._landed(source, frame.delivered + frame.ahead)
            self.acked(source, frame.delivered)
        else:
            self.env.counters["dropped_foreign_ack"] += 1

    def _landed(self, member: Address, arrived: int) -> None:
        """So much has come at a member, whether it was delivered there or not."""
        known = self._arrivals[member]
        if known < arrived <= self.sent.high:
            self._arrivals[member] = arrived
            if known <= self._arrived:
                self._arrived = self._least_arrived()
                self.above.resume()

    def _least_arrived(self) -> int:
        waited_for = [n for member, n in self._arrivals.items() if member not in self._released]
        return min(waited_for, default=self.sent.high)

    def down(self, batch: Batch) -> None:
        if self._is_shared and batch.dest is None:
            self._sent_lately[self.env.me] = self.env.now
        super().down(batch)

    def room(self, dest: Address | None) -> tuple[int, int]:
        messages, nbytes = super().room(dest)
        kept = self.sent.high - self.sent.low
        if dest is not None or messages <= 0 or not kept or self._alone:
            return messages, nbytes
        in_flight = (self.sent.high - self._arrived) * self.sent.nbytes // kept
        flight = self._flight_bytes // self._sharers() if self._is_shared else self._flight_bytes
        left = flight - in_flight
        return (messages, min(nbytes, left)) if left > 0 else (0, 0)

    def acked(self, member: Address, up_to: int) -> None:
        known = self.acks.get(member, up_to)
        if known < up_to <= self.sent.high:
            self.acks[member] = up_to
            self._landed(member, up_to)
            if self.env.tap is not None:
                self.env.tap.acked(member, up_to)
            if member in self._released:
                self._take_back(member, up_to)
            self._purge(known)

    def _on_self_delivered(self) -> None:
        known = self.acks.get(self.env.me)
        if known is not None and known < self.sent.delivered:
            self.acks[self.env.me] = self.sent.delivered
            self._purge(known)

    def _purge(self, risen_from: int) -> None:
        """The minimum may have risen, if the one that rose was at it."""
        if risen_from > self.sent.low:
            return
        if self._purge_sent(self._acked):
            self.above.resume()

    @property
    def _acked(self) -> int:
        """Up to where all who are waited for have taken the own messages."""
        if not self._released:
            return min(self.acks.values())
        return min(ack for member, ack in self.acks.items() if member not in self._released)

    @property
    def waits_for(self) -> tuple[Address, ...]:
        """The members at the minimum: those that a sender with a full window waits for."""
        lowest = self._acked if self.acks else 0
        return tuple(member for member, ack in self.acks.items() if ack == lowest < self.sent.high)

    # Members that are not waited for (ports.Brake, ports.Numbering) ------------------------------

    def positions(self) -> dict[Address, int]:
        """While the window is full: the acks of all who are waited for."""
        if not self._full:
            return {}
        low, high = self.sent.low, self.sent.high
        # Who has acked half of it may have all of it, and be hushed until a message is whole.
        enough = high if self._tracker is None else (low + high) // 2
        return {
            member: ack if ack < enough else high
            for member, ack in self.acks.items()
            if member not in self._released
        }

    def release(self, member: Address) -> None:
        """Free what only this member lacks, until it has caught up; meanwhile announce what is
        left."""
        if member in self.acks and member != self.env.me and member not in self._released:
            self._released.add(member)
            self.env.counters["released"] += 1
            self._arm()
            self._arrived = self._least_arrived()
            self._purge_sent(self._acked)
            self.above.resume()

    def _take_back(self, member: Address, acked: int) -> None:
        """Wait for a member again that gets messages and does not only skip them, or has all."""
        if acked > self._told_low or acked == self.sent.high:
            self._released.discard(member)
            self._arrived = self._least_arrived()
            self.env.counters["caught_up"] += 1

    def _last(self) -> Last:
        self._told_low = self.sent.low
        return super()._last()

    def forget(self, up_to: int, without: Iterable[Address]) -> None:
        for member in without:
            if self.acks.get(member, up_to) < up_to:
                self.release(member)

    # Views ---------------------------------------------------------------------------------------

    def _on_members(self, installation: Installation) -> None:
        for member in installation.left:
            self.acks.pop(member, None)
            self._arrivals.pop(member, None)
            self._owed.pop(member, None)
            self._sent_lately.pop(member, None)
            self._released.discard(member)
        for member in installation.joined:
            self.acks[member] = self._start
            if member != self.env.me:
                self._arrivals[member] = self._start
                self._owed[member] = _Owed(installation.starts[member])
        self._arrived = self._least_arrived()
        self._purge_sent(self._acked)

    def _forget_stable(self, window: ReceiveWindow, low: int) -> None:
        if low > window.low and window.keep:
            window.purge(low)

    def snapshot(self) -> dict[str, object]:
        return {
            **super().snapshot(),
            "acks": {str(member): ack for member, ack in self.acks.items()},
            "waits_for": [str(member) for member in self.waits_for] if self._full else [],
        }

    @property
    def _full(self) -> bool:
        return not self._frozen and self.room(None)[0] <= 0
