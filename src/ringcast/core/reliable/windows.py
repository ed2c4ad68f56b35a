"""The windows of a sender and of a receiver: what was sent, what came, and what is missing.

Everything is a range of seqnos. A run of messages goes in and out as one batch; a loss is one entry
in a set of gaps that every call keeps up to date, so no call scans for gaps. The marks:

    SendWindow      low ≤ delivered ≤ high ≤ low + capacity
                    acked by all    taken by the own application    last sent

    ReceiveWindow   low ≤ delivered ≤ handed ≤ high, and nothing is stored past low + capacity
                    purged    taken by the application    handed up to it    known to exist

Exactly `capacity` messages fit, low + 1 to low + capacity. A sender must not append more; a
receiver drops what does not fit and counts it. `handed` and `delivered` are two marks because a
message counts as delivered, and is acked, only when the application has taken it: a slow
application keeps `low` back, and so stops its senders.

A receive window is bounded in bytes as well, so that a sender that ignores its own bound cannot
fill the memory of others. What arrives behind a gap is dropped past twice `max_bytes`, and what
arrives in order past three times that, so that the message that closes the first gap has room. A
sender that keeps its bound meets neither.

Above `handed` each seqno up to `high` is stored, missing (in `gaps`) or skipped (it will never
arrive). While `handed` equals `high`, a run that continues it is handed up without a lookup.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from itertools import accumulate
from typing import NamedTuple

from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.runs import RunStore
from ringcast.core.stack.snapshot import ReceivedMarks, SentMarks
from ringcast.errors import ConfigError, LocalError

BYTES_SLACK = 1_000_000
"""Bytes that a receive window holds besides: one message may pass the sender's bound."""


class Hole(NamedTuple):
    """Messages first to last that will never arrive, in their place among the runs."""

    first: int
    last: int


class SendWindow:
    """What this member sent and others may still request, bounded by messages and by bytes."""

    __slots__ = ("_store", "capacity", "delivered", "high", "low", "max_bytes")

    def __init__(self, capacity: int, max_bytes: int | None = None, offset: int = 0) -> None:
        """Raises ConfigError if a bound is below 1."""
        _check_bounds(capacity, max_bytes)
        self._store = RunStore()
        self.capacity = capacity
        self.max_bytes = max_bytes
        self.low = self.delivered = self.high = offset

    def room(self) -> tuple[int, int]:
        """How many messages and bytes may be appended; a single message may pass the bytes."""
        messages = self.low + self.capacity - self.high
        if self.max_bytes is None:
            return messages, 1 << 62
        nbytes = self.max_bytes - self._store.nbytes
        return (messages if nbytes > 0 else 0), max(nbytes, 0)

    def append(self, run: Batch) -> None:
        """Number a run and keep it. LocalError if it is empty, or does not fit: ask `room` first.

        Bytes are not checked: the caller cuts runs by `room`, and one message may pass the bound.
        """
        count, high = len(run.payloads), self.high
        if not count:
            raise LocalError("An empty run takes no number: append runs of one message or more.")
        if count > self.low + self.capacity - high:
            raise LocalError(f"{count} messages do not fit: wait until room() has grown.")
        run.first = high + 1
        self.high = high + count
        self._store.add(run)
        assert self.low <= self.delivered <= self.high <= self.low + self.capacity

    def deliver(self, up_to: int) -> None:
        """The own application has taken everything up to here; frees nothing."""
        up_to = min(up_to, self.high)
        self.delivered = max(self.delivered, up_to)
        assert self.low <= self.delivered <= self.high

    def get(self, ranges: RangeSet) -> list[Batch]:
        """The runs that are still kept, cut to the ranges."""
        kept = ranges.clip(self.low + 1, self.high)
        return self._store.get_all(kept)

    def purge(self, up_to: int) -> int:
        """All receivers have everything up to here; how many messages that frees. Never goes back.

        `delivered` follows `low`, since a window towards one peer has no own application. Where
        there is one, it is one of the receivers: the caller passes no more than `delivered`.
        """
        up_to = min(up_to, self.high)
        if up_to <= self.low:
            return 0
        freed = up_to - self.low
        self.low = up_to
        self.delivered = max(self.delivered, up_to)
        self._store.purge(up_to)
        assert self.low <= self.delivered <= self.high
        return freed

    @property
    def outstanding(self) -> int:
        """How many messages some receivers may lack."""
        return self.high - self.low

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self._store.nbytes

    @property
    def message_bytes(self) -> float:
        """The size of the messages that are kept, on average."""
        return self._store.nbytes / max(1, self.high - self.low)

    def marks(self) -> SentMarks:
        """Where it stands."""
        nbytes = self.nbytes
        return SentMarks(low=self.low, delivered=self.delivered, high=self.high, nbytes=nbytes)


class ReceiveWindow:
    """What arrived from one sender: handed up in order, kept until purged when `keep` is set."""

    __slots__ = (
        "_bound",
        "_counters",
        "_max_ahead",
        "_max_in_order",
        "_reach",
        "_skipped",
        "_store",
        "_waiting",
        "_waiting_bytes",
        "capacity",
        "delivered",
        "duplicates",
        "gaps",
        "handed",
        "high",
        "holed",
        "keep",
        "low",
        "overflows",
        "skipped_count",
        "skipped_to",
    )

    def __init__(
        self,
        capacity: int,
        offset: int = 0,
        keep: bool = False,
        counters: Counter[str] | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """counters: where drops past the window are counted; max_bytes: what the sender may have
        outstanding. Raises ConfigError if a bound is below 1."""
        _check_bounds(capacity, max_bytes)
        nbytes = 1 << 60 if max_bytes is None else max_bytes
        self._max_ahead, self._max_in_order = 2 * nbytes + BYTES_SLACK, 3 * nbytes + BYTES_SLACK
        self._store = RunStore()
        self._waiting: deque[tuple[int, int]] = deque()
        """Unless kept: the last seqno and the bytes of each run that waits for the application."""
        self._waiting_bytes = 0
        self._skipped = RangeSet()
        self._bound: int | None = None
        self._reach = 0
        self._counters = Counter[str]() if counters is None else counters
        self.capacity = capacity
        self.keep = keep
        self.low = self.delivered = self.handed = self.high = offset
        self.gaps = RangeSet()
        """What is missing between `handed` and `high`. Read only."""
        self.skipped_to = offset
        """The end of the furthest skip, which may be past the window."""
        self.skipped_count = 0
        """Missing messages that will never arrive, until now."""
        self.holed = offset
        """The last message handed up as a hole: some messages before it were never here."""
        self.duplicates = 0
        self.overflows = 0

    def put(self, run: Batch) -> list[Batch | Hole]:
        """Take a run that arrived; returns what can be handed up now, in order.

        Duplicates and messages past low + capacity are dropped and counted.
        """
        handed, nbytes = self.handed, run.nbytes
        last = handed + len(run.payloads)
        if (
            run.first == handed + 1
            and handed == self.high
            and handed < last <= self.low + self.capacity
            and self._bound is None
            and self._store.nbytes + self._waiting_bytes + nbytes <= self._max_in_order
        ):
            self.handed = self.high = last
            if self.keep:
                self._store.add(run)
            else:
                self._waiting.append((last, nbytes))
                self._waiting_bytes += nbytes
            return [run]
        self._store_new(run)
        return self.hand()

    def hand(self) -> list[Batch | Hole]:
        """What can be handed up now: everything before the first gap and up to the bound of
        `hold`."""
        ready = self.gaps.first - 1 if self.gaps else self.high
        if self._bound is not None:
            ready = min(ready, self._bound)
        first = self.handed + 1
        if ready < first:
            return []
        runs: list[Batch | Hole] = list(self._store.get(first, ready))
        self.handed = ready
        if not self.keep:
            before = self._store.nbytes
            self._store.purge(ready)
            self._waiting.append((ready, before - self._store.nbytes))
            self._waiting_bytes += before - self._store.nbytes
        if self._skipped and self._skipped.first <= ready:
            holes = self._skipped.clip(first, ready)
            self._skipped.discard(first, ready)
            self.holed = holes.last
            runs.extend(Hole(*hole) for hole in holes)
            runs.sort(key=lambda item: item.first)
        assert self.low <= self.delivered <= self.handed <= self.high
        assert runs[0].first == first
        return runs

    @property
    def end(self) -> int:
        """The last seqno that is stored."""
        return max(self.low + self.capacity, self._reach)

    def reach(self, up_to: int) -> None:
        """Store messages up to here even past the window, until `low` has caught up.

        For the last messages of a view: the members that could move `low` may be gone. The sender
        had room for them, so no more than twice the capacity is kept.
        """
        self._reach = min(up_to, self.delivered + self.capacity)

    def hold(self, bound: int | None) -> None:
        """Hand up nothing above this seqno; None lifts it. What lies above is stored while it
        fits."""
        self._bound = bound

    @property
    def held_at(self) -> int | None:
        """The bound that `hold` has set."""
        return self._bound

    def deliver(self, up_to: int) -> None:
        """The application has taken everything up to here, which was handed up before."""
        up_to = min(up_to, self.handed)
        if up_to > self.delivered:
            self.delivered = up_to
            if not self.keep:
                self._free(up_to)
        assert self.low <= self.delivered <= self.handed

    def _free(self, up_to: int) -> None:
        """Count the runs up to here as taken."""
        self.low = up_to
        waiting = self._waiting
        while waiting and waiting[0][0] <= up_to:
            self._waiting_bytes -= waiting.popleft()[1]

    def take(self) -> list[Batch | Hole]:
        """Hand up and deliver at once."""
        runs = self.hand()
        self.deliver(self.handed)
        return runs

    def expect(self, high: int) -> None:
        """Messages up to here exist; those that do not fit the window are expected later."""
        high = min(high, self.end)
        if high > self.high:
            self.gaps.add(self.high + 1, high)
            self.high = high
            assert self.gaps.last == high

    def skip(self, up_to: int) -> None:
        """Missing messages up to here will never arrive, however far ahead of the window."""
        if up_to > self.high:
            self.gaps.add(self.high + 1, up_to)
            self.high = up_to
            self.skipped_to = up_to
        self.skip_within(self.handed + 1, up_to)
        assert self.gaps.first_or(up_to + 1) > up_to

    def skip_within(self, first: int, last: int) -> int:
        """Missing messages from first to last will never arrive; how many are missing there."""
        lost = self.gaps.clip(first, last)
        for begin, end in lost.ranges():
            self.gaps.discard(begin, end)
            self._skipped.add(begin, end)
        self.skipped_count += lost.count
        return lost.count

    def get(self, ranges: RangeSet) -> list[Batch]:
        """The runs that are stored or kept, cut to the ranges."""
        # Unless kept, what was handed up is freed; only the rest of its run may still be here.
        bottom = self.low if self.keep else self.handed
        return self._store.get_all(ranges.clip(bottom + 1, self.high))

    def purge(self, up_to: int) -> None:
        """All receivers have everything up to here: free it, as far as the own application has
        taken it."""
        up_to = min(up_to, self.delivered)
        if up_to > self.low:
            self.low = up_to
            self._store.purge(up_to)
            assert self.low <= self.delivered

    @property
    def ahead(self) -> int:
        """How many messages beyond `delivered` are here, or will never arrive."""
        return self.high - self.delivered - self.gaps.count

    @property
    def nbytes(self) -> int:
        """Bytes that are stored or kept."""
        return self._store.nbytes

    @property
    def held_bytes(self) -> int:
        """Bytes that are stored, kept, or wait for the application."""
        return self._store.nbytes + self._waiting_bytes

    def marks(self) -> ReceivedMarks:
        """Where it stands."""
        return ReceivedMarks(
            low=self.low,
            delivered=self.delivered,
            handed=self.handed,
            high=self.high,
            missing=self.gaps.count,
            nbytes=self.nbytes,
        )

    def _store_new(self, run: Batch) -> None:
        """Store the messages of a run that are neither here nor past the window."""
        bound = self._max_in_order if run.first <= self.handed + 1 else self._max_ahead
        if self.held_bytes + run.nbytes > bound:
            fits = _count_fitting(run, bound - self.held_bytes)
            self._count_overflow(len(run) - fits)
            if not fits:
                return
            run = run.part(run.first, run.first + fits - 1)
        # A skip may have taken `handed` past the window: up to there a message is a duplicate.
        end = max(self.end, self.handed)
        if run.first == self.high + 1 <= run.last <= end:  # It opens and closes no gap.
            self._store.add(run)
            self.high = run.last
            return
        first, last = max(run.first, self.handed + 1), min(run.last, end)
        if run.last > last:
            self._count_overflow(min(len(run), run.last - last))
        if first > last:
            self.duplicates += max(0, last - run.first + 1)
            return
        missing = self.gaps.clip(first, last)
        if last > self.high:
            begin = max(first, self.high + 1)
            if begin > self.high + 1:
                self.gaps.add(self.high + 1, begin - 1)
            missing.add(begin, last)
            self.high = last
        for begin, end in missing:
            self._store.add(run.part(begin, end))
            self.gaps.discard(begin, end)
        self.duplicates += last - run.first + 1 - missing.count
        assert self.low <= self.delivered <= self.handed < self.high
        assert self.gaps.first_or(self.high) > self.handed

    def _count_overflow(self, messages: int) -> None:
        self.overflows += messages
        self._counters["dropped_past_window"] += messages


def _count_fitting(run: Batch, nbytes: int) -> int:
    """How many of the first messages of a run take up to this many bytes."""
    return bisect_right(list(accumulate(map(len, run.payloads))), nbytes)


def _check_bounds(capacity: int, max_bytes: int | None) -> None:
    if capacity < 1:
        raise ConfigError(f"a window needs a capacity of at least 1, not {capacity}")
    if max_bytes is not None and max_bytes < 1:
        raise ConfigError(f"a window needs max_bytes of at least 1, not {max_bytes}")
