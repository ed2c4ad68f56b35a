"""Repair by other members: which to ask for messages when their sender does not answer.

Messages may arrive at one member and not at another, for as long as the path from the sender to it
is broken or loses large datagrams. Any member that keeps them can resend them. So after a few
requests without an answer, over a time that no queue explains, a receiver asks the other members
in turn. It stays with a member that answers until everything that it asked for has arrived; then it
asks the sender first again. Where the sender was not heard at all for a while (`SilentSenders`),
the other members are asked first.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.stack.env import Env
from ringcast.layers.multicast.group_windows import GroupWindows

REQUESTS_TO_SENDER = 4
"""Requests for the same message to one member, before the next member is asked."""
SENDER_SECONDS = 0.25
"""The least seconds for which the sender is asked alone: its answer may wait in a queue."""


class _Requests(NamedTuple):
    """The requests for one sender's messages since the last time that nothing was missing."""

    first: int
    """The message whose repeated requests are counted."""
    tries: int
    """How often it was requested from members that did not answer."""
    target: Address
    """The member that was asked last."""
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
            first, tries, target, last, since = wanted.first, 1, sender, wanted.last, now
            if sender in self.silent:
                target = self._after(sender, sender)
                self.helped.add(sender)
        else:
            first, tries, target, last, since = known
            last = max(last, wanted.last)
            if first not in window.gaps:  # The target has answered.
                first, tries, since = wanted.first, 1, now
            elif wanted.first == first:
                tries += 1
                if tries > REQUESTS_TO_SENDER and now >= since + SENDER_SECONDS:
                    target, tries = self._after(sender, target), 1
                    self.helped.add(sender)
        self._requests[sender] = _Requests(first, tries, target, last, since)
        return target

    def _after(self, sender: Address, member: Address) -> Address:
        """The member to ask after this one; all others in turn, the sender first."""
        members = [sender, *(m for m in self._group.windows if m != sender)]
        place = members.index(member) if member in members else -1
        return members[(place + 1) % len(members)]

    def clear(self) -> None:
        """A view is installed: begin with the senders again."""
        self._requests.clear()
        self.helped.clear()
        self.silent = frozenset()
