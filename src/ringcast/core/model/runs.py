"""Storage of batches by seqno: what a window keeps, as the runs in which it arrived.

Runs and not slots: a run goes in and out as it is, keeps what the wire said about it (its stamp,
its flags), and an idle window costs nothing. The bound is the window's, by arithmetic on its marks.

The runs lie in chunks of bounded size, so that a run in the middle moves a few hundred entries and
not all of them: a window of 65,536 messages with a loss every second message has as many runs.
"""

from __future__ import annotations

from bisect import bisect_right

from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet

CHUNK_RUNS = 512
"""Runs of a chunk that grows at its end; one that grows in the middle is split at twice that."""


class RunStore:
    """Disjoint batches in the order of their seqnos."""

    __slots__ = ("_firsts", "_heads", "_runs", "moved", "nbytes")

    def __init__(self) -> None:
        self._heads: list[int] = []
        """The first seqno of each chunk."""
        self._firsts: list[list[int]] = []
        """Per chunk: the first seqno of each run."""
        self._runs: list[list[Batch]] = []
        """Per chunk: the runs."""
        self.nbytes = 0
        """Bytes of all payloads that are kept."""
        self.moved = 0
        """How many entries made room for runs in the middle, in all."""

    def add(self, run: Batch) -> None:
        """Keep a run of one message or more; none of them is kept yet."""
        assert run.payloads
        self.nbytes += run.nbytes
        first = run.first
        if self._firsts:
            firsts = self._firsts[-1]
            if first < firsts[-1]:
                self._insert(run)
                return
            if len(firsts) < CHUNK_RUNS:
                firsts.append(first)
                self._runs[-1].append(run)
                return
        self._heads.append(first)
        self._firsts.append([first])
        self._runs.append([run])

    def _insert(self, run: Batch) -> None:
        chunk = max(0, bisect_right(self._heads, run.first) - 1)
        firsts, runs = self._firsts[chunk], self._runs[chunk]
        place = bisect_right(firsts, run.first)
        self.moved += len(firsts) - place
        firsts.insert(place, run.first)
        runs.insert(place, run)
        assert place == 0 or runs[place - 1].last < run.first
        assert place + 1 == len(runs) or run.last < firsts[place + 1]
        self._heads[chunk] = firsts[0]
        if len(firsts) > 2 * CHUNK_RUNS:
            self.moved += CHUNK_RUNS + len(self._heads) - chunk
            self._heads.insert(chunk + 1, firsts[CHUNK_RUNS])
            self._firsts.insert(chunk + 1, firsts[CHUNK_RUNS:])
            self._runs.insert(chunk + 1, runs[CHUNK_RUNS:])
            del firsts[CHUNK_RUNS:], runs[CHUNK_RUNS:]

    def get(self, first: int, last: int) -> list[Batch]:
        """The kept runs within first to last, cut to it."""
        found: list[Batch] = []
        begin, end = bisect_right(self._heads, first) - 1, bisect_right(self._heads, last)
        for chunk in range(max(0, begin), end):
            firsts = self._firsts[chunk]
            place = max(0, bisect_right(firsts, first) - 1)
            for run in self._runs[chunk][place : bisect_right(firsts, last)]:
                if run.last >= first:
                    found.append(run.part(max(run.first, first), min(run.last, last)))
        return found

    def get_all(self, ranges: RangeSet) -> list[Batch]:
        """The kept runs within the ranges, cut to them."""
        return [run for first, last in ranges for run in self.get(first, last)]

    def purge(self, up_to: int) -> None:
        """Forget everything at or below; of a run that reaches further the rest is kept."""
        heads = self._heads
        if not heads or heads[0] > up_to:
            return
        if len(heads) > 1 and heads[1] <= up_to:
            self._purge_chunks(bisect_right(heads, up_to) - 1)
        runs, firsts = self._runs[0], self._firsts[0]
        count = bisect_right(firsts, up_to)
        last = runs[count - 1]
        self.nbytes -= last.nbytes if count == 1 else sum([run.nbytes for run in runs[:count]])
        end = last.last
        if end > up_to:
            count -= 1
            rest = runs[count] = last.part(up_to + 1, end)
            firsts[count] = rest.first
            self.nbytes += rest.nbytes
        if count == len(runs):
            del heads[0], self._firsts[0], self._runs[0]
        else:
            del runs[:count], firsts[:count]
            heads[0] = firsts[0]
        assert not heads or heads[0] > up_to
        assert len(heads) == len(self._runs)

    def _purge_chunks(self, count: int) -> None:
        """Forget the first chunks. Runs are disjoint: all of a chunk lies below the next head."""
        for runs in self._runs[:count]:
            self.nbytes -= sum([run.nbytes for run in runs])
        del self._heads[:count], self._firsts[:count], self._runs[:count]

    def clear(self) -> None:
        """Forget everything."""
        self._heads.clear()
        self._firsts.clear()
        self._runs.clear()
        self.nbytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._runs))
