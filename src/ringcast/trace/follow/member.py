"""Follows one member from view to view: where it went, and which numbers it had by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ringcast.trace.follow.part import MemberPart
from ringcast.trace.follow.sums import span
from ringcast.trace.judging.summary import Range, ViewKey
from ringcast.trace.schema import signed

Message = tuple[ViewKey, dict[str, Any]]
"""What is told about a member's part in a view, as plain data: `part`, `passed` or `before`."""


@dataclass
class Reaches:
    """From where to where a member sent, and delivered by sender."""

    sent: Range | None = None
    delivered: dict[int, Range] = field(default_factory=dict)

    def extend(self, other: Reaches) -> None:
        """Add what was sent and delivered elsewhere."""
        self.sent = span(self.sent, other.sent)
        for sender, reach in other.delivered.items():
            self.delivered[sender] = span(self.delivered.get(sender), reach) or reach

    def plain(self) -> list[Any]:
        """As plain data."""
        return [self.sent, [*self.delivered.items()]]

    @classmethod
    def of(cls, plain: list[Any]) -> Reaches:
        """From plain data."""
        sent, delivered = plain
        reaches = {sender: Range(*reach) for sender, reach in delivered}
        return cls(Range(*sent) if sent else None, reaches)


class MemberTrack:
    """One member. Its state is as large as its view has senders."""

    def __init__(self, member: int) -> None:
        self.member = member
        self._view: ViewKey | None = None
        """The view that it installed last."""
        self._here = Reaches()
        self._before = Reaches()
        """What it sent and delivered in earlier views, of the senders that are still there."""

    def update(self, parts: Iterable[MemberPart]) -> Iterator[Message]:
        """Take what is new of this member, one part per view; say what each view has to know."""
        for part in sorted(parts, key=_order):
            yield part.view, {"part": part.plain()}
            if part.installs and self._is_later(part.view):
                yield from self._enter(part)
            reaches = Reaches(
                part.sent.reach if part.sent else None,
                {sender: sums.reach for sender, sums in part.delivered.items()},
            )
            if part.view == self._view:
                self._here.extend(reaches)
            elif not self._is_later(part.view):
                self._before.extend(reaches)

    def _enter(self, part: MemberPart) -> Iterator[Message]:
        at, members, _ = part.installs[0]
        if self._view is not None:
            yield self._view, {"passed": [*part.view, at, members]}
            self._before.extend(self._here)
        self._view, self._here = part.view, Reaches()
        kept = {s: r for s, r in self._before.delivered.items() if s in members}
        self._before.delivered = kept
        if self._before.sent or kept:
            yield part.view, {"before": self._before.plain()}

    def _is_later(self, view: ViewKey) -> bool:
        return self._view is None or (view[0], signed(view[1])) > (
            self._view[0],
            signed(self._view[1]),
        )

    def plain(self) -> list[Any]:
        """As plain data, for JSON."""
        return [self._view, self._here.plain(), self._before.plain()]

    @classmethod
    def of(cls, member: int, plain: list[Any]) -> MemberTrack:
        """From plain data."""
        track = cls(member)
        view, here, before = plain
        track._view = None if view is None else (view[0], view[1])
        track._here, track._before = Reaches.of(here), Reaches.of(before)
        return track


def _order(part: MemberPart) -> tuple[int, int, int]:
    """The order in which a member goes through views."""
    at = part.installs[0].at if part.installs else 0
    return part.view[0], at, signed(part.view[1])
