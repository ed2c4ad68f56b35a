"""Digests: how far each sender's messages have arrived, at one member or over the whole group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ringcast.core.model.address import Address


class Marks(NamedTuple):
    """The three marks of one sender's window: purged, taken by the application, known to exist."""

    low: int
    delivered: int
    high: int


class Digest(Mapping[Address, Marks]):
    """Marks per sender. Never changes; `minimum` and `maximum` make new ones."""

    __slots__ = ("_marks",)

    def __init__(
        self, marks: Mapping[Address, Marks] | Iterable[tuple[Address, Marks]] = ()
    ) -> None:
        self._marks: dict[Address, Marks] = dict(marks)

    @staticmethod
    def minimum(digests: Iterable[Digest]) -> Digest:
        """What all members have: the lowest marks per sender; a sender that one lacks is left
        out."""
        all_of_them = list(digests)
        common = set(all_of_them[0]).intersection(*all_of_them[1:]) if all_of_them else set()
        return Digest(
            (
                sender,
                Marks(*map(min, zip(*(digest[sender] for digest in all_of_them), strict=True))),
            )
            for sender in sorted(common)
        )

    @staticmethod
    def maximum(digests: Iterable[Digest]) -> Digest:
        """The highest marks per sender that any member has."""
        highest: dict[Address, Marks] = {}
        for digest in digests:
            for sender, marks in digest.items():
                known = highest.get(sender, marks)
                highest[sender] = Marks(*map(max, zip(known, marks, strict=True)))
        return Digest(highest)

    def __getitem__(self, sender: Address) -> Marks:
        return self._marks[sender]

    def __iter__(self) -> Iterator[Address]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def __repr__(self) -> str:
        marks = (f"{sender}: {m.low}/{m.delivered}/{m.high}" for sender, m in self._marks.items())
        return f"Digest({', '.join(marks)})"
