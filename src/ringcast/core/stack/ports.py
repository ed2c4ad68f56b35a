"""Ports: the few calls between parts that need each other, typed, and handed over when the stack is
built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, Protocol, TypeVar, cast

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.block_times import BlockTimes
from ringcast.core.model.events import Event, Skipped
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack import registry
from ringcast.core.stack.part import Installation
from ringcast.core.wire.frames import Ending, Held, SenderMarks
from ringcast.core.wire.outbox import Datagram, Outbox
from ringcast.errors import ConfigError


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
        """Append an event to the application's queue."""
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

    def owes(self) -> bool:
        """Whether a member that is not waited for has still to be told what it will not get."""
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

    def is_late(self, member: Address) -> bool:
        """Whether this member coordinates, and that one has not confirmed the view yet."""
        ...

    def stranger(self, source: Address) -> None:
        """A process outside the view behaves as if it were a member."""
        ...

    def leave(self) -> None:
        """Leave the group in order."""
        ...

    def evict(self, member: Address, reason: str) -> None:
        """Make a view without this member, dead or not."""
        ...

    def stay_away(self, seconds: float, is_default: bool = False) -> None:
        """Stay alone this many seconds after the others evicted this member; a default gives way to
        what another part asks for."""
        ...

    def found(
        self, peer: Peer, view: ViewId, coordinator: Peer, cookie: int = 0, echo: int = 0
    ) -> None:
        """A process was heard: its address, the view it is in, and who coordinates that; cookie:
        what it wants to be brought back, echo: what it brings back."""
        ...

    def cookie(self, joiner: Peer) -> int:
        """What a process that is not in the view has to bring back."""
        ...


class FailureWatch(Protocol):
    """What the membership, the discovery and the transport ask of the failure detection."""

    def hint(self, member: Address, is_refusal: bool = False) -> None:
        """There is a sign that a member has crashed: ask it at once. A hint never suspects by
        itself. is_refusal: the member's own system says that no process listens there."""
        ...

    def accuse(self, member: Address) -> None:
        """A member does not answer: suspect it, unless it gives a sign of life."""
        ...

    def is_heard(self, members: Collection[Address], since: float) -> bool:
        """Whether one of these members was heard after this time; where a member is not watched
        here, it counts as heard."""
        ...


class SilenceListener(Protocol):
    """What the failure detection tells the multicast."""

    def silence(self, members: Collection[Address]) -> None:
        """These members were not heard for a few signs of life; told on each tick while there are
        such members, and once when there are none any more."""
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

    def introduce(self, to: Peer, coordinator: Peer, echo: int = 0) -> None:
        """Tell a process outside the view which view there is and who coordinates it, with a cookie
        for its JOIN and the one that it gave this member; once per step."""
        ...

    def soon(self, seconds: float) -> None:
        """Look again after about this long: a merge with another group failed."""
        ...

    def put_off(self) -> None:
        """The coordinator that leads the merge knows of this group: it need not ask now as well."""
        ...

    def rest(self, seconds: float) -> None:
        """Neither look for others nor answer them for this many seconds."""
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
    def when_alone(self) -> str:
        """What to do when no member is found: "create" a group, "wait" or "fail"."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds to look for others before `when_alone` is done."""
        ...


class Table(Protocol):
    """What stability asks of the retransmission table."""

    def marks(self) -> Iterable[SenderMarks]:
        """Per sender: how far this member has taken its messages."""
        ...

    def stable(self, marks: Iterable[SenderMarks]) -> None:
        """All members have delivered up to `delivered`; one knows of messages up to `high`."""
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
        """The application has taken this many more messages."""
        ...

    def stirred(self) -> None:
        """There are messages that not all members have, taken or not."""
        ...


class StableMarks(Protocol):
    """What is stable, as far as this member knows: delivered by all members of the view."""

    rounds_done: int
    """How many rounds of stability have ended here."""

    def begin_round(self) -> int:
        """Start a round, if that is how members find out; `rounds_done` at which it has ended."""
        ...

    def stable_seqnos(self) -> dict[Address, int]:
        """Per sender: up to here all members have delivered its messages."""
        ...


Unpack = Callable[[Batch, int, int], tuple[list[Batch | Skipped], Batch | None]]
"""Unpacks the first messages of a batch, up to this many and to about this many bytes: what comes
of them, and the rest."""


class Intake(Protocol):
    """What layers tell the application's inbox besides what they hand up."""

    early: int
    """Bytes of messages for this member alone that may count as delivered as they come."""

    def absorbed(self, batch: Batch) -> None:
        """A layer has kept these messages: they count as taken once all before them is."""
        ...

    def unpack_with(self, flag: int, unpack: Unpack) -> None:
        """Messages with just this flag are handed up packed: unpack them when they are taken."""
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
        """Free the own messages up to here as soon as all members but these have them: no longer
        wait for these."""
        ...

    def acked(self, member: Address, up_to: int) -> None:
        """A member's application has taken the own messages up to here: it has said so with the ack
        of a whole message."""
        ...

    def acked_by_large(self, sender: Address, up_to: int) -> None:
        """The ack of a whole large message has told this sender that the application has taken
        everything up to here: no other ack is needed for that."""
        ...

    def suppress_acks_until(self, sender: Address, up_to: int) -> None:
        """The ack of a whole large message will cover all of this sender's messages up to here:
        until then ack no more than the window needs."""
        ...

    def expect(self, sender: Address, up_to: int) -> None:
        """This sender's messages up to here exist: ask for those that have not come."""
        ...

    def arrived(self, sender: Address) -> int:
        """The highest message of a sender that has arrived, whether or not all before it have."""
        ...

    def lacks(self, sender: Address, first: int, last: int) -> bool:
        """Whether any of these messages of a sender is known to exist and has not arrived."""
        ...

    def beside_gap(self, sender: Address, seqno: int) -> list[Batch]:
        """The messages before and behind the gap that this one lies in; not those handed up."""
        ...

    def give_up(self, sender: Address, first: int, last: int, reason: str) -> None:
        """Wait no longer for the messages among these that are known to exist and are missing."""
        ...


class Tracker(Protocol):
    """What follows large messages as a whole."""

    def sent(self, last: int) -> None:
        """The last fragment of a large message of this member has got this seqno."""
        ...

    def begun(self, sender: Address, first: int, last: int) -> None:
        """The first fragment of a large message has arrived; its fragments are first to last."""
        ...

    def requested(self, sender: Address, wanted: RangeSet) -> None:
        """This member has requested these messages of a sender."""
        ...


class Holding(Protocol):
    """A layer that holds messages to the group after the multicast has handed them up."""

    def held_from(self) -> dict[Address, int]:
        """Per sender of which messages wait here: the first seqno; all behind it wait too."""
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


class Delivery(Protocol):
    """A reliable layer, as the inbox sees it."""

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """The application has taken this sender's messages up to here."""
        ...


class GroupDelivery(Delivery, Protocol):
    """The reliable multicast, as the stack sees it."""

    @property
    def block_times(self) -> BlockTimes:
        """How long a message may wait for room, by its size."""
        ...


class PairDelivery(Delivery, Protocol):
    """The reliable unicast, as the inbox sees it."""


class Taker(Protocol):
    """A layer between the inbox and the reliable ones that counts what the application takes."""

    def taken(self, sender: Address, up_to: int) -> None:
        """The application has taken this sender's messages to the group up to here."""
        ...


class Packer(Protocol):
    """What makes datagrams of frames."""

    group: int

    def pack(self, out: Outbox) -> list[Datagram]:
        """The outbox as datagrams."""
        ...

    def resize(self) -> bool:
        """Follow the bounds in `env.datagram_size`; returns whether the size is another one."""
        ...

    def watch(self, watcher: Callable[[int], None]) -> None:
        """Call this once, with the bytes of the next datagram that some path may not carry."""
        ...


class Sizing(Protocol):
    """What sets the size of datagrams."""

    def bound_path(self, size: int | None, is_refused: bool = False) -> None:
        """Send no larger datagrams than these, since larger ones do not arrive, or since the kernel
        refuses them; None for no such bound. Tells every part when that changes the size."""
        ...


class PathWatch(Protocol):
    """What finds out which datagrams arrive."""

    def shrunk(self, size: int) -> None:
        """The kernel sends no datagrams above this size any more."""
        ...


class Gate(Protocol):
    """What may drop datagrams on purpose."""

    def admit(self) -> bool:
        """Whether the next datagram is let in."""
        ...


P = TypeVar("P")


class Ports:
    """The ports of one stack, by their type."""

    def __init__(self) -> None:
        self._offers: dict[type, list[object]] = {}

    def offer(self, port: type[P], part: object) -> None:
        """Add a port of a part. Raises ConfigError when the part lacks a member of it."""
        # Fields are asked for one by one: CPython looks up every attribute of an object slowly once
        # its `__dict__` was read.
        others = _members(port).difference(dir(type(part)))
        lacking = sorted(name for name in others if not hasattr(part, name))
        if lacking:
            raise ConfigError(
                f"{type(part).__name__} offers {port.__name__} and has no {', '.join(lacking)}:"
                " write it, or leave the port out of @protocol(offers=…)"
            )
        self._offers.setdefault(port, []).append(part)

    def __getitem__(self, port: type[P]) -> P:
        """The port that a stack has to have. Raises ConfigError that names the missing role."""
        found = self.get(port)
        if found is None:
            raise ConfigError(nothing_for(port))
        return found

    def get(self, port: type[P]) -> P | None:
        """The port, if a part offers it."""
        offers = self._offers.get(port)
        return cast(P, offers[0]) if offers else None

    def all(self, port: type[P]) -> tuple[P, ...]:
        """Every offer of a port, from the top of the stack to its bottom."""
        return tuple(cast(P, part) for part in self._offers.get(port, ()))


def nothing_for(need: type | str) -> str:
    """The sentence for a stack in which nothing has this role or offers this port."""
    found = registry.filling(need)
    roles = dict.fromkeys(made.role for made in found)
    name = " or ".join(roles) or (need if isinstance(need, str) else need.__name__)
    return f"the stack has nothing for {name}: add it, or begin with presets.lan()"


def _members(port: type) -> set[str]:
    """The names that a port consists of."""
    names: set[str] = set()
    for base in port.__mro__:
        if base not in (Protocol, Generic, object):
            names.update(vars(base), getattr(base, "__annotations__", ()))
    return {name for name in names if not name.startswith("_")}
