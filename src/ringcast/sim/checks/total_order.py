"""Total order, checked: members of a view deliver the messages to the group in one order.

What is compared are the sequences of messages that applications were given in a view, kept as
maximal runs of one sender: how a member cuts its batches does not matter.

- Two members that go from a view to the same next view have delivered the same sequence in it.
- Of two members that are in the view, one has delivered a prefix of what the other has.

Members that end a view in different ways (a crash, two sides of a partition) may differ in what
they delivered last, as they may in which messages they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.view import ViewId


class ViewDeliveries:
    """What one member delivered in one view, in order."""

    __slots__ = ("count", "name", "runs")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        """Messages."""
        self.runs: list[tuple[Address, int, int]] = []
        """Sender, first and last seqno."""

    def append(self, batch: Batch) -> None:
        """One more batch was delivered."""
        self.count += len(batch)
        if self.runs:
            sender, first, last = self.runs[-1]
            if sender == batch.sender and last + 1 == batch.first:
                self.runs[-1] = sender, first, batch.last
                return
        self.runs.append((batch.sender, batch.first, batch.last))


class TotalOrder:
    """What all members deliver, compared at the end of each view, and whenever asked."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._open: dict[tuple[ViewId, Address], ViewDeliveries] = {}
        """Of members that are in the view."""
        self._ended: dict[tuple[ViewId, ViewId], ViewDeliveries] = {}
        """By a view and the next one: what the first member that went on had delivered."""

    def delivered(self, name: str, member: Address, view: ViewId, batch: Batch) -> None:
        """An application was given a batch."""
        self._open.setdefault((view, member), ViewDeliveries(name)).append(batch)

    def passed(self, name: str, member: Address, old: ViewId, new: ViewId) -> None:
        """A member goes from one view to the next: did it deliver what others that do so did?"""
        mine = self._open.pop((old, member), None) or ViewDeliveries(name)
        self._compare(mine, self._ended.setdefault((old, new), mine), is_prefix_enough=False)

    def compare(self, view: ViewId, members: Iterable[Address]) -> None:
        """Compare the members that are in this view."""
        found = [self._open[view, member] for member in members if (view, member) in self._open]
        longest = max(found, key=lambda one: one.count, default=None)
        for one in found:
            if longest is not None:
                self._compare(one, longest, is_prefix_enough=True)

    def forget(self, view: ViewId) -> None:
        """No member is in this view any more."""
        for key in [key for key in self._open if key[0] == view]:
            del self._open[key]
        for passage in [passage for passage in self._ended if passage[0] == view]:
            del self._ended[passage]

    def _compare(self, one: ViewDeliveries, other: ViewDeliveries, is_prefix_enough: bool) -> None:
        if one.runs == other.runs:
            return
        for place, (mine, theirs) in enumerate(zip_longest(one.runs, other.runs)):
            if mine == theirs:
                continue
            at_end = place == len(one.runs) - 1 or mine is None
            same = mine is None or (theirs is not None and mine[:2] == theirs[:2])
            if is_prefix_enough and at_end and same and (mine is None or mine[2] <= theirs[2]):
                return
            self._report(
                one.name,
                f"delivered {_text(mine)} after {place} runs, where {other.name} delivered"
                f" {_text(theirs)}",
            )
            return


def _text(run: tuple[Address, int, int] | None) -> str:
    return "nothing" if run is None else f"messages {run[1]}-{run[2]} of {run[0]}"
