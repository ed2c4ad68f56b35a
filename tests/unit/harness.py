"""A few parts of a stack under test: members made of one or two protocols, and a network in memory.

Views are installed by the test, without a membership protocol; time is virtual; what the network
does to each frame is a function that the test gives. Frames go through the codec, as on a wire.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple, cast

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Event
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack import registry
from ringcast.core.stack.env import Env
from ringcast.core.stack.inbox import Inbox
from ringcast.core.stack.part import Installation, Layer, Part, Spec
from ringcast.core.stack.ports import Control, Delivery, Intake, Ports, Taker, ViewChanger
from ringcast.core.stack.wiring import Bottom
from ringcast.core.wire.codec import decode, encode
from ringcast.core.wire.cut import cut
from ringcast.core.wire.frames import Data, Frame, UnicastData
from ringcast.core.wire.layout import DATA_SIZE, HEADER_SIZE
from ringcast.core.wire.placement import Placement

GROUP = 7
LATENCY = 0.001


class Flight(NamedTuple):
    """A frame on its way."""

    source: Address
    target: Address
    frame: Frame
    now: float


Policy = Callable[[Flight], Sequence[float]]
"""The delay of each copy that arrives; no copy means that the frame is lost."""


def clean(flight: Flight) -> Sequence[float]:
    """Every frame arrives once, in order."""
    return (LATENCY,)


def lose(wanted: Callable[[Frame], bool], count: int = 1) -> Policy:
    """A network that loses the first of the frames that are wanted, this many."""
    left = [count]

    def policy(flight: Flight) -> Sequence[float]:
        if left[0] and wanted(flight.frame):
            left[0] -= 1
            return ()
        return clean(flight)

    return policy


def bad_network(seed: int, loss: float, copies: float, spread: float) -> Policy:
    """A network that loses, doubles and delays, by the dice."""
    dice = Random(seed)

    def policy(flight: Flight) -> Sequence[float]:
        if dice.random() < loss:
            return ()
        count = 2 if dice.random() < copies else 1
        return [LATENCY + dice.random() * spread for _ in range(count)]

    return policy


class Member:
    """The parts of one member, the inbox on top, and an application that takes what is there."""

    def __init__(self, address: int, specs: Sequence[Spec], mtu: int) -> None:
        self.address = Address(address)
        self.peer = Peer(self.address, f"m{address}", "")
        self.env = Env(self.peer, Random(address), mtu=mtu)
        self.inbox = Inbox(self.env)
        self.view: View | None = None
        self.messages: list[tuple[Address, Address | None, int, Payload]] = []
        """What the application has taken: sender, destination, seqno, payload."""
        self.events: list[Event] = []
        """What it was told besides."""
        self.is_slow = False
        """Whether the application takes nothing."""
        self.reached_count = 0
        self._waiting: dict[Address | None, list[Payload]] = {}
        self.parts: list[Part] = [spec.build(self.env) for spec in specs]
        self._link(specs)

    def _link(self, specs: Sequence[Spec]) -> None:
        by_role = dict(zip((spec.role for spec in specs), self.parts, strict=True))
        layers = [part for part in self.parts if isinstance(part, Layer)]
        ladder = [self.inbox, *layers, Bottom(self.env)]
        for above, below in pairwise(ladder):
            above.below, below.above = below, above
        self.top = layers[0]
        multicast = by_role.get("multicast")
        self.inbox.group = cast(Delivery, multicast)
        self.inbox.pairs = cast(Delivery, by_role.get("unicast"))
        self.owners = {kind: part for part in self.parts for kind in part.kinds}
        self.connect(specs)

    def connect(self, specs: Sequence[Spec]) -> None:
        """Hand the ports out: those of the parts, and the member's own for what is missing."""
        ports = Ports()
        ports.offer(Control, self)
        ports.offer(Intake, self.inbox)
        ports.offer(Placement, Placement())
        for spec, part in zip(specs, self.parts, strict=True):
            for port in registry.of(type(spec)).offers:
                ports.offer(port, part)
        if ports.get(ViewChanger) is None:
            ports.offer(ViewChanger, self)
        self.inbox.takers = ports.all(Taker)
        for part in self.parts:
            part.connect(ports)

    def part(self, kind: type[Part]) -> Part:
        """The part of this type."""
        return next(part for part in self.parts if isinstance(part, kind))

    # What the application does ----------------------------------------------------------------

    def send(self, payloads: Sequence[Payload], to: Address | None = None) -> None:
        """Send now what there is room for, and the rest as room comes."""
        self._waiting.setdefault(to, []).extend(payloads)
        self.go_on()

    def go_on(self) -> None:
        """Send what waits, as far as there is room."""
        for to, waiting in self._waiting.items():
            while waiting and (count := min(self.top.room(to)[0], len(waiting))) > 0:
                # One message at a time when bytes are short, which only a test can afford.
                space, nbytes = self.top.room(to)[1], sum(map(len, waiting[:count]))
                count = count if nbytes <= space else 1
                run, waiting[:count] = waiting[:count], []
                self.top.down(Batch(self.address, run, sum(map(len, run)), dest=to))

    def take(self, limit: int = 1 << 30) -> None:
        """Take what is there, and be done with it."""
        while limit > 0 and (events := self.inbox.take(limit)):
            for event in events:
                if isinstance(event, Batch):
                    limit -= len(event)
                    rows = enumerate(event.payloads, event.first)
                    self.messages += [(event.sender, event.dest, n, bytes(p)) for n, p in rows]
                else:
                    self.events.append(event)
            self.inbox.consumed()
        self.inbox.consumed()

    def payloads(self, sender: Address, dest: Address | None = None) -> list[Payload]:
        """What was taken of one sender, to the group or to this member."""
        return [m[3] for m in self.messages if m[0] == sender and m[1] == dest]

    @property
    def waiting(self) -> int:
        """How many messages there is no room for."""
        return sum(map(len, self._waiting.values()))

    # What the network and the test do ---------------------------------------------------------

    def receive(self, frame: Frame, source: Address) -> None:
        """Take one frame."""
        self.owners[type(frame)].on_frame(frame, source)

    def install(self, installation: Installation) -> None:
        """Give a view to all parts."""
        self.view = installation.view
        for part in self.parts:
            part.on_view(installation)

    # Ports of the parts that are not here -----------------------------------------------------

    def emit(self, event: Event) -> None:
        self.inbox.push(event)

    def suspect(self, member: Address, suspected: bool) -> None:
        for part in self.parts:
            part.on_suspect(member, suspected)

    def finish(self, reason: str) -> None:
        raise NotImplementedError

    def reached(self) -> None:
        self.reached_count += 1

    def is_elsewhere(self, member: Address) -> bool:
        return False

    def is_late(self, member: Address) -> bool:
        return False

    def stranger(self, source: Address) -> None:
        self.env.counters["strangers"] += 1

    def leave(self) -> None:
        raise NotImplementedError

    def evict(self, member: Address, reason: str) -> None:
        raise NotImplementedError

    def stay_away(self, seconds: float, is_default: bool = False) -> None:
        raise NotImplementedError

    def cookie(self, joiner: Peer) -> int:
        return 1

    def found(self, peer: Peer, view: ViewId, coordinator: Peer, *cookies: int) -> None:
        raise NotImplementedError

    def remind(self) -> None:
        raise NotImplementedError

    @property
    def drained(self) -> bool:
        raise NotImplementedError

    def search(self, view: ViewId) -> None:
        raise NotImplementedError

    def pause(self) -> None:
        raise NotImplementedError

    def rest(self, seconds: float) -> None:
        raise NotImplementedError

    resting = False

    def soon(self, seconds: float) -> None:
        raise NotImplementedError

    def put_off(self) -> None:
        raise NotImplementedError

    tried = when_alone = ""
    timeout = 0.0


class Net:
    """Some members and what is on its way between them."""

    def __init__(self, *members: Member, policy: Policy = clean) -> None:
        self.members = {member.address: member for member in members}
        self.policy = policy
        self.now = 0.0
        self.sent: Counter[str] = Counter()
        """How many frames of each kind were sent; a multicast counts once."""
        self._heap: list[tuple[float, int, Flight]] = []
        self._count = 0
        self._number = 0

    def install(self, *addresses: Address, on: Iterable[Address] | None = None) -> None:
        """Install a view of these members, at once, at all of them or at those in `on`."""
        self._number += 1
        peers = tuple(self.members[address].peer for address in addresses)
        view = View(ViewId(self._number, addresses[0]), peers)
        starts = {address: _sent(self.members[address]) for address in addresses}
        for address in addresses if on is None else on:
            member = self.members[address]
            old = member.view
            before = () if old is None else old.members
            joined = tuple(a for a in addresses if a not in before)
            left = tuple(a for a in before if a not in addresses)
            member.env.now = self.now
            member.install(Installation(view, old, starts, joined, left))
        self._finish_step()

    def step(self) -> float:
        """Do the next thing that is due and return when that was; infinity when nothing is."""
        wakes = [(member.env.timers.deadline, n) for n, member in enumerate(self.members.values())]
        wake_at, n = min(wakes)
        arrives_at = self._heap[0][0] if self._heap else float("inf")
        at = min(wake_at, arrives_at)
        if at == float("inf"):
            return at
        self.now = max(self.now, at)
        if arrives_at <= wake_at:
            _, _, flight = heapq.heappop(self._heap)
            self._arrive(flight)
        else:
            member = list(self.members.values())[n]
            member.env.now = self.now
            due = member.env.timers.pop_due(self.now)
            assert due is not None
            due[0].on_timer(due[1])
        self._finish_step()
        return at

    def run(self, seconds: float) -> None:
        """Let this much time pass."""
        end = self.now + seconds
        self._finish_step()
        while self._next <= end:
            self.step()
        self.now = end
        for member in self.members.values():
            member.env.now = end

    def settle(self, seconds: float = 600.0) -> float:
        """Go on until nothing is on its way and no timer runs; how long that took.

        Fails when that is not so after this many seconds.
        """
        start = self.now
        self._finish_step()
        while self._next < float("inf"):
            self.step()
            assert self.now - start <= seconds, f"not at rest after {seconds} s: {self.sent}"
        return self.now - start

    @property
    def _next(self) -> float:
        arrives_at = self._heap[0][0] if self._heap else float("inf")
        deadlines = [member.env.timers.deadline for member in self.members.values()]
        return min(arrives_at, *deadlines)

    def _arrive(self, flight: Flight) -> None:
        member = self.members[flight.target]
        member.env.now = self.now
        datagram = b"".join(encode(GROUP, flight.source, [flight.frame]))
        source, frames = decode(datagram, GROUP)
        for frame in frames:
            member.receive(frame, source)

    def _finish_step(self) -> None:
        """Let applications take and send, and put what was sent on its way."""
        for member in self.members.values():
            member.env.now = self.now
            member.go_on()
            while member.inbox.events and not member.is_slow:
                member.take()
                member.go_on()
            frames, member.env.out.frames = member.env.out.frames, []
            for target, frame in frames:
                for piece in pieces(frame, member.env.mtu):
                    self._post(member.address, cast(Address | None, target), piece)

    def _post(self, source: Address, target: Address | None, frame: Frame) -> None:
        self.sent[frame.kind] += 1
        others = [address for address in self.members if address != source]
        for address in others if target is None else [target]:
            flight = Flight(source, address, frame, self.now)
            for delay in self.policy(flight):
                self._count += 1
                heapq.heappush(self._heap, (self.now + delay, self._count, flight))


def pieces(frame: Frame, mtu: int) -> Iterable[Frame]:
    """A frame as the wire would cut it."""
    if isinstance(frame, Data | UnicastData):
        return cut(frame, mtu - HEADER_SIZE - DATA_SIZE)
    return (frame,)


def numbered(count: int, start: int = 1, size: int = 0) -> list[Payload]:
    """Messages that say which they are, padded to a size."""
    return [str(n).encode().ljust(size, b".") for n in range(start, start + count)]


def _sent(member: Member) -> int:
    """Where a new view begins in the member's messages to the group."""
    sent = getattr(member.inbox.group, "sent", None)
    return 0 if sent is None else cast(int, sent.high)
