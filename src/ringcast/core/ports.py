"""Ports: the few calls between parts that need each other, typed, and handed over when the stack is
built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ringcast.core.address import Address, Peer
from ringcast.core.batch import Batch
from ringcast.core.events import Event
from ringcast.core.frames import Ending, Held, SenderMarks
from ringcast.core.part import Installation
from ringcast.core.view import View, ViewId


class Control(Protocol):
    """What parts may ask of the stack itself."""

    @property
    def view(self) -> View | None:
        """The installed view; None before the join is done."""
        ...

    @property
    def drained(self) -> bool:
        """Whether all that this member sent has been delivered."""
        ...

    def install(self, installation: Installation) -> None:
        """Every part is given the view, then the application's queue."""
        ...

    def emit(self, event: Event) -> None:
        """Put an event into the application's queue, behind what is there."""
        ...

    def suspect(self, member: Address, suspected: bool) -> None:
        """Tell every part that a member is suspected, or no longer."""
        ...

    def finish(self, reason: str) -> None:
        """This member is out of the group for good: nothing more is sent or received."""
        ...


class Flush(Protocol):
    """What a view change asks of the reliable multicast."""

    def freeze(self, departed: Iterable[Address]) -> int:
        """Send nothing more and hand up nothing more of the departed; returns the last seqno
        sent."""
        ...

    def held(self, departed: Iterable[Address]) -> tuple[Held, ...]:
        """What this member holds of the departed senders."""
        ...

    def aim(self, view: ViewId, starts: dict[Address, int], endings: tuple[Ending, ...]) -> None:
        """Get everything up to these seqnos and nothing beyond, then call `ViewChanger.reached`.

        view: the one that waits for it."""
        ...

    def reached(self) -> bool:
        """Whether everything up to the aim has been handed up."""
        ...


class ViewChanger(Protocol):
    """What other parts ask of the membership."""

    def reached(self) -> None:
        """The multicast has handed up all that comes before the view that waits."""
        ...

    def remind(self) -> None:
        """Members are still suspected, and still in the view."""
        ...

    def is_elsewhere(self, member: Address) -> bool:
        """Whether a member of the view is known to be in another one by now, alive or not."""
        ...

    def stranger(self, source: Address) -> None:
        """Somebody who is not in the view behaves as if it were."""
        ...

    def leave(self) -> None:
        """Leave the group in order."""
        ...

    def evict(self, member: Address, reason: str) -> None:
        """Make a view without this member, dead or not."""
        ...

    def stay_away(self, seconds: float) -> None:
        """Stay alone for so long whenever the others make a view without this member."""
        ...

    def found(self, peer: Peer, view: ViewId, coordinator: Peer) -> None:
        """Somebody was heard: who it is, the view it is in, and who coordinates that."""
        ...


class Watch(Protocol):
    """What the membership asks of the failure detection."""

    def accuse(self, member: Address) -> None:
        """A member does not answer: suspect it, unless it gives a sign of life."""
        ...


class Search(Protocol):
    """What the membership asks of the discovery."""

    def search(self, view: ViewId) -> None:
        """Look for others at once, and go on until `pause`; they come back through
        `ViewChanger.found`."""
        ...

    def pause(self) -> None:
        """Look only now and then, for partitions, and only while this member is the coordinator."""
        ...

    def soon(self, seconds: float) -> None:
        """Look again after about so long: somebody is there with whom a merge did not come off."""
        ...

    def rest(self, seconds: float) -> None:
        """Look for nobody and be found by nobody for so long."""
        ...

    @property
    def resting(self) -> bool:
        """Whether that time is not over."""
        ...

    @property
    def tried(self) -> str:
        """What was tried, for the sentence that says why no group was found."""
        ...

    @property
    def alone(self) -> str:
        """What to do when nobody is found: "found" a group, "wait" or "fail"."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds to look for others before `alone` is done."""
        ...


class Table(Protocol):
    """What stability asks of the retransmission table."""

    def marks(self) -> Iterable[SenderMarks]:
        """Per sender how far this member has come."""
        ...

    def stable(self, marks: Iterable[SenderMarks]) -> None:
        """Everybody has delivered up to `delivered`; somebody knows of messages up to `high`."""
        ...

    def watch(self, rounds: Rounds) -> None:
        """Tell these rounds what happens from now on."""
        ...

    @property
    def bounds(self) -> tuple[int, int]:
        """How many messages and bytes of one sender it keeps."""
        ...


class Rounds(Protocol):
    """What the retransmission table tells stability, which asks for a round when it has to be."""

    def taken(self, messages: int, nbytes: int) -> None:
        """The application has taken so many more messages."""
        ...

    def stirred(self) -> None:
        """There are messages that not everybody has, taken or not."""
        ...


class Intake(Protocol):
    """What layers tell the application's inbox besides what they hand up."""

    early: int
    """Bytes of messages for this member alone that may count as delivered as they come."""

    def absorbed(self, batch: Batch) -> None:
        """A layer has kept these messages: they count as taken once all before them is."""
        ...


class Numbering(Protocol):
    """What the layers above ask of the multicast about the messages of this member, and of
    others."""

    @property
    def sent_high(self) -> int:
        """The seqno of the last message that this member has sent."""
        ...

    def handed(self) -> dict[Address, int]:
        """Per member of the view: the last of its messages that was handed up here."""
        ...

    def forget(self, up_to: int, without: Iterable[Address]) -> None:
        """Free the own messages up to here as soon as everybody but these has them: no longer wait
        for these."""
        ...

    def acked(self, member: Address, up_to: int) -> None:
        """A member's application has taken the own messages up to here: it has said so with the ack
        of a whole message."""
        ...

    def answered(self, sender: Address, up_to: int) -> None:
        """This member has told a sender that its application has taken everything up to here: no
        other ack is needed for that."""
        ...

    def hush(self, sender: Address, up_to: int) -> None:
        """The ack of a whole message will speak for all of this sender's messages up to here: until
        then ack no more than the window needs."""
        ...

    def expect(self, sender: Address, up_to: int) -> None:
        """This sender's messages up to here exist: ask for those that have not come."""
        ...

    def arrived(self, sender: Address) -> int:
        """The highest message of a sender that has come, whether or not all before it have."""
        ...

    def lacks(self, sender: Address, seqno: int) -> bool:
        """Whether this message of a sender is known to exist and has not come."""
        ...

    def behind_gap(self, sender: Address) -> Batch | None:
        """The first run of this sender that has come and waits for earlier messages; None if none
        does."""
        ...

    def give_up(self, sender: Address, up_to: int | None, reason: str) -> None:
        """Wait no longer for what is missing of this sender up to here; None means the first
        gap."""
        ...


class Tracker(Protocol):
    """Who follows large messages as a whole."""

    def sent(self, last: int) -> None:
        """The last fragment of a large message of this member has got this seqno."""
        ...

    def requested(self, sender: Address, first: int) -> None:
        """This member has asked for messages of a sender; `first` is the lowest that it lacks."""
        ...


class Brake(Protocol):
    """What may make a sender wait for others."""

    def positions(self) -> dict[Address, int]:
        """While this member waits: how far each member it waits for, or could, has come; else
        nothing."""
        ...

    def release(self, member: Address) -> None:
        """No longer wait for this member, until it has caught up."""
        ...


@dataclass(slots=True)
class Ports:
    """The ports of one stack."""

    control: Control
    flush: Flush
    membership: ViewChanger
    discovery: Search
    table: Table | None = None
    intake: Intake | None = None
    numbering: Numbering | None = None
    tracker: Tracker | None = None
    brakes: tuple[Brake, ...] = ()
    failure: Watch | None = None
