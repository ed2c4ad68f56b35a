"""What a stack promises: the guarantees by name and sentence, and those that settings give up.

The simulator, the audit and the documentation use this table; the checks excuse nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.spec import StackSpec

GAP, DUPLICATE, ORDER, LOST = "gap", "duplicate", "order", "lost-trace-row"
HEAD, TAIL, WRONG_VIEW = "missing-head", "missing-tail", "wrong-view"
EARLY_PURGE, DISAGREEMENT = "early-purge", "disagreement"
WINDOW_BOUND, SKIPPED = "window-bound", "skipped"
UNREADABLE, CLOCKS = "unreadable-row", "clocks"
TOTAL_ORDER = "total-order"
MAJORITY = "majority"

GUARANTEES = {
    UNREADABLE: "every row of the trace has a known kind, its times and its numbers",
    CLOCKS: "a message is delivered after it was sent, by clocks that agree within --skew",
    GAP: "within a view a member delivers a sender's messages without holes",
    DUPLICATE: "a message is delivered once, and a number is given out once",
    ORDER: "a sender's messages are delivered in the order in which it sent them",
    LOST: "the trace is whole: what members counted is what they wrote down",
    HEAD: "deliveries begin with the sender's first message of the view",
    TAIL: "what was sent in a view is delivered in it by all who see it end",
    WRONG_VIEW: "a message is delivered in the view it was sent in, by its members only",
    EARLY_PURGE: "a sender forgets a message only when all members of the view have delivered it",
    DISAGREEMENT: "members that go on together have delivered the same, and know the same members",
    WINDOW_BOUND: "low ≤ delivered ≤ high ≤ low + capacity",
    SKIPPED: "messages are given up only under the rules for large messages",
    TOTAL_ORDER: "members that go on together deliver the messages of all senders in one order",
    MAJORITY: "views that majorities agree on are one chain, and messages are sent in no others",
}
"""Each guarantee by name, and the sentence that it promises."""


class Promises(NamedTuple):
    """The guarantees that depend on settings."""

    agreement: bool = True
    """Survivors deliver the same messages of a crashed sender (`disagreement`). Given up where
    receivers free what they have delivered: by `NakAck4.retain = false` and by
    `NakAck3.discard_delivered = true`."""
    complete: bool = True
    """Nothing is skipped (`skipped`, `missing-tail`, `early-purge`). Given up by `LargeMessages`
    and by `SlowMembers.policy = "skip"`."""
    loopback: bool = True
    """A member's own messages come back to its application. Given up by `loopback = false`."""
    total_order: bool = False
    """Members that go on together deliver everything in one order (`total-order`). Given by
    `Sequencer`."""
    majority: bool = False
    """Messages are sent only in views that a majority has agreed on (`majority`). Given by
    `Majority`."""


def promises_of(spec: StackSpec) -> Promises:
    """The promises of a stack with these settings."""
    multicast = spec["multicast"].values()
    skips = "slow" in spec and spec["slow"].values()["policy"] == "skip"
    keeps = multicast.get("retain", True) and not multicast.get("discard_delivered", False)
    return Promises(
        agreement=bool(keeps),
        complete="large" not in spec and not skips,
        loopback=bool(multicast["loopback"]),
        total_order="order" in spec,
        majority="quorum" in spec,
    )
