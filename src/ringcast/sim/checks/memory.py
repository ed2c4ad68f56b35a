"""What a member keeps in memory, and how much that may be: messages in flight, never messages sent.

A **sender** keeps its window, and messages that it has accepted and that have not left whole: one
that is larger than the window, or as many as fit it.

A **receiver** keeps of each sender no more than a window and a message. What is not acked is within
the sender's window: it waits for a gap to be repaired, for the rest of its message, or for the
application. What is acked and still here belongs to one message, of which a window has asked for
acks on the way. Where messages are kept for others until all have them, that is a window more, of
payloads that are counted twice as long as they wait for the application as well.

With `Compress` windows count compressed bytes. What waits for the application is unpacked, and not
counted here: it grows with how far the messages shrink.

Who is not waited for any more is an exception, with bounds of its own (`LargeMessages`, the
capacity)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.stack.inbox import Inbox
from ringcast.core.stack.stack import Stack
from ringcast.layers.compress.layer import CompressLayer
from ringcast.layers.flow.layer import FlowLayer
from ringcast.layers.fragment.layer import FragmentLayer
from ringcast.layers.multicast.base import ReliableMulticast

if TYPE_CHECKING:
    from ringcast.sim.engine.member import Member

Kind = TypeVar("Kind")


class HeldBytes(NamedTuple):
    """Bytes of messages to the group, by where they are kept."""

    sent: int
    """Own messages: in the window, or not yet there."""
    received: int
    """Those of others: behind a gap, kept for others, in the making, or not taken yet."""


class MemoryUse:
    """Looks into one stack, and remembers the most that it has seen."""

    def __init__(self, stack: Stack) -> None:
        self.peak = HeldBytes(0, 0)
        self._inbox = _part(stack, Inbox)
        self._is_compressed = _part(stack, CompressLayer) is not None
        self._fragment = _part(stack, FragmentLayer)
        self.flow = _part(stack, FlowLayer)
        multicast = _part(stack, ReliableMulticast)
        assert multicast is not None
        self._multicast = multicast
        self._mtu = stack.env.mtu
        self._me = stack.env.me
        self._counters = stack.counters

    def look(self) -> None:
        """Take note of what is held now."""
        held, peak = self.held, self.peak
        if held.sent > peak.sent or held.received > peak.received:
            self.peak = HeldBytes(max(held.sent, peak.sent), max(held.received, peak.received))

    @property
    def held(self) -> HeldBytes:
        """What is kept now; messages to this member alone are among it."""
        received = sum([window.nbytes for window in self._multicast.windows.values()])
        if self._inbox is not None and not self._is_compressed:
            received += self._inbox.nbytes
        if self._fragment is not None:
            received += self._fragment.incomplete_bytes
        return HeldBytes(self.sent, received)

    @property
    def sent(self) -> int:
        """Bytes of own messages to the group."""
        queued = 0 if self._fragment is None else self._fragment.holding_bytes(None)
        return self._multicast.sent.nbytes + queued

    def received(self, sender: Address) -> int:
        """Bytes of one sender's messages to the group."""
        window = self._multicast.windows.get(sender)
        making = 0 if self._fragment is None else self._fragment.incomplete_of(sender)
        events = () if self._inbox is None or self._is_compressed else self._inbox.events
        waiting = sum(
            event.nbytes
            for event in events
            if isinstance(event, Batch) and event.sender == sender and event.dest is None
        )
        return (0 if window is None else window.nbytes) + making + waiting

    # What it may be -------------------------------------------------------------------------------

    def sent_bound(self, largest: int) -> int:
        """The most that a sender keeps whose largest message is so large."""
        window = self._multicast.spec.max_bytes
        return window + self._mtu + max(window, largest)

    def received_bound(self, largest: int) -> int:
        """The most that is kept of one sender whose largest message is so large."""
        window = self._multicast.spec.max_bytes + self._mtu
        kept = any(w.keep for w in self._multicast.windows.values())
        return (2 if kept else 1) * window + largest

    @property
    def waits_for_all(self) -> bool:
        """Whether this sender has never gone on without a member."""
        counters = self._counters
        return not any(counters[name] for name in ("released", "excused", "slow_skipped"))


def out_of_bounds(members: list[Member]) -> Iterator[tuple[str, str]]:
    """Members that keep more than they may, and what."""
    for member in members:
        bound = member.memory.sent_bound(member.record.largest)
        if member.memory.sent > bound:
            text = f"keeps {member.memory.sent:,} bytes of its own messages, more than {bound:,}"
            yield member.name, text
    senders = [m for m in members if m.record.largest and m.memory.waits_for_all]
    for receiver in members if senders else ():
        received = receiver.memory.held.received
        for sender in senders:
            if receiver is not sender and receiver.view == sender.view:
                yield from _between(sender, receiver, received)


def _between(sender: Member, receiver: Member, received: int) -> Iterator[tuple[str, str]]:
    bound = receiver.memory.received_bound(sender.record.largest)
    if received > bound:  # Perhaps of several senders: look closer.
        nbytes = receiver.memory.received(sender.me)
        if nbytes > bound:
            text = f"keeps {nbytes:,} bytes of {sender.name}'s messages, more than {bound:,}"
            yield receiver.name, text
    mine, theirs = receiver.memory.flow, sender.memory.flow
    if mine is not None and theirs is not None and sender.me in mine.sources:
        waiting, allowed = mine.sources[sender.me].waiting, theirs.allowed(mine)
        if waiting > allowed:
            text = f"has {waiting:,} bytes of {sender.name} to take, more than {allowed:,}"
            yield receiver.name, text


def _part(stack: Stack, kind: type[Kind]) -> Kind | None:
    return next((part for part in stack.parts if isinstance(part, kind)), None)
