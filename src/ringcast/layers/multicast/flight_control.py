"""Flight control: how many bytes may be in flight at once, shared by all active senders.

The bound of the settings is the most; what the paths carry is often less (`Congestion`).

An ack says how much has arrived beyond what was delivered, and that is no longer in flight. The
messages of all senders meet in the same socket buffers, so the senders that are active at the same
time share the bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.reliable.ack_map import AckMap
from ringcast.core.reliable.congestion import Congestion
from ringcast.core.reliable.windows import SendWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation

STILL_TICKS = 5
"""A member where nothing has arrived for this many ticks is still."""
ACTIVE_SENDER_SECONDS = 0.05
"""A member that has sent within this time shares the bound with the others."""


class FlightControl:
    """The bound of one sender."""

    __slots__ = (
        "_ack_map",
        "_arrivals",
        "_bound",
        "_counted_at",
        "_env",
        "_ignored",
        "_sent",
        "_still",
        "active_senders",
        "arrived",
        "congestion",
        "is_shared",
        "sent_at",
    )

    def __init__(
        self, env: Env, flight_bytes: int, window_bytes: int, sent: SendWindow, ack_map: AckMap
    ) -> None:
        self._env = env
        self._bound = flight_bytes
        self._sent = sent
        self._ack_map = ack_map
        self._ignored: set[Address] = set()
        """The members whose paths do not count: those that are released, and those that are
        still."""
        self._still: dict[Address, int] = {}
        """Per member that lacks messages: for how many ticks nothing has arrived there."""
        self.congestion = Congestion(env, flight_bytes, self._ignored)
        self._counted_at = float("-inf")
        self._arrivals: dict[Address, int] = {}
        """Per other member: how many own messages have arrived there."""
        self.arrived = 0
        """The least of them: everything beyond may be in flight."""
        self.is_shared = flight_bytes < window_bytes
        """Whether the bound counts; else the window stops a sender sooner."""
        self.sent_at: dict[Address, float] = {}
        """When each member was last seen sending."""
        self.active_senders = 1
        """As of the last count, which `count_senders` brings up to date."""

    def room(self) -> int:
        """How many more bytes may be in flight."""
        sent, bound = self._sent, self._bound
        high = sent.high
        kept = high - sent.low
        in_flight = (high - self.arrived) * sent.nbytes // kept if kept else 0
        if self.is_shared:
            bound = bound // self.count_senders() or 1
        if self._env.sends_packets:
            return self.congestion.room(in_flight, bound)
        return bound - in_flight

    @property
    def is_controlled(self) -> bool:
        """Whether there are paths to control."""
        return self._env.sends_packets

    @property
    def window(self) -> int:
        """Bytes that may be in flight."""
        return round(self.congestion.window) if self.is_controlled else self._bound

    def on_sent(self, run: Batch) -> None:
        """A run was sent to the group."""
        env, congestion = self._env, self.congestion
        env.out.train_bytes = congestion.train_bytes
        if self.is_shared:
            self.sent_at[env.me] = env.now
        if env.sends_packets and (env.now >= congestion.next_mark or congestion.is_paced):
            congestion.on_sent(run.first, run.nbytes)

    def count_senders(self) -> int:
        """How many members are sending; counted anew four times per ACTIVE_SENDER_SECONDS."""
        now = self._env.now
        if now >= self._counted_at + ACTIVE_SENDER_SECONDS / 4:
            self._counted_at = now
            since = now - ACTIVE_SENDER_SECONDS
            self.active_senders = max(1, sum([at > since for at in self.sent_at.values()]))
        return self.active_senders

    def on_arrived(self, member: Address, up_to: int) -> bool:
        """This many messages have arrived at a member; whether that may make room."""
        known = self._arrivals[member]
        sent = self._sent
        if not known < up_to <= sent.high:
            return False
        self._arrivals[member] = up_to
        if self._still and self._still.pop(member, 0) >= STILL_TICKS:
            self.on_released()
        if self._env.sends_packets:
            self.congestion.on_arrived(member, up_to, sent.high, sent.message_bytes)
        if known > self.arrived:
            return False
        self.update()
        return True

    def update(self) -> None:
        """Find the least again, after members were released or waited for again."""
        ignored, arrivals = self._ignored, self._arrivals
        waited_for: Iterable[int] = arrivals.values()
        if ignored:
            waited_for = [n for member, n in arrivals.items() if member not in ignored]
        self.arrived = min(waited_for, default=self._sent.high)
        assert self.arrived <= self._sent.high

    @property
    def paced_rate(self) -> int:
        """Bytes per second that may leave; 0 while there is no such bound."""
        is_paced = self.is_controlled and self.congestion.is_paced
        return round(self.congestion.rate) if is_paced else 0

    def on_released(self) -> None:
        """Members were released or are waited for again: their paths count no longer, or again."""
        still = [member for member, ticks in self._still.items() if ticks >= STILL_TICKS]
        self._ignored.clear()
        self._ignored.update(self._ack_map.released, still)
        self.update()
        self.congestion.update()

    def lacking(self) -> dict[Address, int]:
        """The members at which not all has arrived, and up to where it has."""
        high = self._sent.high
        return {member: arrived for member, arrived in self._arrivals.items() if arrived < high}

    def is_still(self, member: Address) -> bool:
        """Whether nothing has arrived at a member for a while, though it lacks messages."""
        return self._still.get(member, 0) >= STILL_TICKS

    def pass_over_still(self) -> bool:
        """On the tick: wait no longer for the arrivals of members where nothing arrives; whether
        that makes room. To wait for them is the window's work, and the tracker's: until then a path
        that is cut or a process that is stopped holds no sender up."""
        before = self._still
        self._still = {member: before.get(member, 0) + 1 for member in self.lacking()}
        if STILL_TICKS not in self._still.values():
            return False
        self.on_released()
        return True

    def install(self, installation: Installation, start: int) -> None:
        """Count for a new view; the ack map has been brought up to date."""
        for member in installation.left:
            self._arrivals.pop(member, None)
            self._still.pop(member, None)
            self._ignored.discard(member)
            self.sent_at.pop(member, None)
        joined = [member for member in installation.joined if member != self._env.me]
        self._arrivals.update(dict.fromkeys(joined, start))
        self.congestion.change(installation.left, joined, start)
        self.update()
