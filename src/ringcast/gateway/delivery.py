"""What a gateway has to know of its member: whether all is delivered, and to whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from ringcast.core.model.events import Event, ViewChange
from ringcast.core.model.view import View
from ringcast.core.stack.stack import Stack
from ringcast.errors import Closed, LocalError, Timeout
from ringcast.layers.multicast.base import ReliableMulticast

NAME = "gateway@"
"""How the names of all gateways begin: they send, and what they receive is dropped."""


class DeliveryWatch:
    """An observer of a member that only sends. Callers wait here, without the member's lock."""

    def __init__(self, min_receivers: int) -> None:
        self._min_receivers = min_receivers
        self._changed = threading.Condition()
        self._is_drained = False
        self._drains = 0
        """How often a step has ended with everything delivered."""
        self._receivers = 0
        self._lonely = 0
        """How many views there were with too few receivers."""
        self._is_over = False

    # What the member tells ------------------------------------------------------------------------

    def begin(self, stack: Stack) -> None:
        """The member is made."""
        self._stack = stack
        layers = [part for part in stack.parts if isinstance(part, ReliableMulticast)]
        self._sent = layers[0].sent

    def taken(self, events: Sequence[Event]) -> None:
        """Look for views among the events."""
        for event in events:
            if isinstance(event, ViewChange):
                self._on_view(event.view)

    def settled(self, is_blocked: bool) -> None:
        """Look whether everything is delivered."""
        was, self._is_drained = self._is_drained, not is_blocked and self._stack.drained
        if self._is_drained:
            with self._changed:
                self._drains += 1
                if not was:
                    self._changed.notify_all()

    def end(self) -> None:
        """The member is closed."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _on_view(self, view: View) -> None:
        with self._changed:
            names = (peer.name for peer in view.peers)
            self._receivers = sum(not name.startswith(NAME) for name in names)
            self._lonely += self._receivers < self._min_receivers
            self._changed.notify_all()

    # What callers ask -----------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the member is closed."""
        return self._is_over

    @property
    def delivered(self) -> int:
        """How many messages all members have delivered; it rises while things get on."""
        return self._sent.low

    def begin_work(self, timeout: float) -> int:
        """Wait for receivers; gives what `check` wants at the end. Raises Timeout, Closed."""
        if not self._wait(lambda: self._receivers >= self._min_receivers, timeout):
            raise Timeout(self._too_few(f"within {timeout:g} seconds"))
        return self._lonely

    def flush(self, timeout: float) -> bool:
        """Wait until all members have delivered what was sent before; False when it took too long.

        No client may send meanwhile, or it may take for ever. Raises Closed.
        """
        before = self._drains
        return self._wait(lambda: self._is_drained or self._drains > before, timeout)

    def check(self, begun: int) -> None:
        """Raise LocalError unless there were receivers at all times since `begin_work`."""
        if self._lonely != begun:
            raise LocalError(self._too_few("for a while, so that messages may not have come"))

    def _too_few(self, when: str) -> str:
        return (
            f"the group has {self._receivers} members that receive, and not {self._min_receivers}, "
            f"{when}: start them, or lower minReceivers"
        )

    def _wait(self, is_true: Callable[[], bool], timeout: float) -> bool:
        until = time.monotonic() + timeout
        with self._changed:
            while not is_true():
                if self._is_over:
                    raise Closed(f"the group is closed: {self._stack.closed}")
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return is_true()
        return True
