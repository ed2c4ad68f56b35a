"""A place for messages of a view that is still on its way, so that a join under load starts without
requests."""

from __future__ import annotations

from ringcast.core.address import Address
from ringcast.core.frames import Data
from ringcast.core.view import ViewId


class Parking:
    """Frames of senders that are not in the view yet; bounded, and what does not fit is repaired
    later."""

    __slots__ = ("_frames", "_limit")

    def __init__(self, limit: int) -> None:
        self._frames: list[tuple[Data, Address]] = []
        self._limit = limit

    def park(self, frame: Data, source: Address) -> bool:
        """Keep a frame until its view comes; False when there is no room."""
        if len(self._frames) >= self._limit:
            return False
        self._frames.append((frame, source))
        return True

    def take(self, view: ViewId) -> list[tuple[Data, Address]]:
        """The frames of this view; those of later ones stay, earlier ones are gone."""
        frames, self._frames = self._frames, []
        self._frames = [parked for parked in frames if parked[0].view > view]
        return [parked for parked in frames if parked[0].view == view]
