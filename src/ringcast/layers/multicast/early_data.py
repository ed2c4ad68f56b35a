"""Messages that arrive before the view that they were sent in.

A sender may install a view earlier than a receiver. Messages of a member are stored and held back
until their view is installed; messages of a sender that is not a member yet are parked, so that a
join under load starts without requests.
"""

from __future__ import annotations

from ringcast.core.model.address import Address
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.wire.frames import Data, Last
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.view_flush import ViewFlush

LATER_VIEWS_MAX = 16
"""Later views of one sender that are remembered; messages of views that are further ahead are not
parked."""
PARKED_BYTES_MAX = 4_000_000
"""Bytes of all parked messages."""
_MESSAGE_COST = 64
"""Bytes that keeping a message takes besides its content."""


class EarlyData:
    """Later views of members, and parked frames of others; frames that do not fit are requested
    later."""

    __slots__ = (
        "_flush",
        "_group",
        "_later",
        "_parked",
        "_parked_bytes",
        "_parked_bytes_max",
        "_parked_max",
    )

    def __init__(
        self, group: GroupWindows, flush: ViewFlush, parked_max: int, max_bytes: int
    ) -> None:
        self._group = group
        self._flush = flush
        self._later: dict[Address, dict[ViewId, int]] = {}
        """Per member: the later views that it sent in, and the last seqno before each."""
        self._parked: list[tuple[Data, Address]] = []
        self._parked_max = parked_max
        self._parked_bytes = 0
        self._parked_bytes_max = min(max_bytes, PARKED_BYTES_MAX)

    # Of members ----------------------------------------------------------------------------------

    def admit(self, sender: Address, window: ReceiveWindow, frame: Data | Last) -> bool:
        """Whether messages that a member sent in another view than this one may be stored."""
        if frame.view.number < self._group.view.number:
            return False  # All of them were handed up before this view was installed.
        later = self._later.setdefault(sender, {})
        if len(later) < LATER_VIEWS_MAX:
            later[frame.view] = frame.start
        if sender in self._flush.aims:
            return True  # The view change that is under way says where this view ends.
        end, bound = self._end_of_view(frame.view, frame.start, window), window.held_at
        window.hold(end if bound is None else min(end, bound))
        return True

    def refute(self, window: ReceiveWindow, last: int) -> None:
        """A member has sent up to this message in this view: its messages so far are of no later
        one, whatever any process has said in its name."""
        if not self._flush.is_frozen:  # Else the change that is under way says what is held back.
            assert window.held_at is not None
            window.hold(max(window.held_at, last))

    def _end_of_view(self, view: ViewId, start: int, window: ReceiveWindow) -> int:
        # Only the next view says where this one ends: a sender that is further ahead has sent
        # messages of the views in between as well.
        return start if view.number == self._group.view.number + 1 else window.handed

    def release(self, sender: Address, window: ReceiveWindow) -> None:
        """A view is installed: hold back only what the member sent in later ones."""
        known = self._later.pop(sender, {})
        now, number = self._group.view, self._group.view.number
        later = {
            view: start for view, start in known.items() if view != now and view.number >= number
        }
        window.hold(None)
        if later:
            self._later[sender] = later
            window.hold(min(self._end_of_view(*item, window) for item in later.items()))

    def forget(self, sender: Address) -> None:
        """The member has left."""
        self._later.pop(sender, None)

    # Of others -----------------------------------------------------------------------------------

    def park(self, frame: Data, source: Address) -> bool:
        """Keep a frame until its view is installed; False when there is no room, or when the view
        is not one that a member of this one could make next."""
        cost = _cost(frame)
        if (
            len(self._parked) >= self._parked_max
            or self._parked_bytes + cost > self._parked_bytes_max
            or not self._may_follow(frame.view)
        ):
            return False
        self._parked.append((frame, source))
        self._parked_bytes += cost
        assert 0 < self._parked_bytes <= self._parked_bytes_max
        assert len(self._parked) <= self._parked_max
        return True

    def _may_follow(self, view: ViewId) -> bool:
        """Whether a member of this view could make that one soon; a joiner cannot tell."""
        group = self._group
        if group.view == NO_VIEW:
            return True
        is_near = view.number - group.view.number <= LATER_VIEWS_MAX
        return is_near and group.is_member(view.coordinator)

    @property
    def parked_bytes(self) -> int:
        """Bytes that the parked frames take."""
        return self._parked_bytes

    def unpark(self, view: ViewId) -> list[tuple[Data, Address]]:
        """The frames of this view; frames of later views stay, those of earlier ones are freed."""
        frames = self._parked
        self._parked = [parked for parked in frames if parked[0].view > view]
        self._parked_bytes = sum(_cost(frame) for frame, _ in self._parked)
        assert bool(self._parked) == (self._parked_bytes > 0)
        return [parked for parked in frames if parked[0].view == view]


def _cost(frame: Data) -> int:
    return frame.nbytes + _MESSAGE_COST * len(frame.payloads)
