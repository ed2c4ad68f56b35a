"""Frames: what members say to each other, one class per kind; `codec` turns them into bytes and
back.

A frame's fields are its layout: the codec derives the bytes from the annotations, so a new kind is
a new class here with a number of its own, and nothing else. Numbers are part of the protocol's
version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ringcast.core.address import Address, Peer
from ringcast.core.batch import Payload
from ringcast.core.ranges import RangeSet
from ringcast.core.view import View, ViewId


class Frame:
    """The base of all frames."""

    __slots__ = ()
    code: ClassVar[int]
    kind: ClassVar[str]


@dataclass(slots=True)
class Data(Frame):
    """A run of messages of `origin`, in the view it was sent in or sent again in."""

    code = 1
    kind = "DATA"
    view: ViewId
    """The view that the one who sends this frame has installed."""
    start: int
    """The origin's messages up to here belong to earlier views than `view`."""
    origin: Address
    first: int
    low: int
    """The origin's messages up to here were delivered by everybody."""
    sent_at: int
    flags: int
    payloads: Sequence[Payload]
    nbytes: int
    size: int = field(default=0, compare=False)
    """As in a batch: the size of every message, where all are known to have the same; else 0."""


@dataclass(slots=True)
class UnicastData(Frame):
    """A run of messages for one member, of the connection `conn`."""

    code = 2
    kind = "UDATA"
    conn: int
    first: int
    low: int
    sent_at: int
    flags: int
    payloads: Sequence[Payload]
    nbytes: int
    size: int = field(default=0, compare=False)
    """As in a batch: the size of every message, where all are known to have the same; else 0."""


RUNS = (Data, UnicastData)
"""The frames that carry messages."""


@dataclass(slots=True)
class Ack(Frame):
    """The application has taken the receiver's messages up to `delivered`."""

    code = 3
    kind = "ACK"
    delivered: int
    ahead: int = 0
    """How many messages beyond that have come already."""


@dataclass(slots=True)
class Nak(Frame):
    """Please send these messages of `origin` (again)."""

    code = 4
    kind = "NAK"
    origin: Address
    ranges: RangeSet


@dataclass(slots=True)
class Last(Frame):
    """An idle sender announces how far it has sent, and what it no longer has."""

    code = 5
    kind = "LAST"
    view: ViewId
    start: int
    low: int
    high: int


@dataclass(slots=True)
class UnicastAck(Frame):
    """The application has taken the messages of this connection up to `delivered`."""

    code = 6
    kind = "UACK"
    conn: int
    delivered: int


@dataclass(slots=True)
class UnicastNak(Frame):
    """Please send these messages of the connection (again)."""

    code = 7
    kind = "UNAK"
    conn: int
    ranges: RangeSet


@dataclass(slots=True)
class UnicastLast(Frame):
    """An idle sender announces how far it has sent to this member."""

    code = 8
    kind = "ULAST"
    conn: int
    low: int
    high: int


@dataclass(slots=True)
class UnicastReset(Frame):
    """This connection is not known here: please begin it anew."""

    code = 9
    kind = "URESET"
    conn: int


class SenderMarks(NamedTuple):
    """How far one sender's messages have come at the member that votes."""

    sender: Address
    delivered: int
    high: int


@dataclass(slots=True)
class Vote(Frame):
    """What this member has delivered; senders of which nothing is new are left out."""

    code = 10
    kind = "VOTE"
    view: ViewId
    marks: tuple[SenderMarks, ...]


@dataclass(slots=True)
class Stable(Frame):
    """What every member has delivered, and the highest that any of them knows of."""

    code = 11
    kind = "STABLE"
    view: ViewId
    marks: tuple[SenderMarks, ...]


@dataclass(slots=True)
class Discover(Frame):
    """Who is there? Said by somebody who wants to join, or by a coordinator that looks for
    partitions."""

    code = 20
    kind = "DISCOVER"
    peer: Peer
    view: ViewId
    direct: int
    """1 when it was sent to this member alone, who then has to answer whatever its rank."""


@dataclass(slots=True)
class Present(Frame):
    """The answer: I am here, in this view, and its coordinator is that one."""

    code = 21
    kind = "PRESENT"
    peer: Peer
    view: ViewId
    coordinator: Peer


@dataclass(slots=True)
class Join(Frame):
    """Please take me into the group."""

    code = 22
    kind = "JOIN"
    peer: Peer


@dataclass(slots=True)
class Leave(Frame):
    """Please make a view without me."""

    code = 23
    kind = "LEAVE"
    view: ViewId


@dataclass(slots=True)
class Prepare(Frame):
    """A new view is coming: stop sending, and say how far you are."""

    code = 24
    kind = "PREPARE"
    proposal: ViewId
    base: ViewId
    departed: tuple[Address, ...]
    direct: int
    """1 when it was sent to this member alone, which is believed to be in the base view."""


class Held(NamedTuple):
    """What one member holds of a departed sender: messages low + 1 to handed."""

    origin: Address
    low: int
    handed: int


@dataclass(slots=True)
class Flushed(Frame):
    """The answer: I have stopped after `sent` messages, and this is what I hold of the departed."""

    code = 25
    kind = "FLUSHED"
    proposal: ViewId
    sent: int
    held: tuple[Held, ...]


class Ending(NamedTuple):
    """The last message of a departed sender that all who go on together deliver, and who has it."""

    origin: Address
    last: int
    holder: Address
    low: int
    """Everybody has delivered its messages up to here: the departed can no longer say so itself."""


class Section(NamedTuple):
    """How the members of one former view go over to the new one."""

    base: ViewId
    members: tuple[Address, ...]
    endings: tuple[Ending, ...]


@dataclass(slots=True)
class Install(Frame):
    """The new view. Members deliver up to `starts` and up to the endings of their section, then
    install it."""

    code = 26
    kind = "VIEW"
    view: View
    starts: tuple[int, ...]
    """Per member of the view: its messages up to here belong to earlier views."""
    sections: tuple[Section, ...]


@dataclass(slots=True)
class Installed(Frame):
    """This is the view that I have."""

    code = 27
    kind = "INSTALLED"
    view: ViewId


@dataclass(slots=True)
class Alive(Frame):
    """A sign of life."""

    code = 28
    kind = "ALIVE"


@dataclass(slots=True)
class Probe(Frame):
    """Are you alive? Any frame is an answer; ALIVE is the one that is sent."""

    code = 29
    kind = "PROBE"


@dataclass(slots=True)
class Suspect(Frame):
    """These members do not answer me."""

    code = 30
    kind = "SUSPECT"
    members: tuple[Address, ...]


@dataclass(slots=True)
class Evict(Frame):
    """Please make a view without this member, which is alive but holds the group back."""

    code = 34
    kind = "EVICT"
    member: Address
    reason: str


@dataclass(slots=True)
class Merge(Frame):
    """A merge leader asks a coordinator to stop its members for a common view."""

    code = 31
    kind = "MERGE"
    proposal: ViewId
    base: ViewId


@dataclass(slots=True)
class MergeReady(Frame):
    """The coordinator's answer: its members have stopped, and this is how they go over."""

    code = 32
    kind = "MERGE_READY"
    proposal: ViewId
    peers: tuple[Peer, ...]
    starts: tuple[int, ...]
    section: Section


@dataclass(slots=True)
class Refused(Frame):
    """No to a proposal: a merge that does not suit now, or a number below the one promised."""

    code = 33
    kind = "REFUSED"
    proposal: ViewId
    view: ViewId
    promised: ViewId


@dataclass(slots=True)
class CreditRequest(Frame):
    """My credits are spent: tell me when your application has taken my messages up to `high`."""

    code = 40
    kind = "ASK"
    high: int
    spent: int
    """The bytes that were sent since the last credits."""
    urgent: int
    """1 when the sender has waited for long: what was lost on the way is no reason to wait any
    longer."""


@dataclass(slots=True)
class Credit(Frame):
    """The answer to the request with this `high`: go on."""

    code = 41
    kind = "CREDIT"
    high: int


@dataclass(slots=True)
class Whole(Frame):
    """I have the whole of your large message, whose last fragment has this seqno, and my
    application has taken what you sent up to `taken`."""

    code = 42
    kind = "WHOLE"
    seqno: int
    taken: int


@dataclass(slots=True)
class Unacked(Frame):
    """I wait to hear that you have these large messages, each named by the seqno of its last
    fragment."""

    code = 43
    kind = "UNACKED"
    seqnos: tuple[int, ...]
