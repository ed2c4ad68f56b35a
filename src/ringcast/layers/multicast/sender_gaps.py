"""The gaps in the windows of all senders of the view, and the requests for them."""

from __future__ import annotations

from collections.abc import Callable

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.gap_requester import GapRequester
from ringcast.core.reliable.repair import Repair, RequestTiming
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.part import Part
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.settings import MulticastSpec

SPREAD_GROUP_SIZE = 8
"""In groups with more members, requests are spread at random, so that a loss that all receivers see
is answered to the first and not requested by the rest."""


class SenderGaps:
    """A repair for each sender that has ever had a gap in this view."""

    __slots__ = ("_env", "_group", "_repairs", "_spec", "on_timer", "requester")

    def __init__(
        self,
        layer: Part,
        spec: MulticastSpec,
        group: GroupWindows,
        send: Callable[[Address, RangeSet], None],
    ) -> None:
        """send: sends a request for messages of a sender."""
        self._env = layer.env
        self._spec = spec
        self._group = group
        self._repairs: dict[Address, Repair] = {}
        self.requester = GapRequester(layer, spec, self._repairs.items, send)
        self.on_timer = self.requester.on_timer

    def note(self, sender: Address, window: ReceiveWindow) -> None:
        """Note the gaps of a sender's window, so that they are requested when they are due."""
        repair = self._repairs.get(sender)
        if repair is None:
            if not window.gaps:
                return
            timing = RequestTiming(self._spec.request_delay, self._spec.xmit_interval)
            repair = self._repairs[sender] = Repair(window, timing)
        assert repair.window is window
        spread = 0.0
        if self._group.size > SPREAD_GROUP_SIZE:
            spread = self._env.rng.random() * self._spec.request_delay
        self.requester.note_gaps(repair, spread)

    def expire(self, sender: Address) -> bool:
        """Make all gaps of a sender due now; whether it had any in this view."""
        repair = self._repairs.get(sender)
        if repair is None:
            return False
        repair.expire(self._env.now)
        return True

    def forget(self, sender: Address) -> None:
        """The sender has left."""
        self._repairs.pop(sender, None)
