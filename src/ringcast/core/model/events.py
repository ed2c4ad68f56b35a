"""Events: what an application is told, in the order in which it happened at this member."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.view import View


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
class Stateless:
    """This member joined with state=True, found no group and began without a state; now it has
    merged with members that may have one. It gets theirs when it leaves and joins again.

    Until then it gives its own state to newcomers only if no other member gives one.
    """

    view: View


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
    """Messages of this member were freed before these members had acked them.

    A large message to the group: each of the members is told what it skipped, unless it had the
    message after all and only its ack was lost. Messages to one member (`direct`): it has left the
    view, and may have delivered some of them.
    """

    seqno: int
    """The last of the messages."""
    members: tuple[Address, ...]
    direct: bool = False
    """Whether they were for one member, not for the group."""
    count: int = 1
    """How many messages."""


@dataclass(frozen=True, slots=True)
class Outpaced:
    """A member has held this one back for so long that it is no longer waited for, until it has
    caught up."""

    member: Address
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """This much of a large message was sent (`sender` is this member), or has arrived."""

    sender: Address
    message: int
    """The sender's number of the message; it changes when a view change makes the sender begin
    anew."""
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class QuorumLost:
    """This view has no majority of the last view that one had agreed on: sends wait."""

    view: View
    missing: tuple[Address, ...]
    """The members of that view that are not here."""


@dataclass(frozen=True, slots=True)
class QuorumRegained:
    """A majority is together again: sends go on."""

    view: View


@dataclass(frozen=True, slots=True)
class StateAsked:
    """A newcomer wants the application's state, as it is at this place among the events.

    The runtime sees to it; the application never gets this one.
    """

    joiner: Address
    id: int


@dataclass(frozen=True, slots=True)
class StateTaken:
    """Up to here messages may be part of the state that this newcomer was given.

    The runtime leaves those out; it never gets this one.
    """


@dataclass(frozen=True, slots=True)
class DatagramsResized:
    """This member's datagrams have another size from now on. The log tells of it; the application
    never gets this one."""

    size: int
    former: int
    source: str
    """Where the size comes from: "user", "interface", "view" or "probe"."""
    members: tuple[Address, ...]
    """The members at which larger ones do not arrive, where probes have found it out."""


Event = (
    Batch
    | ViewChange
    | Merged
    | Suspected
    | Expelled
    | Stateless
    | Skipped
    | Undelivered
    | Outpaced
    | Progress
    | QuorumLost
    | QuorumRegained
    | StateAsked
    | StateTaken
)
Notice = Event | DatagramsResized
"""What is told at once, to the log for example."""
