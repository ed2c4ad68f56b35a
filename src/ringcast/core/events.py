"""Events: what an application is told, in the order in which it happened at this member."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.view import View


@dataclass(frozen=True, slots=True)
class ViewChange:
    """A new view is installed; all messages of the former one were delivered before this."""

    view: View
    joined: tuple[Address, ...]
    left: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """Partitions came together: the view that follows has the members of all `subgroups`."""

    view: View
    subgroups: tuple[tuple[Address, ...], ...]


@dataclass(frozen=True, slots=True)
class Suspected:
    """A member is suspected to have crashed; it is still in the view."""

    member: Address


@dataclass(frozen=True, slots=True)
class Expelled:
    """The others went on without this member; it is alone in a view now, until a merge."""

    view: View
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Messages first to last of a sender will not come; what follows is delivered in order."""

    sender: Address
    first: int
    last: int
    reason: str
    direct: bool = False
    """Whether they were for this member alone, not for the group."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A large message of this member was freed before these members had said that they have it.

    Each of them is told what it skipped, unless it had the message after all and only its word was
    lost.
    """

    seqno: int
    members: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Outpaced:
    """A member has held this one back for so long that it is no longer waited for, until it has
    caught up."""

    member: Address
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """So much of a large message is on its way out (`sender` is this member), or has come in."""

    sender: Address
    message: int
    """The sender's number of the message; it changes when a view change makes the sender begin
    anew."""
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class StateAsked:
    """A newcomer wants the application's state, as it is when it has come to this place.

    Whoever hands events to the application sees to it; the application never gets this one.
    """

    joiner: Address
    id: int


@dataclass(frozen=True, slots=True)
class StateTaken:
    """Up to here messages may be part of the state that this newcomer was given.

    Whoever hands events to the application leaves those out; it never gets this one.
    """


Event = (
    Batch
    | ViewChange
    | Merged
    | Suspected
    | Expelled
    | Skipped
    | Undelivered
    | Outpaced
    | Progress
    | StateAsked
    | StateTaken
)
