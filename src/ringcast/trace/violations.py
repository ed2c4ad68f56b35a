"""Every way to break a guarantee, and the sentence that tells it.

One table serves the checks in plain Python and the audit on Spark, so that the same history is
told in the same words by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ringcast.guarantees import (
    CLOCKS,
    DISAGREEMENT,
    DUPLICATE,
    EARLY_PURGE,
    GAP,
    GUARANTEES,
    HEAD,
    LOST,
    MAJORITY,
    ORDER,
    SKIPPED,
    TAIL,
    TOTAL_ORDER,
    UNREADABLE,
    WINDOW_BOUND,
    WRONG_VIEW,
)
from ringcast.trace.schema import signed, unsigned

__all__ = ["CAUSES", "GUARANTEES", "Cause", "Violation"]


class Cause(NamedTuple):
    """One way to break a guarantee; `{messages}` in its sentence stands for the range."""

    guarantee: str
    sentence: str


CAUSES = {
    "unknown-kind": Cause(UNREADABLE, "rows of a kind that this version does not know"),
    "malformed": Cause(UNREADABLE, "rows with a null or an impossible number where one is needed"),
    "others-row": Cause(UNREADABLE, "rows about own messages that name another sender"),
    "reinstalled": Cause(DISAGREEMENT, "installed the view a second time"),
    "membership": Cause(DISAGREEMENT, "installed the view with other members than its coordinator"),
    "outsider": Cause(WRONG_VIEW, "installed a view that the member is not in"),
    "unrecorded-view": Cause(LOST, "has rows of the view, but none that says it installed it"),
    "before-sent": Cause(CLOCKS, "{messages} delivered before they were sent: set --skew"),
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
    "purged-before": Cause(EARLY_PURGE, "{messages} purged before {peer} delivered them"),
    "purged-undelivered": Cause(EARLY_PURGE, "{messages} purged, and {peer} never delivered them"),
    "acked-undelivered": Cause(EARLY_PURGE, "{messages} acked by {peer}, but never delivered"),
    "survivors": Cause(DISAGREEMENT, "{messages} not delivered, but by others that went on along"),
    "contents": Cause(DISAGREEMENT, "{messages} delivered with other contents than elsewhere"),
    "sizes": Cause(DISAGREEMENT, "{messages} delivered with other sizes than elsewhere"),
    "marks": Cause(WINDOW_BOUND, "window marks out of order, with {messages} inside"),
    "capacity": Cause(WINDOW_BOUND, "{messages} outstanding, more than the window may hold"),
    "skip-forbidden": Cause(SKIPPED, "{messages} given up, where no rule allows it"),
    "skip-own": Cause(SKIPPED, "{messages} given up by the very member that sent them"),
    "another-order": Cause(TOTAL_ORDER, "{messages} delivered in another order than elsewhere"),
    "two-majorities": Cause(MAJORITY, "agreed on without a majority of the agreed view before it"),
    "unagreed": Cause(MAJORITY, "{messages} sent in a view that no majority had agreed on"),
}
"""Every cause. Those that explain others come first. The audit and the checks find the same ones,
whatever else they share."""


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
    def order(self) -> tuple[int, ...]:
        """The place in a list: causes that explain others first, then by view and member."""
        place = _place(self.cause, len(CAUSES)), self.view, signed(self.view_by)
        return *place, signed(self.member), signed(self.sender or 0), self.first or 0

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


@lru_cache
def _place(cause: str, known: int) -> int:
    """The place of a cause among the `known` ones."""
    return list(CAUSES).index(cause)
