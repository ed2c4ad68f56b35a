"""Rings with a step left out or moved, so that the checker can show what that step is for."""

from __future__ import annotations

from itertools import permutations

from ringcast.ringbuffer.checker import Added, Ring
from ringcast.ringbuffer.ring import Cell, RingBuffer, Steps

REMOVE_STEPS = ("#1 write HD", "#2 null element", "#3 write LOW")
NULL_FIRST = ("#2 null element", "#1 write HD", "#3 write LOW")
LOW_BEFORE_NULL = ("#1 write HD", "#3 write LOW", "#2 null element")


class NaiveAdd(RingBuffer[Added]):
    """Reads HD once, then does the CAS: the race that the design note begins with."""

    def add_steps(self, seqno: int, item: Added) -> Steps[bool]:
        index = self._index(seqno)
        yield "read LOW"
        if seqno > self._low + self.capacity:
            return False
        yield "#1 read HD"
        if seqno <= self._delivered:
            return False
        yield "#4 CAS(null, element)"
        if not self._cells[index].fill(item):
            return False
        yield "raise HR"
        self._raise_high(seqno)
        return True


class AnyNull(RingBuffer[Added]):
    """The design note to the letter, with a null that is the same for all laps.

    The four steps are those of the RingBuffer, but #4 compares with whatever null is in the slot
    by then, not with the one that #2 has read.
    """

    def add_steps(self, seqno: int, item: Added) -> Steps[bool]:
        index = self._index(seqno)
        yield "read LOW"
        if seqno > self._low + self.capacity:
            return False
        yield "#1 read HD"
        if seqno <= self._delivered:
            return False
        yield "#2 read element"
        if self._cells[index].content is not None:
            return False
        yield "#3 read HD again"
        if seqno <= self._delivered:
            return False
        yield "#4 CAS(null, element)"
        if not self._cells[index].fill(item):
            return False
        yield "raise HR"
        self._raise_high(seqno)
        return True


class LowFirst(RingBuffer[Added]):
    """Declares messages stable by writing LOW before it nulls them."""

    def stable_steps(self, seqno: int) -> Steps[int]:
        if self.nullify:
            return 0
        yield "read HD"
        low, last = self._low, min(seqno, self._delivered)
        if last <= low:
            return 0
        yield "write LOW"
        self._low = last
        for freed in range(low + 1, last + 1):
            yield "null element"
            self._cells[self._index(freed)] = Cell()
        return last - low


def removing_in(order: tuple[str, ...]) -> type[Ring]:
    """A ring whose remove does its three steps in this order; REMOVE_STEPS is the right one."""

    class Reordered(RingBuffer[Added]):
        def remove_steps(self) -> Steps[Added | None]:
            seqno = self._delivered + 1
            index = self._index(seqno)
            yield "read HR"
            if seqno > self._high:
                return None
            yield "read element"
            content = self._cells[index].content
            if content is None:
                return None
            for step in order:
                yield step
                if step == "#1 write HD":
                    self._delivered = seqno
                elif step == "#2 null element":
                    self._cells[index] = Cell()
                else:
                    self._low = seqno
            return content[0]

    return Reordered


def all_removes() -> dict[tuple[str, ...], type[Ring]]:
    """A ring for each order of the three steps, the right one first."""
    return {order: removing_in(order) for order in permutations(REMOVE_STEPS)}
