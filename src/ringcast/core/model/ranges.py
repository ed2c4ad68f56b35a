"""Sets of sequence numbers as ranges, so that a loss of a thousand messages is one entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ringcast.errors import LocalError

Chunk = tuple[list[int], list[int]]
"""The firsts and the lasts of some ranges."""
CHUNK_RANGES = 512
"""Ranges of a chunk that grows at its end; one that grows in the middle is split at twice that."""


class RangeSet:
    """An ordered set of integers, kept as disjoint closed ranges that do not touch each other.

    The firsts and the lasts lie in two parallel sorted lists: bisection finds a place, slices
    replace their content, and a range of a million costs no more than a range of one. `add` and
    `discard` cost a bisection and the ranges that they touch; operations on whole sets are linear
    in ranges. Long lists are cut into chunks, so that a range in the middle moves a few hundred
    entries and not all of them: a loss of every second message makes as many ranges.
    """

    __slots__ = ("_chunks", "_count", "_firsts", "_heads", "_lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        """Both of the last chunk, and of the only one in nearly all sets."""
        self._chunks: list[Chunk] | None = None
        """All chunks, none of them empty, and `_heads`, the first number of each; None for one."""
        self._heads: list[int]
        self._count = 0
        for first, last in ranges:
            self.add(first, last)

    def add(self, first: int, last: int) -> int:
        """Add the numbers from first to last; how many were new. LocalError if first > last."""
        _check(first, last)
        firsts, lasts = self._firsts, self._lasts
        if not lasts or first > lasts[-1] + 1:
            if len(firsts) >= CHUNK_RANGES:
                firsts, lasts = self._begin_chunk(first)
            firsts.append(first)
            lasts.append(last)
            added = last - first + 1
        else:
            # Ranges that only touch the new one merge with it too, hence the one on either side.
            place = 0
            if self._chunks is not None:
                place, (firsts, lasts) = self._joined(self._chunks, first - 1, last + 1)
            left, right = bisect_left(lasts, first - 1), bisect_right(firsts, last + 1)
            covered = _total(firsts, lasts, left, right)
            if left < right:
                first, last = min(first, firsts[left]), max(last, lasts[right - 1])
            firsts[left:right] = [first]
            lasts[left:right] = [last]
            added = last - first + 1 - covered
            assert left == 0 or lasts[left - 1] + 1 < first
            assert left + 1 == len(firsts) or last + 1 < firsts[left + 1]
            if self._chunks is not None or len(firsts) > 2 * CHUNK_RANGES:
                self._settle(place)
        assert added >= 0
        self._count += added
        return added

    def discard(self, first: int, last: int) -> int:
        """Remove the numbers from first to last; how many were in. LocalError if first > last."""
        _check(first, last)
        firsts, lasts, place = self._firsts, self._lasts, 0
        if self._chunks is not None:
            place, (firsts, lasts) = self._joined(self._chunks, first, last)
        left, right = bisect_left(lasts, first), bisect_right(firsts, last)
        if left >= right:
            if self._chunks is not None:  # Two that were joined for it may be one too large.
                self._settle(place)
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
        if self._chunks is not None:
            self._settle(place)
        self._count -= removed
        assert removed > 0
        assert self._count >= 0
        assert (self._count > 0) == bool(self._firsts)
        return removed

    def clear(self) -> None:
        """Remove everything."""
        self._firsts, self._lasts, self._chunks = [], [], None
        self._count = 0

    def __contains__(self, number: int) -> bool:
        firsts, lasts = self._chunk_at(number)
        place = bisect_left(lasts, number)
        return place < len(lasts) and firsts[place] <= number

    def covers(self, first: int, last: int) -> bool:
        """Whether all numbers from first to last are in the set."""
        firsts, lasts = self._chunk_at(last)
        place = bisect_left(lasts, last)
        return place < len(lasts) and firsts[place] <= first

    def range_at(self, number: int) -> tuple[int, int] | None:
        """The range that the number lies in; None if it is not in the set."""
        firsts, lasts = self._chunk_at(number)
        place = bisect_left(lasts, number)
        if place == len(lasts) or firsts[place] > number:
            return None
        return firsts[place], lasts[place]

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
        return sum(len(firsts) for firsts, _ in self._all_chunks())

    @property
    def first(self) -> int:
        """The lowest number. Raises LocalError if the set is empty."""
        if not self._firsts:
            raise LocalError("An empty set has no first number: test its truth before you ask.")
        return self._firsts[0] if self._chunks is None else self._heads[0]

    @property
    def last(self) -> int:
        """The highest number. Raises LocalError if the set is empty."""
        if not self._lasts:
            raise LocalError("An empty set has no last number: test its truth before you ask.")
        return self._lasts[-1]

    def first_or(self, default: int) -> int:
        """The lowest number, or the default if the set is empty."""
        return self.first if self._firsts else default

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The (first, last) pairs in rising order; do not change the set while you iterate."""
        if self._chunks is None:
            return zip(self._firsts, self._lasts, strict=True)
        return chain.from_iterable(zip(*chunk, strict=True) for chunk in self._chunks)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self.ranges()

    def copy(self) -> RangeSet:
        """A set with the same numbers that shares nothing with this one."""
        firsts, lasts = self._flat()
        return _assembled(firsts[:], lasts[:])

    def union(self, other: RangeSet) -> RangeSet:
        """The numbers that are in either set."""
        return RangeSet(sorted(chain(self.ranges(), other.ranges())))

    def intersection(self, other: RangeSet) -> RangeSet:
        """The numbers that are in both sets."""
        firsts: list[int] = []
        lasts: list[int] = []
        mine, theirs = 0, 0
        (my_firsts, my_lasts), (their_firsts, their_lasts) = self._flat(), other._flat()
        while mine < len(my_firsts) and theirs < len(their_firsts):
            my_last, their_last = my_lasts[mine], their_lasts[theirs]
            first = max(my_firsts[mine], their_firsts[theirs])
            last = min(my_last, their_last)
            if first <= last:
                firsts.append(first)
                lasts.append(last)
            if my_last < their_last:
                mine += 1
            else:
                theirs += 1
        both = _assembled(firsts, lasts)
        assert both._count <= min(self._count, other._count)
        return both

    def difference(self, other: RangeSet) -> RangeSet:
        """The numbers that are in this set and not in the other."""
        if not self or not other:
            return self.copy()
        return self.intersection(other._holes(self.first, self.last))

    def clip(self, low: int, high: int) -> RangeSet:
        """The numbers of this set from low to high, both included; none if low > high."""
        if low > high:
            return RangeSet()
        firsts: list[int] = []
        lasts: list[int] = []
        for chunk_firsts, chunk_lasts in self._chunks_within(low, high):
            left, right = bisect_left(chunk_lasts, low), bisect_right(chunk_firsts, high)
            firsts += chunk_firsts[left:right]
            lasts += chunk_lasts[left:right]
        if not firsts:
            return RangeSet()
        firsts[0] = max(firsts[0], low)
        lasts[-1] = min(lasts[-1], high)
        assert low <= firsts[0] <= lasts[-1] <= high
        return _assembled(firsts, lasts)

    def overlaps(self, low: int, high: int) -> bool:
        """Whether any number from low to high is in this set."""
        for firsts, lasts in self._chunks_within(low, high):
            at = bisect_left(lasts, low)
            if at < len(firsts):
                return firsts[at] <= high and low <= high
        return False

    def limited(self, max_ranges: int | None = None, max_numbers: int | None = None) -> RangeSet:
        """The lowest numbers, up to this many ranges and this many numbers; None means no limit."""
        pairs = list(self.ranges() if max_ranges is None else islice(self, max(max_ranges, 0)))
        head = _assembled([first for first, _ in pairs], [last for _, last in pairs])
        if max_numbers is None or head.count <= max_numbers:
            return head
        result = RangeSet()
        for first, last in head:
            room = max_numbers - result.count
            if room <= 0:
                break
            result.add(first, min(last, first + room - 1))
        assert result._count == max(max_numbers, 0)
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._count == other._count and self._flat() == other._flat()

    __hash__ = None  # type: ignore[assignment]  # A set that changes cannot be a key.

    def __repr__(self) -> str:
        parts = (str(first) if first == last else f"{first}-{last}" for first, last in self)
        return "{" + ", ".join(parts) + "}"

    # Chunks --------------------------------------------------------------------------------------

    def _all_chunks(self) -> list[Chunk]:
        return [(self._firsts, self._lasts)] if self._chunks is None else self._chunks

    def _flat(self) -> Chunk:
        """All firsts and all lasts; not to be changed."""
        if self._chunks is None:
            return self._firsts, self._lasts
        firsts = list(chain.from_iterable(chunk[0] for chunk in self._chunks))
        return firsts, list(chain.from_iterable(chunk[1] for chunk in self._chunks))

    def _chunk_at(self, number: int) -> Chunk:
        """The chunk that has the number if any has."""
        if self._chunks is None:
            return self._firsts, self._lasts
        return self._chunks[self._place(number)]

    def _place(self, number: int) -> int:
        """The last chunk that begins at the number or below it; the first one if none does."""
        return bisect_right(self._heads, number, 1) - 1

    def _chunks_within(self, low: int, high: int) -> list[Chunk]:
        """The chunks that may have numbers from low to high."""
        if self._chunks is None:
            return [(self._firsts, self._lasts)]
        return self._chunks[self._place(low) : self._place(high) + 1]

    def _begin_chunk(self, first: int) -> Chunk:
        """A new last chunk, for a range that begins here."""
        if self._chunks is None:
            self._chunks, self._heads = self._all_chunks(), [self._firsts[0]]
        chunk: Chunk = ([], [])
        self._firsts, self._lasts = chunk
        self._chunks.append(chunk)
        self._heads.append(first)
        return chunk

    def _joined(self, chunks: list[Chunk], low: int, high: int) -> tuple[int, Chunk]:
        """The place of the chunk with all ranges from low to high, and the chunk; several of them
        become one."""
        begin, end = self._place(low), self._place(high)
        firsts, lasts = chunks[begin]
        for more_firsts, more_lasts in chunks[begin + 1 : end + 1]:
            firsts += more_firsts
            lasts += more_lasts
        del chunks[begin + 1 : end + 1], self._heads[begin + 1 : end + 1]
        self._firsts, self._lasts = chunks[-1]
        return begin, chunks[begin]

    def _settle(self, place: int) -> None:
        """A chunk has changed: forget it when it is empty, split it when it is large."""
        chunks = self._all_chunks()
        firsts, lasts = chunks[place]
        if self._chunks is None:
            self._heads = [firsts[0]]
        if not firsts:
            del chunks[place], self._heads[place]
        elif len(firsts) > 2 * CHUNK_RANGES:
            cuts = range(0, len(firsts), CHUNK_RANGES)
            parts = [(firsts[i : i + CHUNK_RANGES], lasts[i : i + CHUNK_RANGES]) for i in cuts]
            chunks[place : place + 1] = parts
            self._heads[place : place + 1] = [part[0][0] for part in parts]
        else:
            self._heads[place] = firsts[0]
        self._firsts, self._lasts = chunks[-1] if chunks else ([], [])
        self._chunks = chunks if len(chunks) > 1 else None

    def _holes(self, low: int, high: int) -> RangeSet:
        """The numbers from low to high that are not in this set."""
        inner_firsts, inner_lasts = self.clip(low, high)._flat()
        firsts = [low, *(last + 1 for last in inner_lasts)]
        lasts = [*(first - 1 for first in inner_firsts), high]
        pairs = zip(firsts, lasts, strict=True)
        return RangeSet((first, last) for first, last in pairs if first <= last)


def _assembled(firsts: list[int], lasts: list[int]) -> RangeSet:
    """A set that takes over lists of ranges that are sorted and do not touch each other."""
    assert len(firsts) == len(lasts)
    count = _total(firsts, lasts, 0, len(firsts))
    result = RangeSet()
    result._firsts, result._lasts = firsts, lasts
    if len(firsts) > 2 * CHUNK_RANGES:
        result._settle(0)
    result._count = count
    return result


def _total(firsts: list[int], lasts: list[int], left: int, right: int) -> int:
    """How many numbers the ranges from left to before right have."""
    if right - left == 1:  # By far the most frequent case, and five times as fast this way.
        return lasts[left] - firsts[left] + 1
    return sum(lasts[left:right]) - sum(firsts[left:right]) + right - left


def _check(first: int, last: int) -> None:
    if first > last:
        raise LocalError(f"A range runs upwards: give {last}-{first} instead of {first}-{last}.")
