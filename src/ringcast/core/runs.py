"""Storage of batches by seqno: what a window keeps, as the runs in which it came.

Runs and not slots: a run goes in and out as it is, keeps what the wire said about it (its stamp,
its flags), and an idle window costs nothing. The bound is the window's, by arithmetic on its marks.
"""

from __future__ import annotations

from bisect import bisect_right

from ringcast.core.batch import Batch
from ringcast.core.ranges import RangeSet


class RunStore:
    """Disjoint batches in the order of their seqnos."""

    __slots__ = ("_firsts", "_runs", "nbytes")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[Batch] = []
        self.nbytes = 0
        """Bytes of all payloads that are kept."""

    def add(self, run: Batch) -> None:
        """Keep a run of one message or more; none of them is kept yet."""
        assert run.payloads
        firsts = self._firsts
        self.nbytes += run.nbytes
        if not firsts or run.first > firsts[-1]:
            firsts.append(run.first)
            self._runs.append(run)
            return
        place = bisect_right(firsts, run.first)
        firsts.insert(place, run.first)
        self._runs.insert(place, run)

    def get(self, first: int, last: int) -> list[Batch]:
        """The kept runs within first to last, cut to it."""
        found: list[Batch] = []
        place = max(0, bisect_right(self._firsts, first) - 1)
        for run in self._runs[place : bisect_right(self._firsts, last)]:
            begin, end = max(run.first, first), min(run.last, last)
            if begin <= end:
                found.append(run.part(begin, end))
        return found

    def get_all(self, ranges: RangeSet) -> list[Batch]:
        """The kept runs within the ranges, cut to them."""
        return [run for first, last in ranges for run in self.get(first, last)]

    def purge(self, up_to: int) -> None:
        """Forget everything at or below; of a run that reaches further the rest is kept."""
        runs, firsts = self._runs, self._firsts
        count = bisect_right(firsts, up_to)
        if not count:
            return
        self.nbytes -= sum([run.nbytes for run in runs[:count]])
        last = runs[count - 1]
        if last.last > up_to:
            count -= 1
            rest = runs[count] = last.part(up_to + 1, last.last)
            firsts[count] = rest.first
            self.nbytes += rest.nbytes
        del runs[:count], firsts[:count]

    def clear(self) -> None:
        """Forget everything."""
        self._firsts.clear()
        self._runs.clear()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._runs)
