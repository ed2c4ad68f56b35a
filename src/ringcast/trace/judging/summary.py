"""What the checks across members need of a history: a line for each member, view and sender.

However many messages there were, a summary has few lines. The checks in plain Python make it from
rows, and the audit on Spark from sums; how it is judged is the same for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
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


class PayloadSum(NamedTuple):
    """What some messages contain: the sum of their digests, and their size."""

    digest: int
    nbytes: int


class MemberList(tuple[int, ...]):
    """The members of a view, in their order, with a fast membership test."""

    _known: frozenset[int]

    def __contains__(self, member: object) -> bool:
        try:
            return member in self._known
        except AttributeError:
            self._known = frozenset(self)
            return member in self._known


@dataclass(frozen=True, slots=True)
class ReceiverProgress:
    """A member's part in a view: with whom, and how it ended."""

    members: tuple[int, ...]
    next: ViewKey | None
    """The view that the member went on to."""
    closed: bool

    @property
    def crashed(self) -> bool:
        """The trace just ends here."""
        return self.next is None and not self.closed


class Agreement(NamedTuple):
    """A majority has agreed on a view: what a member says about that."""

    before: ViewKey | None
    """The view agreed on before it."""
    left: tuple[int, ...]
    """The members that have left in order since then."""


@dataclass
class Summary:
    """The members of each view, what was sent, and how far each member got with it."""

    progress: dict[tuple[int, ViewKey], ReceiverProgress]
    sent: dict[Source, Range] = field(default_factory=dict)
    """What each sender sent in each view."""
    delivered: dict[Group, Range] = field(default_factory=dict)
    """What each member delivered, from where to where."""
    sent_sums: dict[Source, PayloadSum] = field(default_factory=dict)
    """Sums over the payloads; only where nothing else is wrong."""
    delivered_sums: dict[Group, PayloadSum] = field(default_factory=dict)
    """The same for what was delivered."""
    places: dict[Group, Hashable] = field(default_factory=dict)
    """Where each member delivered a sender's messages among those of all others: equal for equal
    places, however runs are cut. Only where nothing else is wrong, and places are known."""
    purged: dict[Source, int] = field(default_factory=dict)
    """Up to where each sender forgot its messages."""
    acked: dict[tuple[ViewKey, int, int], int] = field(default_factory=dict)
    """By view, sender and receiver, up to where the sender heard that its messages were there."""
    agreed: dict[tuple[int, ViewKey], Agreement] = field(default_factory=dict)
    """Which members know of which views that a majority has agreed on them."""
    reinstalled: list[tuple[int, ViewKey]] = field(default_factory=list)
    """Members that installed a view more than once, and which."""

    def misplaced(self, member: int, view: ViewKey, sender: int, *, sending: bool) -> str | None:
        """The cause why rows can't be where they are: the member or the sender is not there."""
        part = self.progress.get((member, view))
        if part is None and member in self.known_members.get(view, ()):
            return "unrecorded-view"
        if part is None:
            return "uninstalled-sending" if sending else "uninstalled"
        return None if sending or sender in part.members else "stranger"

    def is_ahead(self, member: int, view: ViewKey) -> bool:
        """Tell whether the member may not have taken the view yet.

        Its protocols send in a view from when they install it; the trace has the view from when the
        application takes it."""
        return (member, view) not in self.progress and view[0] > self.last_views.get(member, -1)

    def is_complete(self, view: ViewKey, sender: int) -> bool:
        """Tell whether the rows of what was sent are all there: not if the sender crashed."""
        part = self.progress.get((sender, view))
        return part is not None and not part.crashed

    def reached(self, member: int, view: ViewKey, sender: int) -> int | None:
        """The last message that a member delivered; the one before the first if none."""
        if reach := self.delivered.get((member, view, sender)):
            return reach.last
        begin = self.begins.get((view, sender))
        return None if begin is None else begin - 1

    def of_sender(self) -> Summary:
        """An empty summary with the same views, for the messages of one sender."""
        part = Summary(self.progress, agreed=self.agreed)
        # It is as large as all views, and the same for every sender.
        part.__dict__["known_members"] = self.known_members
        part.__dict__["last_views"] = self.last_views
        return part

    @cached_property
    def last_views(self) -> Mapping[int, int]:
        """The number of the last view that each member installed."""
        last = dict[int, int]()
        for member, (number, _) in self.progress:
            last[member] = max(number, last.get(member, number))
        return last

    @cached_property
    def known_members(self) -> Mapping[ViewKey, set[int]]:
        """The members of each view, as the members that installed it know them."""
        known = defaultdict[ViewKey, set[int]](set)
        for (_, view), part in self.progress.items():
            known[view].update(part.members)
        return known

    @cached_property
    def begins(self) -> Mapping[Source, int]:
        """Each sender's first message of a view, by its own rows, else by what was delivered."""
        begins: dict[Source, int] = {}
        for (_, view, sender), reach in self.delivered.items():
            begins[view, sender] = min(begins.get((view, sender), reach.first), reach.first)
        return begins | {source: reach.first for source, reach in self.sent.items()}

    @cached_property
    def extents(self) -> Mapping[Source, Range]:
        """Each sender's first message of a view, and the last that any member delivered there."""
        lasts: dict[Source, int] = {}
        for (_, view, sender), reach in self.delivered.items():
            lasts[view, sender] = max(lasts.get((view, sender), reach.last), reach.last)
        return {source: Range(self.begins[source], last) for source, last in lasts.items()}

    @cached_property
    def farthest(self) -> Mapping[tuple[ViewKey, ViewKey, int], int]:
        """How far those got with a sender who went on from a view to the same next one."""
        farthest: dict[tuple[ViewKey, ViewKey, int], int] = {}
        for (member, view, sender), reach in self.delivered.items():
            following = self.progress[member, view].next
            if following is not None:
                key = view, following, sender
                farthest[key] = max(farthest.get(key, reach.last), reach.last)
        return farthest

    @cached_property
    def senders(self) -> Mapping[ViewKey, list[int]]:
        """By view: the members that sent something in it, or were delivered there."""
        senders = defaultdict[ViewKey, list[int]](list)
        for view, sender in self.begins:
            senders[view].append(sender)
        return senders
