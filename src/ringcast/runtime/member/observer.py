"""The observer: where a trace, or anything like it, sits beside a member and watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ringcast.core.model.events import Event
from ringcast.core.stack.stack import Stack


class MemberListener(Protocol):
    """Is told what a member does. All but `end` run under the member's lock: note and go."""

    def begin(self, stack: Stack) -> None:
        """The member is made and not started yet. May listen at `stack.env.tracer`."""
        ...

    def taken(self, events: Sequence[Event]) -> None:
        """These events are handed over; what they carry is not acked yet."""
        ...

    def settled(self, is_blocked: bool) -> None:
        """A step is over; whether messages are left that found no room."""
        ...

    def end(self) -> None:
        """The member is closed, and nothing more comes. May wait for a disk."""
        ...


class MemberListeners:
    """Several observers as one; those come first that were named first."""

    def __init__(self, observers: Sequence[MemberListener]) -> None:
        self._observers = tuple(observers)
        self._begun: list[MemberListener] = []

    def begin(self, stack: Stack) -> None:
        """The member is made. When one cannot begin, those before it are told that it is over."""
        try:
            for observer in self._observers:
                observer.begin(stack)
                self._begun.append(observer)
        except BaseException:
            self.end()
            raise

    def taken(self, events: Sequence[Event]) -> None:
        """These events are handed over."""
        for observer in self._observers:
            observer.taken(events)

    def settled(self, is_blocked: bool) -> None:
        """A step is over."""
        for observer in self._observers:
            observer.settled(is_blocked)

    def end(self) -> None:
        """The member is closed."""
        for observer in self._begun:
            observer.end()


def together(observers: Sequence[MemberListener]) -> MemberListener | None:
    """One observer for all of these; None for none."""
    if len(observers) > 1:
        return MemberListeners(observers)
    return observers[0] if observers else None
