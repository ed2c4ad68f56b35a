"""The RingBuffer by itself, against a model, and under threads."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ringcast.core.model.digest import Marks
from ringcast.errors import ConfigError, LocalError
from ringcast.ringbuffer.ring import Cell, RingBuffer

OFFSETS = (0, 4, 2**32 - 3, 2**63 - 3)


def fill(ring: RingBuffer[str], *seqnos: int) -> list[bool]:
    return [ring.add(seqno, f"m{seqno}") for seqno in seqnos]


def test_marks_begin_at_the_offset() -> None:
    assert RingBuffer[str](3, offset=7).marks == Marks(7, 7, 7)


@pytest.mark.parametrize(("capacity", "offset"), [(0, 0), (-1, 0), (1, -1)])
def test_settings_that_make_no_window_are_refused(capacity: int, offset: int) -> None:
    with pytest.raises(ConfigError):
        RingBuffer[str](capacity, offset)


def test_none_cannot_be_added() -> None:
    with pytest.raises(LocalError):
        RingBuffer[None](1).add(1, None)


def test_a_run_ends_at_the_first_gap() -> None:
    ring = RingBuffer[str](10)
    fill(ring, 1, 2, 4, 5, 6)
    assert ring.remove_many(10) == ["m1", "m2"]
    assert ring.remove() is None
    fill(ring, 3)
    assert ring.remove_many(3) == ["m3", "m4", "m5"]
    assert ring.remove_many(0) == []
    assert ring.remove_many(10) == ["m6"]


def test_a_second_copy_changes_nothing() -> None:
    ring = RingBuffer[str](10)
    assert fill(ring, 1, 5) == [True, True]
    assert not ring.add(5, "another")
    assert not ring.add(1, "another")
    assert ring.get(5) == "m5"
    assert (ring.marks, ring.missing_count) == (Marks(0, 0, 5), 3)


def test_the_same_object_twice_is_still_a_copy() -> None:
    cell = Cell[str]()
    assert [cell.fill("same"), cell.fill("same")] == [True, False]


def test_one_removal_makes_room_for_exactly_one() -> None:
    ring = RingBuffer[str](10)
    assert all(fill(ring, *range(1, 11)))
    assert fill(ring, 11, 12) == [False, False]
    assert ring.remove() == "m1"
    assert fill(ring, 11, 12) == [True, False]


def test_without_nullify_only_stability_makes_room() -> None:
    ring = RingBuffer[str](3, nullify=False)
    fill(ring, 1, 2, 3)
    assert ring.remove_many(2) == ["m1", "m2"]
    assert (ring.marks, fill(ring, 4)) == (Marks(0, 2, 3), [False])
    assert [ring.get(seqno) for seqno in (0, 1, 2, 3, 4)] == [None, "m1", "m2", "m3", None]
    assert ring.stable(1) == 1
    assert (ring.marks, fill(ring, 4)) == (Marks(1, 2, 3), [True])
    assert [ring.get(seqno) for seqno in (1, 2, 3, 4)] == [None, "m2", "m3", "m4"]


def test_a_full_ring_does_not_deliver_its_oldest_message_again() -> None:
    ring = RingBuffer[str](2, nullify=False)
    fill(ring, 1, 2)
    assert ring.remove_many(5) == ["m1", "m2"]
    assert ring.remove() is None


def test_stability_stops_at_delivered_and_never_goes_back() -> None:
    ring = RingBuffer[str](5, nullify=False)
    fill(ring, 1, 2, 3)
    ring.remove_many(2)
    assert (ring.stable(9), ring.low) == (2, 2)
    assert (ring.stable(1), ring.low) == (0, 2)


def test_stability_has_nothing_to_do_with_nullify() -> None:
    ring = RingBuffer[str](5)
    fill(ring, 1, 2)
    ring.remove()
    assert (ring.stable(2), ring.marks) == (0, Marks(1, 1, 2))


def test_missing_is_given_in_ranges() -> None:
    ring = RingBuffer[str](10, offset=20)
    fill(ring, 21, 24, 25, 29)
    ring.remove()
    assert list(ring.missing()) == [(22, 23), (26, 28)]
    assert ring.missing_count == 5


@pytest.mark.parametrize("nullify", [True, False])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("capacity", [1, 3, 7])
def test_order_is_kept_past_the_end_of_the_array(capacity: int, offset: int, nullify: bool) -> None:
    ring = RingBuffer[int](capacity, offset, nullify)
    taken: list[int] = []
    while len(taken) < 5 * capacity:
        for seqno in range(ring.low + capacity, ring.low, -1):
            ring.add(seqno, seqno)
        taken += ring.remove_many(max(1, capacity - 1))
        ring.stable(ring.delivered)
    assert taken == list(range(offset + 1, offset + 1 + len(taken)))


def test_the_methods_run_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: RingBuffer[str], seqno: int, item: str) -> Iterator[str]:
        yield "refuse"

    monkeypatch.setattr(RingBuffer, "add_steps", refuse)
    assert not RingBuffer[str](1).add(1, "m1")


class RingAgainstModel(RuleBasedStateMachine):
    """The ring does what a dict and three numbers do."""

    @initialize(capacity=st.integers(1, 6), offset=st.sampled_from(OFFSETS), nullify=st.booleans())
    def begin(self, capacity: int, offset: int, nullify: bool) -> None:
        self.ring = RingBuffer[str](capacity, offset, nullify)
        self.kept: dict[int, str] = {}
        self.low = self.delivered = self.high = offset

    @rule(distance=st.integers(-3, 9), copy=st.integers(0, 99))
    def add(self, distance: int, copy: int) -> None:
        seqno, item = self.low + distance, f"{distance}.{copy}"
        fits = self.delivered < seqno <= self.low + self.ring.capacity and seqno not in self.kept
        assert self.ring.add(seqno, item) == fits
        if fits:
            self.kept[seqno] = item
            self.high = max(self.high, seqno)

    @rule()
    def remove(self) -> None:
        assert self.ring.remove() == self.take()

    @rule(limit=st.integers(0, 9))
    def remove_many(self, limit: int) -> None:
        expected: list[str] = []
        while len(expected) < limit and (item := self.take()) is not None:
            expected.append(item)
        assert self.ring.remove_many(limit) == expected

    @rule(distance=st.integers(-3, 9))
    def stable(self, distance: int) -> None:
        freed = [s for s in self.kept if s <= min(self.low + distance, self.delivered)]
        assert self.ring.stable(self.low + distance) == len(freed)
        self.free(freed)

    def take(self) -> str | None:
        item = self.kept.get(self.delivered + 1)
        if item is not None:
            self.delivered += 1
            if self.ring.nullify:
                self.free([self.delivered])
        return item

    def free(self, seqnos: list[int]) -> None:
        for seqno in seqnos:
            del self.kept[seqno]
        self.low = max(self.low, *seqnos, self.low)

    @invariant()
    def looks_alike(self) -> None:
        assert self.ring.marks == (self.low, self.delivered, self.high)
        beyond = range(self.delivered + 1, self.high + 1)
        missing = [seqno for seqno in beyond if seqno not in self.kept]
        found = [s for first, last in self.ring.missing() for s in range(first, last + 1)]
        assert found == missing
        assert self.ring.missing_count == len(missing)
        around = range(self.low - 2, self.high + 3)
        assert [self.ring.get(s) for s in around] == [self.kept.get(s) for s in around]


TestRingAgainstModel = RingAgainstModel.TestCase
TestRingAgainstModel.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads change after a few bytecodes, so that they meet inside the operations."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty_threads")
@pytest.mark.parametrize(("capacity", "total"), [(1, 40), (8, 600), (64, 3000)])
@pytest.mark.parametrize("nullify", [True, False])
def test_threads_deliver_each_message_once_and_in_order(
    capacity: int, total: int, nullify: bool
) -> None:
    adders = 3
    ring = RingBuffer[tuple[int, int]](capacity, nullify=nullify)
    accepted: list[list[tuple[int, int]]] = [[] for _ in range(adders)]
    taken: list[tuple[int, int]] = []
    foreign: list[int] = []

    def add(adder: int) -> None:
        # All adders go over the same window again and again, from both ends, and a little beyond.
        first, last = max(1, ring.low - 1), min(total, ring.low + capacity + 1)
        for seqno in range(first, last + 1) if adder % 2 else range(last, first - 1, -1):
            if ring.add(seqno, (seqno, adder)):
                accepted[adder].append((seqno, adder))

    def look() -> None:
        seqno = ring.delivered
        item = ring.get(seqno)
        if item is not None and item[0] != seqno:
            foreign.append(seqno)
        ring.stable(ring.delivered)

    tasks: list[Callable[[], None]] = [partial(add, adder) for adder in range(adders)]
    tasks += [lambda: taken.extend(ring.remove_many(5)), look]
    run_until(lambda: ring.low == total, tasks)

    assert [seqno for seqno, _ in taken] == list(range(1, total + 1))
    assert Counter(taken) == Counter(item for items in accepted for item in items)
    assert ring.marks == Marks(total, total, total)
    assert (ring.missing_count, foreign) == (0, [])


def run_until(done: Callable[[], bool], tasks: list[Callable[[], None]]) -> None:
    """Repeat each task in a thread of its own until all is done; fails if that never comes."""
    # Only a ring that is broken lets the threads run until they are told to give up.
    give_up = threading.Event()
    errors: list[Exception] = []

    def repeat(task: Callable[[], None]) -> None:
        try:
            while not done() and not give_up.is_set():
                task()
        except Exception as error:
            errors.append(error)
            give_up.set()

    threads = [threading.Thread(target=repeat, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        threads[0].join(timeout=60)
    finally:
        give_up.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert done(), "The threads stand still: a place is blocked or a message is lost."
