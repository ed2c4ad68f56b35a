"""The gap requester: one timer for the requests of all senders' repairs.

The timer runs only while something is missing. Each request fits one datagram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.repair import Repair
from ringcast.core.stack.part import Part
from ringcast.core.stack.timers import NEVER
from ringcast.core.wire.layout import HEADER_SIZE

REQUEST = "repair"
RANGE_BYTES = 16
"""Bytes of one gap in a request."""
REQUEST_BYTES = 64
"""The most bytes of a request besides its gaps."""


class RequestSpec(Protocol):
    """The settings that bound a request."""

    @property
    def request_ranges(self) -> int:
        """The most gaps in one request."""
        ...

    @property
    def request_messages(self) -> int:
        """The most messages in one request."""
        ...


class GapRequester:
    """Requests what is due of each sender; the part passes REQUEST timers to `on_timer`."""

    __slots__ = ("_env", "_part", "_repairs", "_send", "_spec")

    def __init__(
        self,
        part: Part,
        spec: RequestSpec,
        repairs: Callable[[], Iterable[tuple[Address, Repair]]],
        send: Callable[[Address, RangeSet], None],
    ) -> None:
        """repairs: the repairs by sender; send: sends a request for messages of a sender."""
        self._part = part
        self._env = part.env
        self._spec = spec
        self._repairs = repairs
        self._send = send

    def note_gaps(self, repair: Repair, spread: float = 0.0) -> None:
        """Note the gaps of a window, so that they are requested when they are due."""
        repair.note_gaps(self._env.now, spread)
        deadline = repair.deadline
        if deadline != NEVER:
            self._env.timers.set_earlier(self._part, REQUEST, deadline)

    def request_soon(self) -> None:
        """Run the timer at the end of this step."""
        self._env.timers.set_earlier(self._part, REQUEST, self._env.now)

    def on_timer(self) -> None:
        """Request everything that is due."""
        now, deadline, spec = self._env.now, NEVER, self._spec
        fitting = (self._env.mtu - HEADER_SIZE - REQUEST_BYTES) // RANGE_BYTES
        max_ranges = min(spec.request_ranges, fitting)
        for source, repair in self._repairs():
            if repair.deadline <= now:
                wanted = repair.due(now, max_ranges, spec.request_messages)
                if wanted:
                    self._env.counters["requested"] += wanted.count
                    self._send(source, wanted)
            deadline = min(deadline, repair.deadline)
        if deadline != NEVER:
            self._env.timers.set(self._part, REQUEST, deadline)
