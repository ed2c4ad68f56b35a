"""The flush before a view change: stop sending, report what is held, fetch what is missing.

Before a view is installed every member stops sending (`freeze`), reports what it holds of the
departed (`held`), and fetches what the others have (`aim`): messages of the living up to where they
stopped, messages of the departed up to the furthest that a survivor holds. Missing messages are
requested from their sender, or from the member that was named as their holder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.reliable.windows import Hole
from ringcast.core.stack.ports import ViewChanger
from ringcast.core.wire.frames import Ending, Held
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.sender_gaps import SenderGaps

UNANSWERED_REQUESTS_MAX = 3
"""Requests for messages of one sender without progress, before other members are asked."""


class ViewFlush:
    """What a view change asks of the reliable multicast (ports.Flush)."""

    __slots__ = (
        "_asked",
        "_gaps",
        "_group",
        "_hand_up",
        "aims",
        "holders",
        "is_aiming",
        "is_frozen",
        "membership",
        "next_view",
    )

    membership: ViewChanger
    """Set when the stack is wired."""

    def __init__(
        self,
        group: GroupWindows,
        gaps: SenderGaps,
        hand_up: Callable[[Address, list[Batch | Hole]], None],
    ) -> None:
        self._group = group
        self._gaps = gaps
        self._hand_up = hand_up
        self.is_frozen = True
        """Whether nothing may be sent until a view is installed."""
        self.is_aiming = False
        """Whether messages that come before the next view are still missing."""
        self.aims: dict[Address, int] = {}
        """Per sender: the last message that comes before the next view."""
        self.next_view = NO_VIEW
        """The view that is about to be installed."""
        self.holders: dict[Address, Address] = {}
        """Per sender that is gone: the member to request its messages from."""
        self._asked: dict[Address, tuple[int, int, Address]] = {}
        """Per sender: how far its messages were handed up at the last request, the requests since
        the last progress, and the member that was asked."""

    def freeze(self, departed: Iterable[Address]) -> int:
        """Send nothing more and hand up nothing more of the departed; the last seqno sent."""
        self.is_frozen, self.is_aiming, self.aims, self.next_view = True, False, {}, NO_VIEW
        for member in departed:
            window = self._group.windows.get(member)
            if window is not None:
                window.hold(window.handed)
        return self._group.sent.high

    def held(self, departed: Iterable[Address]) -> tuple[Held, ...]:
        """What this member holds of the departed senders."""
        windows = ((member, self._group.windows.get(member)) for member in departed)
        return tuple(Held(m, max(w.low, w.holed), w.handed) for m, w in windows if w is not None)

    def aim(self, view: ViewId, starts: dict[Address, int], endings: tuple[Ending, ...]) -> None:
        """Fetch everything up to these seqnos and nothing beyond, then tell the membership."""
        windows, gaps = self._group.windows, self._gaps
        ends = {ending.origin: ending for ending in endings}
        self.is_aiming, self.aims, self.next_view = True, {}, view
        self.holders = {}
        for sender, window in windows.items():
            target = starts.get(sender, window.handed)
            if sender in ends:
                target = ends[sender].last
                self.holders[sender] = ends[sender].holder
                window.purge(ends[sender].low)
            aim = self.aims[sender] = max(target, window.handed)
            window.hold(aim)
            window.reach(aim)
            window.expect(aim)
            gaps.note(sender, window)
            if gaps.expire(sender):
                gaps.requester.request_soon()
        for sender, window in windows.items():
            self._hand_up(sender, window.hand())
        assert self.aims.keys() == windows.keys()
        assert self.holders.keys() <= windows.keys()
        assert all(windows[sender].handed <= aim for sender, aim in self.aims.items())
        self.check()

    def reached(self) -> bool:
        """Whether everything up to the aims has been handed up."""
        windows = self._group.windows
        return all(windows[sender].handed >= aim for sender, aim in self.aims.items())

    def check(self) -> None:
        """Tell the membership once everything up to the aims has been handed up."""
        if self.is_aiming and self.reached():
            self.is_aiming = False
            self.membership.reached()

    def thaw(self) -> None:
        """A view is installed: sending continues."""
        self.is_frozen, self.is_aiming = False, False
        self.aims, self.holders, self._asked, self.next_view = {}, {}, {}, NO_VIEW

    # Whom to ask ---------------------------------------------------------------------------------

    def on_suspect(self, member: Address, suspected: bool) -> None:
        """Ask another member in the place of one that is suspected."""
        if not suspected or not self.is_aiming:
            return
        windows, holders = self._group.windows, self.holders
        others = [m for m in windows if m != member and m not in holders.values()]
        for sender, aim in self.aims.items():
            asked = holders.get(sender, sender)
            if asked == member and windows[sender].handed < aim and others:
                holders[sender] = others[len(holders) % len(others)]
                self._gaps.expire(sender)

    def request_target(self, sender: Address) -> Address:
        """The member to request a sender's messages from, while a view change waits for them.

        That is the sender, or the holder that was named for it; when it does not answer, the other
        members in turn: the sender may be gone, and any may have the messages.
        """
        assert self.is_aiming
        named = self.holders.get(sender, sender)
        handed = self._group.windows[sender].handed
        before, tries, asked = self._asked.get(sender, (handed, 0, named))
        if handed > before:
            tries, named = 0, asked  # The member that was asked last has the messages.
            self.holders[sender] = asked
        if tries >= UNANSWERED_REQUESTS_MAX:
            self.holders.setdefault(sender, sender)  # Accept the messages from any member now.
            candidates = [m for m in self._group.windows if m != named] + [named]
            asked = candidates[(tries - UNANSWERED_REQUESTS_MAX) % len(candidates)]
        else:
            asked = named
        self._asked[sender] = handed, tries + 1, asked
        return asked
