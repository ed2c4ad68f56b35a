"""NAKACK4: a window of fixed size, and acks. Flow control is built in, and no stability protocol is
needed.

The sender waits while the window is full; a receiver drops what does not fit. A receiver acks what
its application has taken, at once after `ack_threshold` messages (or a quarter of the window's
bytes), else on the tick. The sender keeps the highest ack per member; when the minimum rises, it
purges, and who waits goes on.

With `retain` receivers keep what they delivered until the sender says that everybody has it: then
the survivors of a crash can give each other the sender's last messages, and all of them deliver the
same. Without it a receiver frees a message as soon as its application has it, and survivors of a
crash may differ in the crashed sender's last messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringcast.core.address import Address
from ringcast.core.env import Env
from ringcast.core.frames import Ack, Frame, Last
from ringcast.core.part import Installation
from ringcast.core.windows import ReceiveWindow
from ringcast.errors import ConfigError
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.settings import MulticastSpec


@dataclass(frozen=True, kw_only=True)
class NakAck4(MulticastSpec):
    """Fixed windows and acks."""

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

    def build(self, env: Env) -> NakAck4Layer:
        """The layer with these settings."""
        return NakAck4Layer(env, self)


class _Owed:
    """What was delivered of one sender and not acked yet."""

    __slots__ = ("acked", "due", "final", "nbytes")

    def __init__(self, acked: int) -> None:
        self.acked = acked
        self.nbytes = 0
        self.due = False
        """Set when an ack is wanted at the tick, even if nothing new was delivered."""
        self.final = 0
        """The last seqno, as announced by the sender when it had freed everything."""


class NakAck4Layer(ReliableMulticast):
    """Reliable multicast with an ack map."""

    kinds = (*ReliableMulticast.kinds, Ack)

    def __init__(self, env: Env, spec: NakAck4) -> None:
        super().__init__(env, spec, keep=spec.retain)
        self.acks: dict[Address, int] = {}
        """The highest ack of each member of the view, this one included."""
        self._ack_messages = max(1, min(spec.ack_threshold, spec.capacity // 4))
        self._ack_bytes = max(1, spec.max_bytes // 4)
        self._owed: dict[Address, _Owed] = {}
        self._released: set[Address] = set()
        """Members that are not waited for, since they are too far behind."""
        self._told_low = 0
        """The low that was announced last: who has nothing can skip up to there, and ack it."""

    # The receiver acks ---------------------------------------------------------------------------

    def _on_delivered(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        owed = self._owed[sender]
        owed.nbytes += nbytes
        enough = window.delivered - owed.acked >= self._ack_messages
        if enough or owed.nbytes >= self._ack_bytes:
            self._ack(sender, window.delivered)
        else:
            owed.due = True
            self._arm()

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

    def _ack(self, sender: Address, delivered: int) -> None:
        owed = self._owed[sender]
        owed.acked, owed.nbytes, owed.due = delivered, 0, False
        self.env.out.send(Ack(delivered), sender)

    def _tick(self) -> None:
        for sender, owed in self._owed.items():
            if owed.due:
                self._ack(sender, self.windows[sender].delivered)
        super()._tick()
        for member in self._released:
            self.env.out.send(self._last(), member)
            self._arm()

    # The sender counts ---------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if not isinstance(frame, Ack):
            super().on_frame(frame, source)
            return
        known = self.acks.get(source)
        if known is None or source == self.env.me:
            self.env.counters["dropped_foreign_ack"] += 1
        elif known < frame.delivered <= self.sent.high:
            self.acks[source] = frame.delivered
            if self.env.tap is not None:
                self.env.tap.acked(source, frame.delivered)
            if source in self._released:
                self._take_back(source, frame.delivered)
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
        return {member: ack for member, ack in self.acks.items() if member not in self._released}

    def release(self, member: Address) -> None:
        """Free what only this member lacks, until it has caught up; meanwhile announce what is
        left."""
        if member in self.acks and member != self.env.me and member not in self._released:
            self._released.add(member)
            self.env.counters["released"] += 1
            self._arm()
            if self._purge_sent(self._acked):
                self.above.resume()

    def _take_back(self, member: Address, acked: int) -> None:
        """Wait for a member again that gets messages and does not only skip them, or has all."""
        if acked > self._told_low or acked == self.sent.high:
            self._released.discard(member)
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
            self._owed.pop(member, None)
            self._released.discard(member)
        for member in installation.joined:
            self.acks[member] = self._start
            if member != self.env.me:
                self._owed[member] = _Owed(installation.starts[member])
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
        return not self._frozen and self.sent.room()[0] <= 0
