"""The tracer: it hears what the protocols do, at the cost of one call per run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import ViewId


class Tracer(Protocol):
    """What a tracer is told about the group's messages. It must not change anything."""

    def given(self, payloads: Sequence[Payload]) -> None:
        """The application has given the stack these messages for the group; layers may change them
        before they are sent."""
        ...

    def sent(self, view: ViewId, run: Batch) -> None:
        """This member has sent a run."""
        ...

    def absorbed(self, run: Batch) -> None:
        """A run has arrived that the application is not given as such: fragments of a message. It
        counts as delivered when all before it is."""
        ...

    def requested(self, origin: Address, ranges: RangeSet) -> None:
        """This member has asked for messages that it lacks."""
        ...

    def resent(self, run: Batch, to: Address | None) -> None:
        """This member has sent a run again, to a member that asked or to all."""
        ...

    def acked(self, member: Address, up_to: int) -> None:
        """A member has acked this member's messages up to here."""
        ...

    def purged(self, view: ViewId, low: int, delivered: int, high: int) -> None:
        """This member has freed its messages up to `low`, since all members have them."""
        ...

    def agreed(self, view: ViewId, before: ViewId, left: Collection[Address]) -> None:
        """This member knows that a majority has agreed on a view; before that it was the view
        `before`, without those that have left in order."""
        ...
