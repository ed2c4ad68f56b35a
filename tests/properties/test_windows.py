"""Ranges and windows against models so simple that they are right: sets and dicts, one by one."""

from collections.abc import Sequence
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.windows import Hole, ReceiveWindow, SendWindow
from ringcast.errors import LocalError

OFFSETS = st.sampled_from([0, 3, 2**32 - 10, 2**63 - 10])
CAPACITIES = st.integers(1, 20)
AHEAD = st.integers(-3, 25)
NUMBERS = st.integers(-30, 60)
LENGTHS = st.integers(0, 12)
PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12)
EVERYTHING = RangeSet([(0, 2**64)])


class RangesAgainstASet(RuleBasedStateMachine):
    """RangeSet beside a set of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges = RangeSet()
        self.model: set[int] = set()

    @rule(first=NUMBERS, length=LENGTHS)
    def add(self, first: int, length: int) -> None:
        new = set(range(first, first + length + 1))
        assert self.ranges.add(first, first + length) == len(new - self.model)
        self.model |= new

    @rule(first=NUMBERS, length=LENGTHS)
    def discard(self, first: int, length: int) -> None:
        old = set(range(first, first + length + 1))
        assert self.ranges.discard(first, first + length) == len(old & self.model)
        self.model -= old

    @rule(low=NUMBERS, high=NUMBERS)
    def clip(self, low: int, high: int) -> None:
        clipped = self.ranges.clip(low, high)
        check_ranges(clipped, {n for n in self.model if low <= n <= high})

    @rule(low=NUMBERS, length=LENGTHS)
    def covers(self, low: int, length: int) -> None:
        expected = self.model.issuperset(range(low, low + length + 1))
        assert self.ranges.covers(low, low + length) == expected

    @rule(max_ranges=st.none() | LENGTHS, max_numbers=st.none() | st.integers(0, 40))
    def limited(self, max_ranges: int | None, max_numbers: int | None) -> None:
        lowest = [
            n for pair in pairs_of(self.model)[:max_ranges] for n in range(pair[0], pair[1] + 1)
        ]
        check_ranges(self.ranges.limited(max_ranges, max_numbers), set(lowest[:max_numbers]))

    @rule(pairs=PAIRS)
    def combine(self, pairs: list[tuple[int, int]]) -> None:
        other = RangeSet((first, first + length) for first, length in pairs)
        numbers = {n for first, length in pairs for n in range(first, first + length + 1)}
        check_ranges(other, numbers)
        check_ranges(self.ranges.union(other), self.model | numbers)
        check_ranges(self.ranges.intersection(other), self.model & numbers)
        check_ranges(self.ranges.difference(other), self.model - numbers)

    @rule()
    def copy(self) -> None:
        copy = self.ranges.copy()
        assert copy == self.ranges
        copy.add(100, 101)
        assert copy != self.ranges
        assert RangeSet(self.ranges.ranges()) == self.ranges

    @invariant()
    def same_numbers(self) -> None:
        check_ranges(self.ranges, self.model)
        assert all((n in self.ranges) == (n in self.model) for n in range(-31, 75))


class ChunksAgainstASet(RangesAgainstASet):
    """The same with chunks of two ranges, so that nearly all sets have several."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = patch("ringcast.core.model.ranges.CHUNK_RANGES", 2)
        self._patch.start()

    def teardown(self) -> None:
        self._patch.stop()

    @invariant()
    def chunks_are_whole(self) -> None:
        chunks = self.ranges._chunks
        if chunks is not None:
            assert len(chunks) > 1
            assert all(1 <= len(firsts) <= 4 for firsts, _ in chunks)
            assert self.ranges._heads == [firsts[0] for firsts, _ in chunks]
            assert chunks[-1] == (self.ranges._firsts, self.ranges._lasts)


class SendWindowAgainstADict(RuleBasedStateMachine):
    """SendWindow beside a dict from seqno to payload."""

    @initialize(capacity=CAPACITIES, offset=OFFSETS, max_bytes=st.none() | st.integers(1, 60))
    def begin(self, capacity: int, offset: int, max_bytes: int | None) -> None:
        self.window = SendWindow(capacity, max_bytes, offset)
        self.capacity, self.max_bytes = capacity, max_bytes
        self.model: dict[int, Payload] = {}
        self.low = self.delivered = self.high = offset

    @rule(sizes=st.lists(st.integers(0, 20), max_size=25))
    def append(self, sizes: list[int]) -> None:
        """Whatever its bytes: these bound what `room` grants, and a caller may pass them."""
        if not 1 <= len(sizes) <= self.low + self.capacity - self.high:
            with pytest.raises(LocalError):
                self.window.append(batch(0, sizes))
            return
        run = batch(self.high + 1, sizes)
        self.model.update(enumerate(run.payloads, run.first))
        self.high = run.last
        run.first = 0
        self.window.append(run)
        assert run.last == self.high

    @rule(ahead=AHEAD)
    def purge(self, ahead: int) -> None:
        gone = [seqno for seqno in self.model if seqno <= self.low + ahead]
        assert self.window.purge(self.low + ahead) == len(gone)
        for seqno in gone:
            del self.model[seqno]
        self.low += len(gone)
        self.delivered = max(self.delivered, self.low)

    @rule(ahead=AHEAD)
    def deliver(self, ahead: int) -> None:
        up_to = self.delivered + ahead
        self.window.deliver(up_to)
        self.delivered = max(self.delivered, min(up_to, self.high))

    @rule(pairs=PAIRS)
    def get(self, pairs: list[tuple[int, int]]) -> None:
        asked = near(self.low, pairs)
        assert flat(self.window.get(asked)) == {n: p for n, p in self.model.items() if n in asked}

    @invariant()
    def same_state(self) -> None:
        window = self.window
        marks = (window.low, window.delivered, window.high)
        assert marks == (self.low, self.delivered, self.high)
        assert window.outstanding == len(self.model) <= self.capacity
        assert window.nbytes == kept_bytes(self.model)
        assert flat(window.get(EVERYTHING)) == self.model

    @invariant()
    def same_room(self) -> None:
        messages, nbytes = self.window.room()
        free = self.low + self.capacity - self.high
        if self.max_bytes is None:
            assert messages == free
            assert nbytes > 2**60
        else:
            assert nbytes == max(0, self.max_bytes - kept_bytes(self.model))
            assert messages == (free if nbytes else 0)


class ReceiveWindowAgainstADict(RuleBasedStateMachine):
    """ReceiveWindow beside a dict from seqno to payload and a set of what was skipped."""

    @initialize(capacity=CAPACITIES, offset=OFFSETS, keep=st.booleans())
    def begin(self, capacity: int, offset: int, keep: bool) -> None:
        self.window = ReceiveWindow(capacity, offset, keep)
        self.capacity, self.keep = capacity, keep
        self.duplicates = self.overflows = self.copies = 0
        self.low = self.delivered = self.handed = self.high = offset
        self.stored: dict[int, Payload] = {}
        self.skipped: set[int] = set()
        self.bound: int | None = None

    @rule(ahead=st.integers(-5, 25), count=st.integers(0, 25))
    def put(self, ahead: int, count: int) -> None:
        # Each copy has other sizes, so that it is told apart from the first.
        self.copies += 1
        sizes = [(self.copies + i) % 11 for i in range(count)]
        run = batch(self.handed + 1 + ahead, sizes)
        self.model_put(run)
        assert singles(self.window.put(run)) == self.model_hand()

    @rule(count=st.integers(1, 10), hold=st.none() | st.integers(0, 10))
    def catch_up_and_continue(self, count: int, hold: int | None) -> None:
        """Without this, random steps seldom come to where nothing is known beyond handed."""
        self.hold(None)
        self.put(0, self.high - self.handed)
        self.deliver(self.handed - self.delivered)
        self.purge(self.delivered - self.low)
        self.hold(hold)
        self.put(0, count)

    @rule()
    def hand(self) -> None:
        assert singles(self.window.hand()) == self.model_hand()

    @rule()
    def take(self) -> None:
        assert singles(self.window.take()) == self.model_hand()
        self.model_deliver(self.handed)

    @rule(ahead=AHEAD)
    def deliver(self, ahead: int) -> None:
        up_to = self.delivered + ahead
        self.window.deliver(up_to)
        self.model_deliver(up_to)

    @rule(ahead=st.integers(-3, 40))
    def expect(self, ahead: int) -> None:
        self.window.expect(self.handed + ahead)
        self.high = max(self.high, min(self.handed + ahead, self.low + self.capacity))

    @rule(ahead=st.integers(-3, 40))
    def skip(self, ahead: int) -> None:
        up_to = self.handed + ahead
        self.window.skip(up_to)
        self.high = max(self.high, up_to)
        self.skipped |= {n for n in range(self.handed + 1, up_to + 1) if n not in self.stored}

    @rule(ahead=st.integers(1, 40))
    def skip_past_the_window(self, ahead: int) -> None:
        """What is handed up may then lie past low + capacity."""
        self.hold(None)
        self.skip(self.capacity + ahead)
        self.hand()

    @rule(ahead=st.none() | st.integers(-3, 15))
    def hold(self, ahead: int | None) -> None:
        self.bound = None if ahead is None else self.handed + ahead
        self.window.hold(self.bound)

    @rule(ahead=st.integers(-3, 40))
    def purge(self, ahead: int) -> None:
        self.window.purge(self.low + ahead)
        self.low = max(self.low, min(self.low + ahead, self.delivered))
        self.forget()

    @rule(pairs=PAIRS)
    def get(self, pairs: list[tuple[int, int]]) -> None:
        asked = near(self.low, pairs)
        assert flat(self.window.get(asked)) == {n: p for n, p in self.stored.items() if n in asked}

    @invariant()
    def same_state(self) -> None:
        window = self.window
        marks = (window.low, window.delivered, window.handed, window.high)
        assert marks == (self.low, self.delivered, self.handed, self.high)
        assert (window.duplicates, window.overflows) == (self.duplicates, self.overflows)
        assert window.held_at == self.bound
        span = range(self.handed + 1, self.high + 1)
        check_ranges(window.gaps, {seqno for seqno in span if self.absent(seqno)})
        assert flat(window.get(EVERYTHING)) == self.stored
        assert all(self.low < seqno <= self.low + self.capacity for seqno in self.stored)
        assert window.nbytes == kept_bytes(self.stored)

    @property
    def bottom(self) -> int:
        return self.low if self.keep else self.handed

    def absent(self, seqno: int) -> bool:
        return seqno not in self.stored and seqno not in self.skipped

    def model_put(self, run: Batch) -> None:
        new: set[int] = set()
        for seqno in range(run.first, run.last + 1):
            if seqno <= self.handed:
                self.duplicates += 1
            elif seqno > self.low + self.capacity:
                self.overflows += 1
            elif not self.absent(seqno):
                self.duplicates += 1
            else:
                new.add(seqno)
        self.high = max([self.high, *new])
        self.stored.update((n, p) for n, p in enumerate(run.payloads, run.first) if n in new)

    def model_hand(self) -> list[tuple[int, Payload | None]]:
        handed: list[tuple[int, Payload | None]] = []
        end = self.high if self.bound is None else min(self.high, self.bound)
        while self.handed < end and not self.absent(self.handed + 1):
            self.handed += 1
            handed.append((self.handed, self.stored.get(self.handed)))
        self.forget()
        return handed

    def model_deliver(self, up_to: int) -> None:
        self.delivered = max(self.delivered, min(up_to, self.handed))
        if not self.keep:
            self.low = self.delivered

    def forget(self) -> None:
        for seqno in [seqno for seqno in self.stored if seqno <= self.bottom]:
            del self.stored[seqno]


@given(st.permutations(range(1, 21)), OFFSETS, st.booleans(), st.integers(1, 5))
def test_whatever_the_order_of_arrival_all_is_handed_up_once_and_in_order(
    order: list[int], offset: int, keep: bool, length: int
) -> None:
    window = ReceiveWindow(25, offset, keep)
    got: list[int] = []
    for seqno in order:
        sizes = list(range(seqno, min(seqno + length, 21)))
        got += [seqno - offset for seqno, _ in singles(window.put(batch(offset + seqno, sizes)))]
        window.deliver(window.handed)
    assert got == list(range(1, 21))
    assert not window.gaps
    assert window.nbytes == (sum(range(1, 21)) if keep else 0)


def check_ranges(ranges: RangeSet, numbers: set[int]) -> None:
    """The set has these numbers, in as few ranges as there can be, and counts them right."""
    pairs = list(ranges.ranges())
    assert pairs == pairs_of(numbers)
    assert ranges.count == len(numbers)
    assert ranges.count_ranges == len(pairs)
    assert bool(ranges) == bool(numbers)
    if numbers:
        assert (ranges.first, ranges.last) == (min(numbers), max(numbers))


def pairs_of(numbers: set[int]) -> list[tuple[int, int]]:
    """The ranges of a set, found one number at a time."""
    firsts = sorted(n for n in numbers if n - 1 not in numbers)
    lasts = sorted(n for n in numbers if n + 1 not in numbers)
    return list(zip(firsts, lasts, strict=True))


def near(low: int, pairs: list[tuple[int, int]]) -> RangeSet:
    """Ranges around a mark, some of them below it."""
    start = max(0, low - 10)
    return RangeSet((start + first, start + first + length) for first, length in pairs)


def batch(first: int, sizes: list[int]) -> Batch:
    """Messages of these sizes, which tell their seqno as far as they have the room."""
    payloads = [(b"%020d" % seqno)[20 - size :] for seqno, size in enumerate(sizes, first)]
    return Batch(Address(1), payloads, sum(sizes), first=first)


def flat(runs: Sequence[Batch]) -> dict[int, Payload]:
    return {message.seqno: message.payload for run in runs for message in run}


def singles(runs: Sequence[Batch | Hole]) -> list[tuple[int, Payload | None]]:
    """Runs and holes taken apart, after a look at their form."""
    found: list[tuple[int, Payload | None]] = []
    for run in runs:
        assert run.first <= run.last
        if isinstance(run, Hole):
            found += [(seqno, None) for seqno in range(run.first, run.last + 1)]
        else:
            assert run.nbytes == sum(map(len, run.payloads))
            found += [(message.seqno, message.payload) for message in run]
    assert not any(isinstance(one, Hole) and isinstance(two, Hole) for one, two in pairwise(runs))
    return found


def kept_bytes(kept: dict[int, Payload]) -> int:
    return sum(map(len, kept.values()))


TestRanges = RangesAgainstASet.TestCase
TestChunks = ChunksAgainstASet.TestCase
TestSendWindow = SendWindowAgainstADict.TestCase
TestReceiveWindow = ReceiveWindowAgainstADict.TestCase
for case in (TestRanges, TestSendWindow, TestReceiveWindow):
    case.settings = settings(deadline=None, max_examples=100, stateful_step_count=50)
TestChunks.settings = settings(deadline=None, max_examples=40, stateful_step_count=40)
