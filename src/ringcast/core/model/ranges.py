"""Sets of sequence numbers as ranges, so that a loss of a thousand messages is one entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain

from ringcast.errors import LocalError


class RangeSet:
    """An ordered set of integers, kept as disjoint closed ranges that do not touch each other.

    The firsts and the lasts lie in two parallel sorted lists: bisection finds a place, slices
    replace what is there, and a range of a million costs no more than a range of one. `add` and
    `discard` cost a bisection and the ranges that they touch; operations on whole sets are linear
    in ranges.
    """

    __slots__ = ("_count", "_firsts", "_lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._count = 0
        for first, last in ranges:
            self.add(first, last)

    def add(self, first: int, last: int) -> int:
        """Add the numbers from first to last; how many were new. LocalError if first > last."""
        _check(first, last)
        firsts, lasts = self._firsts, self._lasts
        if not lasts or first > lasts[-1] + 1:
            firsts.append(first)
            lasts.append(last)
            added = last - first + 1
        else:
            # Ranges that only touch the new one merge with it too, hence the one on either side.
            left, right = bisect_left(lasts, first - 1), bisect_right(firsts, last + 1)
            covered = _total(firsts, lasts, left, right)
            if left < right:
                first, last = min(first, firsts[left]), max(last, lasts[right - 1])
            firsts[left:right] = [first]
            lasts[left:right] = [last]
            added = last - first + 1 - covered
            assert left == 0 or lasts[left - 1] + 1 < first
            assert left + 1 == len(firsts) or last + 1 < firsts[left + 1]
        assert added >= 0
        self._count += added
        return added

    def discard(self, first: int, last: int) -> int:
        """Remove the numbers from first to last; how many were in. LocalError if first > last."""
        _check(first, last)
        firsts, lasts = self._firsts, self._lasts
        left, right = bisect_left(lasts, first), bisect_right(firsts, last)
        if left >= right:
            return 0
        removed = _total(firsts, lasts, left, right)
        head, tail = firsts[left], lasts[right - 1]
        rest_firsts: list[int] = []
        rest_lasts: list[int] = []
        if head < first:
            rest_firsts.append(head)
            rest_lasts.append(first - 1)
            removed -= first - head
        if tail > last:
            rest_firsts.append(last + 1)
            rest_lasts.append(tail)
            removed -= tail - last
        firsts[left:right] = rest_firsts
        lasts[left:right] = rest_lasts
        self._count -= removed
        assert removed > 0
        assert self._count >= 0
        assert (self._count > 0) == bool(firsts)
        return removed

    def clear(self) -> None:
        """Remove everything."""
        self._firsts.clear()
        self._lasts.clear()
        self._count = 0

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._lasts, number)
        return place < len(self._lasts) and self._firsts[place] <= number

    def covers(self, first: int, last: int) -> bool:
        """Whether all numbers from first to last are in the set."""
        place = bisect_left(self._lasts, last)
        return place < len(self._lasts) and self._firsts[place] <= first

    def range_at(self, number: int) -> tuple[int, int] | None:
        """The range that the number lies in; None if it is not in the set."""
        place = bisect_left(self._lasts, number)
        if place == len(self._lasts) or self._firsts[place] > number:
            return None
        return self._firsts[place], self._lasts[place]

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def count(self) -> int:
        """How many numbers are in the set, without a scan.

        There is no `len`: it would fail above the machine's word, and `list(ranges)`, which calls
        it, would allocate memory for every number instead of every range.
        """
        return self._count

    @property
    def count_ranges(self) -> int:
        """How many ranges the set consists of."""
        return len(self._firsts)

    @property
    def first(self) -> int:
        """The lowest number. Raises LocalError if the set is empty."""
        if not self._firsts:
            raise LocalError("An empty set has no first number: test its truth before you ask.")
        return self._firsts[0]

    @property
    def last(self) -> int:
        """The highest number. Raises LocalError if the set is empty."""
        if not self._lasts:
            raise LocalError("An empty set has no last number: test its truth before you ask.")
        return self._lasts[-1]

    def first_or(self, default: int) -> int:
        """The lowest number, or the default if the set is empty."""
        return self._firsts[0] if self._firsts else default

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The (first, last) pairs in rising order; do not change the set while you iterate."""
        return zip(self._firsts, self._lasts, strict=True)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self.ranges()

    def copy(self) -> RangeSet:
        """A set with the same numbers that shares nothing with this one."""
        return _assembled(self._firsts[:], self._lasts[:])

    def union(self, other: RangeSet) -> RangeSet:
        """The numbers that are in either set."""
        return RangeSet(sorted(chain(self.ranges(), other.ranges())))

    def intersection(self, other: RangeSet) -> RangeSet:
        """The numbers that are in both sets."""
        firsts: list[int] = []
        lasts: list[int] = []
        mine, theirs = 0, 0
        while mine < len(self._firsts) and theirs < len(other._firsts):
            my_last, their_last = self._lasts[mine], other._lasts[theirs]
            first = max(self._firsts[mine], other._firsts[theirs])
            last = min(my_last, their_last)
            if first <= last:
                firsts.append(first)
                lasts.append(last)
            if my_last < their_last:
                mine += 1
            else:
                theirs += 1
        return _assembled(firsts, lasts)

    def difference(self, other: RangeSet) -> RangeSet:
        """The numbers that are in this set and not in the other."""
        if not self or not other:
            return self.copy()
        return self.intersection(other._holes(self.first, self.last))

    def clip(self, low: int, high: int) -> RangeSet:
        """The numbers of this set from low to high, both included; none if low > high."""
        left, right = bisect_left(self._lasts, low), bisect_right(self._firsts, high)
        if low > high or left >= right:
            return RangeSet()
        firsts, lasts = self._firsts[left:right], self._lasts[left:right]
        firsts[0] = max(firsts[0], low)
        lasts[-1] = min(lasts[-1], high)
        return _assembled(firsts, lasts)

    def limited(self, max_ranges: int | None = None, max_numbers: int | None = None) -> RangeSet:
        """The lowest numbers, up to this many ranges and this many numbers; None is no limit."""
        end = len(self._firsts) if max_ranges is None else max(max_ranges, 0)
        head = _assembled(self._firsts[:end], self._lasts[:end])
        if max_numbers is None or head.count <= max_numbers:
            return head
        result = RangeSet()
        for first, last in head:
            room = max_numbers - result.count
            if room <= 0:
                break
            result.add(first, min(last, first + room - 1))
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._firsts == other._firsts and self._lasts == other._lasts

    __hash__ = None  # type: ignore[assignment]  # A set that changes cannot be a key.

    def __repr__(self) -> str:
        parts = (str(first) if first == last else f"{first}-{last}" for first, last in self)
        return "{" + ", ".join(parts) + "}"

    def _holes(self, low: int, high: int) -> RangeSet:
        """The numbers from low to high that are not in this set."""
        inside = self.clip(low, high)
        firsts = [low, *(last + 1 for last in inside._lasts)]
        lasts = [*(first - 1 for first in inside._firsts), high]
        pairs = zip(firsts, lasts, strict=True)
        return RangeSet((first, last) for first, last in pairs if first <= last)


def _assembled(firsts: list[int], lasts: list[int]) -> RangeSet:
    """A set that takes over lists of ranges that are sorted and do not touch each other."""
    assert len(firsts) == len(lasts)
    result = RangeSet()
    result._firsts, result._lasts = firsts, lasts
    result._count = _total(firsts, lasts, 0, len(firsts))
    return result


def _total(firsts: list[int], lasts: list[int], left: int, right: int) -> int:
    """How many numbers the ranges from left to before right have."""
    if right - left == 1:  # By far the most frequent case, and five times as fast this way.
        return lasts[left] - firsts[left] + 1
    return sum(lasts[left:right]) - sum(firsts[left:right]) + right - left


def _check(first: int, last: int) -> None:
    if first > last:
        raise LocalError(f"A range runs upwards: give {last}-{first} instead of {first}-{last}.")
