"""What the checks across members need of a history: a line for each member, view and sender.

However many messages there were, a summary has few lines. The checks in plain Python make it from
rows, and the audit on Spark from sums; how it is judged is the same for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

ViewKey = tuple[int, int]
"""A view: its number, and who made it."""

Source = tuple[ViewKey, int]
"""A sender in a view."""

Group = tuple[int, ViewKey, int]
"""What is looked at on its own: member, view, sender."""


class Range(NamedTuple):
    """Messages first to last."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stand:
    """A member's part in a view: with whom, and how it ended."""

    members: tuple[int, ...]
    next: ViewKey | None
    """The view that the member went on to."""
    closed: bool

    @property
    def crashed(self) -> bool:
        """The trace just ends here."""
        return self.next is None and not self.closed


@dataclass
class Summary:
    """Who was where, what was sent, and how far everybody got with it."""

    stands: dict[tuple[int, ViewKey], Stand]
    sent: dict[Source, Range] = field(default_factory=dict)
    """What each sender sent in each view."""
    delivered: dict[Group, Range] = field(default_factory=dict)
    """What each member delivered, from where to where."""
    sent_digests: dict[Source, int] = field(default_factory=dict)
    """Sums over the payloads; only where nothing else is wrong."""
    digests: dict[Group, int] = field(default_factory=dict)
    """The same for what was delivered."""
    purged: dict[Source, int] = field(default_factory=dict)
    """Up to where each sender forgot its messages."""
    acked: dict[tuple[ViewKey, int, int], int] = field(default_factory=dict)
    """By view, sender and receiver, up to where the sender heard that its messages were there."""
    reinstalled: list[tuple[int, ViewKey]] = field(default_factory=list)
    """Who installed which view more than once."""

    def misplaced(self, member: int, view: ViewKey, sender: int, *, sending: bool) -> str | None:
        """Why rows can't be where they are: the member is not there, or the sender isn't."""
        stand = self.stands.get((member, view))
        if stand is None:
            return "uninstalled-sending" if sending else "uninstalled"
        return None if sending or sender in stand.members else "stranger"

    def is_complete(self, view: ViewKey, sender: int) -> bool:
        """Tell whether the rows of what was sent are all there: not if the sender crashed."""
        stand = self.stands.get((sender, view))
        return stand is not None and not stand.crashed

    def reached(self, member: int, view: ViewKey, sender: int) -> int | None:
        """The last message that a member delivered; the one before the first if none."""
        if reach := self.delivered.get((member, view, sender)):
            return reach.last
        begin = self.begins.get((view, sender))
        return None if begin is None else begin - 1

    @cached_property
    def begins(self) -> Mapping[Source, int]:
        """Each sender's first message of a view, by its own rows, else by what was delivered."""
        begins: dict[Source, int] = {}
        for (_, view, sender), reach in self.delivered.items():
            begins[view, sender] = min(begins.get((view, sender), reach.first), reach.first)
        return begins | {source: reach.first for source, reach in self.sent.items()}

    @cached_property
    def extents(self) -> Mapping[Source, Range]:
        """Each sender's first message of a view, and the last that anybody delivered there."""
        lasts: dict[Source, int] = {}
        for (_, view, sender), reach in self.delivered.items():
            lasts[view, sender] = max(lasts.get((view, sender), reach.last), reach.last)
        return {source: Range(self.begins[source], last) for source, last in lasts.items()}

    @cached_property
    def farthest(self) -> Mapping[tuple[ViewKey, ViewKey, int], int]:
        """How far those got with a sender who went on from a view to the same next one."""
        farthest: dict[tuple[ViewKey, ViewKey, int], int] = {}
        for (member, view, sender), reach in self.delivered.items():
            following = self.stands[member, view].next
            if following is not None:
                key = view, following, sender
                farthest[key] = max(farthest.get(key, reach.last), reach.last)
        return farthest

    @cached_property
    def senders(self) -> Mapping[ViewKey, list[int]]:
        """Who sent something in a view, or was delivered there."""
        senders = defaultdict[ViewKey, list[int]](list)
        for view, sender in self.begins:
            senders[view].append(sender)
        return senders
