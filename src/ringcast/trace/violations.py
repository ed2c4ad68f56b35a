"""The guarantees by name, every way to break one, and the sentence that tells it.

One table serves the checks in plain Python and the audit on Spark, so that the same history is
told in the same words by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ringcast.trace.schema import unsigned

GAP, DUPLICATE, ORDER, LOST = "gap", "duplicate", "order", "lost-trace-row"
HEAD, TAIL, WRONG_VIEW = "missing-head", "missing-tail", "wrong-view"
EARLY_PURGE, DISAGREEMENT = "early-purge", "disagreement"
WINDOW_BOUND, SKIPPED = "window-bound", "skipped"

GUARANTEES = {
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
}
"""Each guarantee, and what it promises."""


class Cause(NamedTuple):
    """One way to break a guarantee; `{messages}` in its sentence stands for the range."""

    guarantee: str
    sentence: str


CAUSES = {
    "gap": Cause(GAP, "{messages} passed over: later ones were delivered"),
    "repeated": Cause(DUPLICATE, "{messages} delivered twice"),
    "numbered-twice": Cause(DUPLICATE, "{messages} sent twice under the same number"),
    "repeated-later": Cause(DUPLICATE, "{messages} delivered in an earlier view as well"),
    "numbered-again": Cause(DUPLICATE, "{messages} sent under numbers of an earlier view"),
    "late": Cause(ORDER, "{messages} delivered behind later ones"),
    "misplaced": Cause(ORDER, "{messages} counted at a place that another delivery has"),
    "unrecorded": Cause(LOST, "{messages} counted as delivered, but without a row"),
    "unrecorded-sending": Cause(LOST, "{messages} left out of the sender's rows, between others"),
    "unsent": Cause(LOST, "{messages} delivered, but no row of the sender says that it sent them"),
    "head": Cause(HEAD, "{messages} not delivered: deliveries of this view begin later"),
    "tail": Cause(TAIL, "{messages} not delivered, although the member saw the end of the view"),
    "other-view": Cause(WRONG_VIEW, "{messages} delivered here, but sent in another view"),
    "stranger": Cause(WRONG_VIEW, "{messages} from a sender that is not in the view"),
    "uninstalled": Cause(WRONG_VIEW, "{messages} delivered in a view that was not installed"),
    "uninstalled-sending": Cause(WRONG_VIEW, "{messages} sent in a view that was not installed"),
    "outsider": Cause(WRONG_VIEW, "installed a view that the member is not in"),
    "purged-before": Cause(EARLY_PURGE, "{messages} purged before {peer} delivered them"),
    "purged-undelivered": Cause(EARLY_PURGE, "{messages} purged, and {peer} never delivered them"),
    "acked-undelivered": Cause(EARLY_PURGE, "{messages} acked by {peer}, but never delivered"),
    "survivors": Cause(DISAGREEMENT, "{messages} not delivered, but by others that went on along"),
    "contents": Cause(DISAGREEMENT, "{messages} delivered with other contents than elsewhere"),
    "membership": Cause(DISAGREEMENT, "installed the view with other members than its coordinator"),
    "reinstalled": Cause(DISAGREEMENT, "installed the view a second time"),
    "marks": Cause(WINDOW_BOUND, "window marks out of order, with {messages} inside"),
    "capacity": Cause(WINDOW_BOUND, "{messages} outstanding, more than the window may hold"),
    "skip-forbidden": Cause(SKIPPED, "{messages} given up, where no rule allows it"),
    "skip-own": Cause(SKIPPED, "{messages} given up by the very member that sent them"),
}
"""Every cause. The audit and the checks find the same ones, whatever else they share."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A guarantee that was broken: by whom, in which view, over which messages."""

    cause: str
    """A key of CAUSES."""
    member: int
    view: int
    view_by: int
    sender: int | None = None
    peer: int | None = None
    """Of early purges: who had not delivered what `member` forgot."""
    first: int | None = None
    last: int | None = None

    @property
    def guarantee(self) -> str:
        """The name of the guarantee: a key of GUARANTEES."""
        return CAUSES[self.cause].guarantee

    @property
    def what(self) -> str:
        """The violation as a phrase; who and where stand in the other fields."""
        peer = "" if self.peer is None else f"{unsigned(self.peer):x}"
        return CAUSES[self.cause].sentence.format(messages=self.messages, peer=peer)

    def __str__(self) -> str:
        sender = "" if self.sender is None else f", sender {unsigned(self.sender):x}"
        return (
            f"{self.guarantee}: {self.what} (member {unsigned(self.member):x}, "
            f"view {self.view}@{unsigned(self.view_by):x}{sender})"
        )

    @property
    def messages(self) -> str:
        """The range in words."""
        if self.first == self.last:
            return f"message {self.first}"
        return f"messages {self.first} to {self.last}"
