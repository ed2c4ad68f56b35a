"""Repair by other members: which to ask for messages when their sender does not answer.

Messages may arrive at one member and not at another, for as long as the path from the sender to it
is broken or loses large datagrams. Any member that keeps them can resend them. So after a few
requests without an answer, over a time that no queue explains, a receiver asks another member, then
the sender once, then the next member, and so on: what a narrow link has lost before it reached
anyone, only the sender has. It stays with another member that answers until everything that it
asked for has arrived; then it asks the sender first again. Where the sender was not heard at all
for a while, another member is asked first (`SilentSenders`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import KnownSeqnos, SenderMark
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.multicast.view_flush import ViewFlush

REQUESTS_TO_SENDER = 4
"""Requests for the same message to its sender, before another member is asked."""
SENDER_SECONDS = 0.25
"""The least seconds for which the sender is asked alone: its answer may wait in a queue."""


class _Requests(NamedTuple):
    """The requests for one sender's messages since the last time that nothing was missing."""

    first: int
    """The message whose repeated requests are counted."""
    tries: int
    """How often it was requested since the last answer."""
    turn: int
    """How many times another member was asked instead; even when the sender was asked last."""
    last: int
    """The last message that was requested."""
    since: float
    """When it was first requested."""


class PeerRepair:
    """The targets of requests within a view."""

    __slots__ = ("_env", "_group", "_requests", "helped", "silent")

    def __init__(self, env: Env, group: GroupWindows) -> None:
        self._env = env
        self._group = group
        self._requests: dict[Address, _Requests] = {}
        self.helped: set[Address] = set()
        """The senders whose messages were requested from other members in this view, and are
        accepted from them."""
        self.silent: frozenset[Address] = frozenset()
        """The senders that were not heard for a while."""

    def target(self, sender: Address, wanted: RangeSet) -> Address:
        """The member to send a request for these messages to."""
        window, now = self._group.windows[sender], self._env.now
        known = self._requests.get(sender)
        if known is None or window.handed >= known.last:
            first, tries, turn, last, since = wanted.first, 1, 0, wanted.last, now
            if sender in self.silent:
                turn = 1
        else:
            first, tries, turn, last, since = known
            last = max(last, wanted.last)
            if first not in window.gaps:  # The member that was asked has answered.
                first, tries, since = wanted.first, 1, now
                turn = turn if turn % 2 else 0
            elif wanted.first == first:
                tries += 1
                if turn:
                    turn += 1
                elif tries > REQUESTS_TO_SENDER and now >= since + SENDER_SECONDS:
                    turn = 1
        self._requests[sender] = _Requests(first, tries, turn, last, since)
        if turn % 2 == 0:
            return sender
        self.helped.add(sender)
        others = [member for member in self._group.windows if member != sender]
        return others[turn // 2 % len(others)] if others else sender

    def clear(self) -> None:
        """A view is installed: begin with the senders again."""
        self._requests.clear()
        self.helped.clear()
        self.silent = frozenset()


class SilentSenders:
    """Senders that this member does not hear: other members say how far their messages go.

    A receiver requests what it knows to exist: a later message has arrived, or an announcement of
    the last seqno. Neither comes from a sender whose path to the receiver is cut. So a receiver
    that has not heard a sender for a while asks the other members in turn how far they have its
    messages (KNOWN, with how far it has them itself). A member that has more and keeps it answers
    likewise; the messages are then requested as after any loss, from the members that have them.

    Both say only what they were handed in the view that both are in, so that no message comes
    before the view that it was sent in.
    """

    __slots__ = ("_asked", "_env", "_flush", "_gaps", "_group", "_peer_repair", "_turn")

    def __init__(
        self,
        env: Env,
        group: GroupWindows,
        flush: ViewFlush,
        gaps: SenderGaps,
        peer_repair: PeerRepair,
    ) -> None:
        self._env = env
        self._group = group
        self._flush = flush
        self._gaps = gaps
        self._peer_repair = peer_repair
        self._turn = 0
        self._asked: set[Address] = set()
        """The members that were asked since a sender is silent: only these are believed."""

    def note(self, members: Collection[Address]) -> None:
        """These members were not heard for a while; no others."""
        windows = self._group.windows
        silent = self._peer_repair.silent = frozenset(m for m in members if m in windows)
        others = [member for member in windows if member not in silent]
        if not silent:
            self._asked.clear()
        elif others and not self._flush.is_frozen:
            target = others[self._turn % len(others)]
            self._turn += 1
            self._asked.add(target)
            marks = tuple(SenderMark(m, windows[m].handed) for m in windows if m in silent)
            self._env.out.send(KnownSeqnos(self._group.view, marks), target)

    def on_known(self, frame: KnownSeqnos, source: Address) -> None:
        """A member asks, or answers."""
        windows, silent = self._group.windows, self._peer_repair.silent
        if source not in windows:
            self._env.counters["dropped_not_member"] += 1
            return
        if frame.view != self._group.view or self._flush.is_frozen:
            return
        more = list[SenderMark]()
        for sender, seqno in frame.marks:
            window = windows.get(sender)
            if window is None:
                continue
            if sender in silent:
                if source in self._asked:
                    window.expect(seqno)
                    self._gaps.note(sender, window)
            elif window.keep and window.handed > seqno:
                more.append(SenderMark(sender, window.handed))
        if more:
            self._env.out.send(KnownSeqnos(frame.view, tuple(more)), source)

    def clear(self) -> None:
        """A view is installed."""
        self._asked.clear()
