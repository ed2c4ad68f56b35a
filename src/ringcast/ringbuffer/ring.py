"""The concurrent window of the RingBuffer design note: many threads add while one removes.

The race. A message may come twice: once from its sender, once from a retransmission. A thread that
adds 5 reads highest delivered, HD=4, and goes on. Meanwhile the remover takes the 5 that is
already there, writes HD=5 and nulls the slot. Now the adder's CAS(null, 5) succeeds: 5 is in the
ring again and will be delivered twice. The note orders the steps so that this cannot happen:

    remove:  #1 write HD   #2 null element   #3 write LOW
    add:     #1 read HD    #2 read element   #3 read HD again   #4 CAS(null, element)

What the order buys. The remover writes HD before it nulls, so an adder that reads null in #2 and
still HD < seqno in #3 has read a null *from before* the delivery. And the remover writes LOW after
it nulls, so an adder that finds seqno <= LOW + capacity finds the slot rid of its last lap.

What it does not buy. Between #3 and #4 another thread may add the same seqno, and the remover may
deliver and null it: the slot is null again, and a CAS that takes one null for another succeeds.
It takes two threads, each with a copy of a message that is not there yet; a receiver may well have
them. Therefore a null is no constant here but an object: an empty `Cell`, a new one for each lap.
#2 reads the cell, #3 shows that it is this seqno's own, and #4 is CAS(the null of #2, element). A
cell is filled once and never emptied, so it takes the message of one adder, however many there
are and however late they wake. `ringcast.ringbuffer` runs every interleaving.

The CAS. Python has none for the slot of a list. `dict.setdefault` with an int as the key is one: it
inserts unless the key is there, and tells which. That is one C call; under the GIL nothing comes
between, and a free-threaded CPython holds the dict's own lock throughout ("Thread Safety
Guarantees" in its library reference). So a cell is a dict of at most one entry, and no lock of ours
guards it. Striped locks around "compare, then set" would be right too, but are one more thing to
size, and a thread can be stopped while it holds one.

The marks are plain attributes, references that are replaced whole and read without a lock. LOW and
HD have one writer each. HR has many and the highest must win, so it is raised by a compare-and-set
under a lock, when the message is in: without it HR could fall back, and the remover would not look
at the message. Adders wait for each other there and nowhere else; the remover and readers never do.

The proof needs that threads see the writes of one thread in their order. Under the GIL they do;
without it that is how CPython stores references, though no page of its documentation promises it,
so that the thread test matters most there.

Two ways were rejected. A cell that carries its lap's number makes the second read of HD needless,
and with it the note's design. Looking at HD once more after the CAS and taking the message back
leaves it in the ring for a moment, where the next lap stumbles over it.

The methods run the very generators that the checker schedules, a step at a time. That costs about
a microsecond a call, which is what one logic instead of two is worth.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Generic, TypeAlias, TypeVar

from ringcast.core.model.digest import Marks
from ringcast.core.model.ranges import RangeSet
from ringcast.errors import ConfigError, LocalError

T = TypeVar("T")
R = TypeVar("R")

Steps: TypeAlias = Generator[str, None, R]
"""An operation as atomic steps: each `yield` names the step that is done next."""


class RingBuffer(Generic[T]):
    """A window of `capacity` messages, LOW <= HD <= HR <= LOW + capacity, shared by threads.

    Any number of threads may `add` and look; one thread at a time may `remove`, and one at a time
    call `stable`. With `nullify` a removal frees the slot; without, the message can still be read
    with `get` until it is stable. Seqnos begin at offset + 1 and wrap nowhere.
    """

    def __init__(self, capacity: int, offset: int = 0, nullify: bool = True) -> None:
        """Raises ConfigError unless capacity is at least 1 and offset at least 0."""
        if capacity < 1:
            raise ConfigError(f"A window holds a message at least: raise capacity {capacity} to 1.")
        if offset < 0:
            raise ConfigError(f"Sequence numbers are not negative: raise offset {offset} to 0.")
        self.capacity = capacity
        self.nullify = nullify
        self._offset = offset
        self._cells: list[Cell[T]] = [Cell() for _ in range(capacity)]
        self._low = self._delivered = self._high = offset
        self._added = 0
        self._raising = threading.Lock()

    def add(self, seqno: int, item: T) -> bool:
        """Put the item in its place; whether it was new.

        False means that it was delivered before, is there already or lies past low + capacity; the
        caller tells them apart, if it must, by the marks. The item must not be None: LocalError.
        """
        return _run(self.add_steps(seqno, item))

    def remove(self) -> T | None:
        """The next message in order, or None while it is missing."""
        return _run(self.remove_steps())

    def remove_many(self, limit: int) -> list[T]:
        """Up to limit messages in order; the run ends at the first gap."""
        taken: list[T] = []
        while len(taken) < limit and (item := self.remove()) is not None:
            taken.append(item)
        return taken

    def stable(self, seqno: int) -> int:
        """Free what is delivered up to seqno; how many messages that was.

        Never passes delivered; a lower seqno than before does nothing, and so does any with
        nullify, where removal has freed them. Linear in what it frees.
        """
        return _run(self.stable_steps(seqno))

    def add_steps(self, seqno: int, item: T) -> Steps[bool]:
        """The four-step add, between the look for room and the raise of HR."""
        if item is None:
            raise LocalError("None stands for an empty place: add something else.")
        index = self._index(seqno)
        yield "read LOW"
        if seqno > self._low + self.capacity:
            return False
        yield "#1 read HD"
        if seqno <= self._delivered:
            return False
        yield "#2 read element"
        # Cell and content are two reads, but a filled cell stays filled: a moment later the second
        # can only find more, and the remover replaces no cell that is empty.
        cell = self._cells[index]
        if cell.content is not None:
            return False
        yield "#3 read HD again"
        if seqno <= self._delivered:
            return False
        yield "#4 CAS(null, element)"
        if not cell.fill(item):
            return False
        yield "raise HR"
        self._raise_high(seqno)
        return True

    def remove_steps(self) -> Steps[T | None]:
        """The three-step remove, after a check that the next message is buffered.

        HR is read because without nullify a full ring has in the next place a delivered message.
        """
        seqno = self._delivered + 1
        index = self._index(seqno)
        yield "read HR"
        if seqno > self._high:
            return None
        yield "read element"
        content = self._cells[index].content
        if content is None:
            return None
        yield "#1 write HD"
        self._delivered = seqno
        if self.nullify:
            yield "#2 null element"
            self._cells[index] = Cell()
            yield "#3 write LOW"
            self._low = seqno
        return content[0]

    def stable_steps(self, seqno: int) -> Steps[int]:
        """Null what is delivered, then write LOW: a writer that finds room finds the slot empty."""
        if self.nullify:
            return 0
        yield "read HD"
        low, last = self._low, min(seqno, self._delivered)
        for freed in range(low + 1, last + 1):
            yield "null element"
            self._cells[self._index(freed)] = Cell()
        if last <= low:
            return 0
        yield "write LOW"
        self._low = last
        return last - low

    @property
    def low(self) -> int:
        """The seqno up to which everything is freed."""
        return self._low

    @property
    def delivered(self) -> int:
        """The highest seqno that was removed."""
        return self._delivered

    @property
    def high(self) -> int:
        """The highest seqno that was added."""
        return self._high

    @property
    def marks(self) -> Marks:
        """The three marks, in order even while other threads move them."""
        # The arguments are read from left to right and only ever rise, so none passes the next.
        return Marks(low=self._low, delivered=self._delivered, high=self._high)

    @property
    def missing_count(self) -> int:
        """How many messages below high were never added, without a scan.

        Exact when no add is under way; else it may still count those that are being added.
        """
        added = self._added  # First: then high, which only rises, is never below what it counts.
        return self._high - self._offset - added

    def missing(self) -> RangeSet:
        """What lies between delivered and high and is not there. Linear in that distance."""
        gaps = RangeSet()
        for seqno in range(self._delivered + 1, self._high + 1):
            # Delivered since: the place may be empty for the next lap, and this one is not missing.
            if self._cells[self._index(seqno)].content is None and seqno > self._delivered:
                gaps.add(seqno, seqno)
        return gaps

    def get(self, seqno: int) -> T | None:
        """The message, for a retransmission, or None if it is missing or freed."""
        content = self._cells[self._index(seqno)].content
        # LOW is looked at last: the next lap enters this place only after LOW has reached seqno.
        if content is None or not self._low < seqno <= self._high:
            return None
        return content[0]

    def __repr__(self) -> str:
        return f"RingBuffer({self.marks}, capacity={self.capacity}, nullify={self.nullify})"

    def _index(self, seqno: int) -> int:
        return (seqno - self._offset - 1) % self.capacity

    def _raise_high(self, seqno: int) -> None:
        with self._raising:
            self._added += 1
            self._high = max(self._high, seqno)


class Cell(Generic[T]):
    """The place of one seqno in one lap: empty, then filled once, never emptied.

    While it is empty it is the null that an add compares with.
    """

    __slots__ = ("_box",)

    def __init__(self) -> None:
        self._box: dict[int, tuple[T]] = {}

    @property
    def content(self) -> tuple[T] | None:
        """The item in a tuple of its own, or None."""
        return self._box.get(0)

    def fill(self, item: T) -> bool:
        """CAS(null, item): whether this call filled the cell. Atomic."""
        # The tuple is new with each call; two adders may well bring the same item.
        content = (item,)
        return self._box.setdefault(0, content) is content


def _run(steps: Steps[R]) -> R:
    """Do all the steps of an operation; its result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: R = end.value
        return result
