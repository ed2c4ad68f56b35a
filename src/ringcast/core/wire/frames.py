"""Frames: the messages of the protocol, one class per kind; `codec` turns them into bytes and back.

A frame's fields are its layout: the codec derives the bytes from the annotations, so a new kind is
a new class here with its own code, and nothing else. Codes are part of the protocol's version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId


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
    """The view that the sender of this frame has installed."""
    start: int
    """The origin's messages up to here belong to earlier views than `view`."""
    origin: Address
    first: int
    low: int
    """The origin's messages up to here were delivered by all members."""
    sent_at: int
    flags: int
    payloads: Sequence[Payload]
    nbytes: int
    size: int = field(default=0, compare=False)
    """The size of every message, where all are known to have the same; else 0."""


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


RUNS = (Data, UnicastData)
"""The frames that carry messages."""


@dataclass(slots=True)
class Ack(Frame):
    """The application has taken the receiver's messages up to `delivered`."""

    code = 3
    kind = "ACK"
    delivered: int
    ahead: int = 0  # Messages beyond that have arrived.


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
    ahead: int = 0  # Messages beyond that have arrived.


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
    """How far the voting member has taken one sender's messages."""

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


class SenderMark(NamedTuple):
    """How far one member has the messages of another one."""

    sender: Address
    seqno: int


@dataclass(slots=True)
class KnownSeqnos(Frame):
    """How far this member has the messages of senders that it does not hear, or that the member it
    answers does not hear."""

    code = 12
    kind = "KNOWN"
    view: ViewId
    marks: tuple[SenderMark, ...]


@dataclass(slots=True)
class Discover(Frame):
    """Asks for members. Sent by a joiner, or by a coordinator that looks for partitions."""

    code = 20
    kind = "DISCOVER"
    peer: Peer
    view: ViewId
    direct: int
    """1 when it was sent to this member alone, which has to answer whatever its rank."""


@dataclass(slots=True)
class Present(Frame):
    """The answer: I am here, in this view, and its coordinator is that one."""

    code = 21
    kind = "PRESENT"
    peer: Peer
    view: ViewId
    coordinator: Peer
    cookie: int
    """What the receiver has to bring back in its JOIN to `peer`; 0 when it was sent to all."""
    echo: int
    """The cookie that the receiver gave `peer`; 0 when it is not known yet."""


@dataclass(slots=True)
class Join(Frame):
    """Please take me into the group."""

    code = 22
    kind = "JOIN"
    peer: Peer
    stack: str  # Its fingerprint.
    cookie: int
    """What the coordinator gave it, as a proof that datagrams reach it; 0 when it has none yet."""


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
    """The last message of a departed sender that all that go on deliver, and its holder."""

    origin: Address
    last: int
    holder: Address
    low: int
    """All members have delivered its messages up to here: the departed cannot say so itself."""


class Section(NamedTuple):
    """How the members of one former view go over to the new one."""

    base: ViewId
    members: tuple[Address, ...]
    endings: tuple[Ending, ...]


@dataclass(slots=True)
class Install(Frame):
    """The new view: members deliver up to `starts` and their section's endings, then install it."""

    code = 26
    kind = "VIEW"
    view: View
    starts: tuple[int, ...]  # Per member: its messages up to here belong to earlier views.
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
    """These members do not answer me; or the sender itself has failed and is gone."""

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
    stack: str  # Its fingerprint.


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
    spent: int  # Bytes sent since the last credits.
    urgent: int
    """1 when the sender has waited for long: answer now, whatever was lost on the way."""


@dataclass(slots=True)
class Credit(Frame):
    """The answer to the request with this `high`: go on."""

    code = 41
    kind = "CREDIT"
    high: int


@dataclass(slots=True)
class Whole(Frame):
    """Your large message that ends with this seqno is whole; all up to `taken` was delivered."""

    code = 42
    kind = "WHOLE"
    seqno: int
    taken: int


@dataclass(slots=True)
class Unacked(Frame):
    """Do you have these large messages? Each is named by the seqno of its last fragment."""

    code = 43
    kind = "UNACKED"
    seqnos: tuple[int, ...]


class AgreedView(NamedTuple):
    """A view that a majority has agreed on, or is about to."""

    id: ViewId
    members: tuple[Address, ...]


@dataclass(slots=True)
class Quorum(Frame):
    """What I know of the views that a majority has agreed on, and how far I am with this one."""

    code = 70
    kind = "QUORUM"
    view: ViewId
    phase: int
    agreed: AgreedView
    """The last view that a majority has agreed on."""
    attempts: tuple[AgreedView, ...]
    """Later views that may have been agreed on without me."""
    left: tuple[Address, ...]
    """Members that have left in order, and need not be counted."""


@dataclass(slots=True)
class PathProbe(Frame):
    """Does a datagram of this size arrive? It is alone in its datagram, which the wire fills up."""

    code = 51
    kind = "PATH_PROBE"
    number: int
    """Of the round of probes."""
    size: int
    """Bytes of the whole datagram."""
    padding: bytes = b""


@dataclass(slots=True)
class PathReply(Frame):
    """The answer: it arrived."""

    code = 52
    kind = "PATH_REPLY"
    number: int
    size: int


@dataclass(slots=True)
class FramePiece(Frame):
    """A piece of a frame that is larger than a datagram; it is alone in its datagram."""

    code = 50
    kind = "PIECE"
    digest: int
    """Of the whole frame, which it names."""
    index: int
    count: int
    content: bytes


@dataclass(slots=True)
class StatsRequest(Frame):
    """How are you? A member asks another for its figures; nothing is resent or acked."""

    code = 60
    kind = "STATSREQ"
    id: int


@dataclass(slots=True)
class StatsReply(Frame):
    """The answer to an inquiry."""

    code = 61
    kind = "STATS"
    id: int
    content: bytes
    """Compressed JSON, for people who watch the group."""
