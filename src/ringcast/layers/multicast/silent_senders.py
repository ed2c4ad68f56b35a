"""Senders that this member does not hear: other members say how far their messages go.

A receiver requests what it knows to exist: a later message has arrived, or an announcement of the
last seqno. Neither comes from a sender whose path to the receiver is cut. So a receiver that has
not heard a sender for a while asks the other members in turn how far they have its messages (KNOWN,
with how far it has them itself). A member that has more and keeps it answers likewise; the
messages are then requested as after any loss, from the members that have them.

Both say only what they were handed in the view that both are in, so that no message comes before
the view that it was sent in.
"""

from __future__ import annotations

from collections.abc import Collection

from ringcast.core.model.address import Address
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import Known, SenderMark
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.peer_repair import PeerRepair
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.multicast.view_flush import ViewFlush


class SilentSenders:
    """Questions about silent senders, and their answers."""

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
            self._env.out.send(Known(self._group.view, marks), target)

    def on_known(self, frame: Known, source: Address) -> None:
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
            self._env.out.send(Known(frame.view, tuple(more)), source)

    def clear(self) -> None:
        """A view is installed."""
        self._asked.clear()
