"""What members owe by the settings of their stack: an audit asks for that, and no more."""

from __future__ import annotations

from typing import NamedTuple

from ringcast.guarantees import promises_of
from ringcast.spec import StackSpec

WAITING = ("purged-before", "purged-undelivered", "acked-undelivered")
"""What can't be broken where nobody waits for acks."""


class Rules(NamedTuple):
    """What an audit takes for granted. The defaults are those of a stack that promises all."""

    capacity: int | None = None
    """The bound of windows, in messages (see `window_bound`); None checks the order of their marks
    only."""
    skips: bool = True
    """Whether messages may be given up: the stack has the layer for large ones, or skips slow
    members."""
    skew_us: int = 0
    """How far the members' clocks may be apart, in microseconds; matters to purges only."""
    waits: bool = True
    """Whether senders wait for all members before they forget a message: not where a slow member is
    skipped, or a large message has a timeout."""
    agrees: bool = True
    """Whether survivors agree on what a crashed sender sent last: not where receivers free what
    they have delivered (see `guarantees.Promises`)."""
    ordered: bool = False
    """Whether members deliver everything in one order: the stack has a `Sequencer`."""
    majority: bool = False
    """Whether members send only in views that a majority has agreed on: the stack has
    `Majority`."""

    def excuses(self, cause: str) -> bool:
        """Whether the stack does not promise what was broken in this way."""
        if cause == "survivors":
            return not self.agrees
        if cause == "another-order":
            return not self.ordered
        if cause == "unagreed":
            return not self.majority
        return cause in WAITING and not self.waits


def rules_of(spec: StackSpec, skew_us: int = 0) -> Rules:
    """The rules for a group with this stack."""
    promises = promises_of(spec)
    capacity = spec["multicast"].values()["capacity"]
    return Rules(
        capacity=capacity if isinstance(capacity, int) and promises.complete else None,
        skips=not promises.complete,
        skew_us=skew_us,
        waits=promises.complete,
        agrees=promises.agreement,
        ordered=promises.total_order,
        majority=promises.majority,
    )


def window_bound(capacity: int, member: int, sender: int) -> int:
    """How many messages a member's window for a sender may hold.

    Twice the capacity where they are another member's: at the end of a view its last messages are
    stored past the window, since nobody may be left who could move it.
    """
    return capacity if member == sender else 2 * capacity
