"""A look into a stack from outside: the marks of its windows, read only, for checks and figures."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.core.stack.stack import Stack
from ringcast.layers.large import LargeMessagesLayer
from ringcast.layers.multicast.base import ReliableMulticast


class WindowMarks:
    """The marks of one member's windows."""

    def __init__(self, stack: Stack) -> None:
        self.multicast = next(part for part in stack.parts if isinstance(part, ReliableMulticast))
        self._large = next(
            (part for part in stack.parts if isinstance(part, LargeMessagesLayer)), None
        )

    @property
    def low(self) -> int:
        """How far the own messages are freed."""
        return self.multicast.sent.low

    @property
    def high(self) -> int:
        """How far the own messages are numbered."""
        return self.multicast.sent.high

    @property
    def outstanding(self) -> int:
        """How many own messages not all members have, as far as this member knows."""
        return self.multicast.sent.high - self.multicast.sent.low

    @property
    def unheard(self) -> int:
        """How many of its large messages this member still follows."""
        return 0 if self._large is None else len(self._large.unacked)

    @property
    def missing(self) -> int:
        """How many messages this member knows of and has not received."""
        return sum(window.gaps.count for window in self.multicast.windows.values())

    @property
    def nbytes(self) -> int:
        """What the windows hold in memory."""
        windows = self.multicast.windows.values()
        return self.multicast.sent.nbytes + sum(window.nbytes for window in windows)

    def out_of_bounds(self) -> Iterator[str]:
        """The windows whose marks are not in order."""
        sent = self.multicast.sent
        if not sent.low <= sent.delivered <= sent.high <= sent.low + sent.capacity:
            marks = f"{sent.low}/{sent.delivered}/{sent.high}"
            yield f"its send window of {sent.capacity} stands at {marks}"
        for sender, w in self.multicast.windows.items():
            if not w.low <= w.delivered <= w.handed <= w.high <= max(w.end, w.skipped_to):
                marks = f"{w.low}/{w.delivered}/{w.handed}/{w.high}"
                yield f"its window of {w.capacity} for {sender} stands at {marks}"
