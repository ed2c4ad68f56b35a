"""The world: stacks in virtual time, all chance from one seed, no sockets and no threads.

The loop is the whole of it: take the next instant off the heap, hand each member what arrived
there, carry what it sends through the network, and put the arrivals on the heap. The same code runs
here as over sockets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from ringcast.closed.inspected import InspectedSeal
from ringcast.closed.keys import Key, Keys
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import Event
from ringcast.core.stack.stack import Stack
from ringcast.core.wire.codec import group_id, source_of
from ringcast.core.wire.frames import Data
from ringcast.core.wire.outbox import MTU as DATAGRAM_MAX
from ringcast.core.wire.outbox import Target
from ringcast.errors import ConfigError, LocalError, Timeout
from ringcast.guarantees import promises_of
from ringcast.sim.checks.guarantees import BrokenGuarantee, Checker
from ringcast.sim.checks.memory import out_of_bounds
from ringcast.sim.engine.calendar import Calendar
from ringcast.sim.engine.discovery import show_places
from ringcast.sim.engine.faults import Drop, Parcel, Rule
from ringcast.sim.engine.hashing import TraceHash
from ringcast.sim.engine.member import Member, ProcessState
from ringcast.sim.engine.network import MTU, QUEUE_FULL, Fate, Link, Network
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.engine.ports import Switch
from ringcast.sim.engine.settling import outstanding
from ringcast.spec import StackSpec

JOIN_SECONDS, SETTLE_SECONDS = 60.0, 120.0
SETTLE_SLICE = 0.02
"""How often `settle` looks whether it is done, in virtual seconds."""
LOOK_INSTANTS = 256
"""After this many instants the windows and memory of all members are checked for their bounds."""


class World:
    """A group of members in virtual time."""

    def __init__(
        self,
        seed: int,
        spec: StackSpec,
        *,
        loss: float = 0.0,
        delay: tuple[float, float] = (0.0001, 0.0005),
        duplicate: float = 0.0,
        reorder: float = 0.0,
        corrupt: float = 0.0,
        bandwidth: float | None = None,
        packet_loss: float = 0.0,
        mtu: int = MTU,
        fragment: bool = True,
        downlink: float | None = None,
        shared: float | None = None,
        queue: int | None = None,
        keep: bool = True,
        addresses: str = "small",
        group: str = "sim",
        observer: WorldListener | None = None,
        effort_max: int | None = None,
        measure: bool = False,
        key: bytes | None = None,
        refuse: bool = False,
    ) -> None:
        if not isinstance(spec, StackSpec):
            raise ConfigError(f"spec is {spec!r}: give a StackSpec, say presets.lan()")
        if addresses not in ("small", "random"):
            raise ConfigError(f'addresses is "{addresses}": give "small" or "random"')
        self.seed = seed
        self.spec = spec
        self.keep = keep
        self.measure = measure
        """Whether members note after each step what they keep in memory."""
        self._refuse = refuse
        """Whether the system of a dead member refuses what reaches its port."""
        self._keys: Keys = () if key is None else (Key(key),)
        self.now = 0.0
        self.observer = observer
        self.members: dict[str, Member] = {}
        """Every member that was ever started, by name."""
        self.frames: Counter[str] = Counter()
        """How many frames of each kind were sent."""
        self.lost: Counter[str] = Counter()
        """How many datagrams did not arrive as they were sent, by reason."""
        self.trace = TraceHash()
        self.checker = Checker(promises_of(spec))
        link = Link(loss, delay, duplicate, reorder, corrupt, packet_loss, mtu)
        switch = Switch(bandwidth, downlink, shared, queue)
        self.network = Network(Random(f"{seed}/network"), link, switch, fragment)
        self._group = group
        self._group_id = group_id(group)
        self._addresses = Random(f"{seed}/addresses") if addresses == "random" else None
        self._effort, self._effort_max = 0, effort_max
        self._calendar = Calendar()
        self._united: bool | None = None
        self._lives = 0
        self._names: dict[Address, str] = {}
        self._parcels = 0

    # Members --------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        spec: StackSpec | None = None,
        state: bool = False,
        mtu: int = DATAGRAM_MAX,
    ) -> Member:
        """Start a member, and do not wait until it has joined; `spec` is a stack of its own.

        state: it wants the group's state first, see `Member.service`; mtu: the bytes of the largest
        datagram that its interface sends, see `Member.mtu`.
        """
        if name in self.members:
            raise LocalError(f"there is a member {name} already: use restart() for a second life")
        member = self.members[name] = Member(self, name, spec or self.spec, state, mtu)
        return member

    def join(
        self,
        *names: str,
        spec: StackSpec | None = None,
        seconds: float = JOIN_SECONDS,
        mtu: int = DATAGRAM_MAX,
    ) -> list[Member]:
        """Start members and run until all that run are in one view. Raises Timeout."""
        joined = [self.start(name, spec, mtu=mtu) for name in names]
        self.run_until(lambda: self.united, seconds, "all members to be in one view")
        return joined

    @property
    def running(self) -> list[Member]:
        """The members whose processes run and are not paused."""
        return [member for member in self.members.values() if member.state is ProcessState.RUNNING]

    @property
    def united(self) -> bool:
        """Whether all running members have one view, and no other is in it."""
        if self._united is None:
            running = self.running
            views = [member.view for member in running if member.view is not None]
            self._united = (
                len(views) == len(running) > 0
                and len({view.id for view in views}) == 1
                and len(views[0]) == len(running)
            )
        return self._united

    def changed(self) -> None:
        """A member joined, left or has another view: `united` has to be computed again."""
        self._united = None

    def build(self, name: str, spec: StackSpec, mtu: int) -> tuple[int, Peer, Stack]:
        """The number, the identity and the stack of a new process."""
        self._lives += 1
        number = self._lives
        address = number if self._addresses is None else self._addresses.getrandbits(64)
        peer = Peer(Address(address), name, name)
        self._names[peer.address] = name
        rng = Random(f"{self.seed}/member/{number}")
        me, group, keys = peer.address, self._group, self._keys
        seal = spec.make_seal(group, me, GroupSeal(keys, group, me, has_aes=True) if keys else None)
        inspected = None if seal is None else InspectedSeal(seal)
        stack = spec.build(peer, group, rng, mtu=mtu, seal=inspected)
        others = [member.stack for member in self.members.values()]
        show_places([*others, stack], dict.fromkeys([*self.members, name]))
        return number, peer, stack

    def use_keys(self, *keys: bytes) -> None:
        """Members that start from now on have these keys of a closed group: the first seals."""
        self._keys = tuple(map(Key, keys))

    # Time -----------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let this much virtual time pass."""
        until = self.now + _checked(seconds)
        while self._advance(until):
            pass

    def run_until(
        self, predicate: Callable[[], bool], seconds: float, what: str = "the condition to hold"
    ) -> None:
        """Run until the predicate holds. Raises Timeout after this much virtual time."""
        until = self.now + _checked(seconds)
        while not predicate():
            if not self._advance(until):
                raise Timeout(f"waited {seconds:g} simulated seconds in vain for {what}")

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Run until nothing is outstanding or repairable. Raises Timeout with what still is."""
        until = self.now + _checked(seconds)
        while left := outstanding(self):
            if self.now >= until:
                what = "; ".join(left[:20])
                raise Timeout(f"not settled after {seconds} simulated seconds: {what}")
            self.run(min(SETTLE_SLICE, until - self.now))

    def _advance(self, until: float) -> bool:
        """Handle all that happens at the next instant; False when that is after `until`."""
        calendar = self._calendar
        if calendar.next > until:
            self.now = self.checker.now = max(self.now, until)
            return False
        now = self.now = self.checker.now = calendar.next
        self._effort += 1
        if self._effort_max is not None and self._effort > self._effort_max:
            raise Timeout(f"after {self._effort:,} steps and frames it is still busy: a storm")
        for member, datagrams in calendar.pop().items():
            if member.wake_at <= now:
                member.wake_at = float("inf")
            member.step(datagrams)
        if calendar.instants % LOOK_INSTANTS == 0:
            self._look_at_windows()
        self.checker.compare_orders()
        return True

    def wake(self, member: Member, time: float) -> None:
        """Step a member at this time, whatever arrives."""
        member.wake_at = time
        self._calendar.wake(max(time, self.now), member)

    # The network ----------------------------------------------------------------------------------

    def transmit(self, member: Member) -> None:
        """Carry what a member's stack wants to have sent."""
        stack = member.stack
        frames = stack.env.out.frames
        if not frames:
            return
        self._effort += len(frames)
        for _, frame in frames:
            self.frames[frame.kind] += 1
            if isinstance(frame, Data) and frame.origin == member.me:
                self.checker.sent(member.record, frame)
        view = stack.view
        for peer in stack.learned:
            if view is None or peer.address not in view or peer in view.peers:
                member.known[peer.address] = peer.endpoint  # A stranger may claim any address.
        stack.learned.clear()
        seal = stack.env.seal
        for number, (target, buffers, *_) in enumerate(stack.drain()):
            data = b"".join(buffers)
            if len(data) > member.mtu and not stack.env.datagram_size.is_given:
                self.lost["refused"] += 1
                stack.shrink(member.mtu, self.now)
                continue
            inner = seal.inner[number] if isinstance(seal, InspectedSeal) else data
            receivers = self._receivers(member, target)
            self._carry(member.name, member.number, target, data, receivers, inner)

    def inject(self, data: bytes, *targets: Member, source: str = "outside") -> None:
        """Send bytes of your own making to members, as any host on the network could."""
        target = None if len(targets) > 1 else source
        self._carry(source, 0, target, data, [target.name for target in targets])

    def _receivers(self, member: Member, target: Target) -> Iterable[str]:
        if target is None:
            return [m.name for m in self.members.values() if m is not member and m.alive]
        if isinstance(target, Address):
            # Where the stack said, else where its datagrams come from; a later life may be there.
            target = member.known.get(target) or self._names.get(target, "")
        if target not in self.members:
            self.lost["unreachable"] += 1
            return ()
        return (target,)

    def _carry(
        self,
        source: str,
        number: int,
        target: Target,
        data: bytes,
        receivers: Iterable[str],
        inner: bytes | None = None,
    ) -> None:
        self._parcels += 1
        self.trace.sent(self.now, number, data)
        parcel = Parcel(self._parcels, source, self._group_id, data, inner, target is None)
        network, now = self.network, self.now
        departure = network.switch.sent(source, len(data), now)
        fates: list[tuple[str, Fate]] = []
        for name in receivers:
            fate = QUEUE_FULL if departure is None else network.carry(parcel, name, departure, now)
            member = self.members[name]
            for arrival in fate.arrivals:
                self._calendar.arrive(arrival.time, member, arrival.data)
            if fate.reason:
                self.lost[fate.reason] += 1
            if self.observer is not None:
                fates.append((name, fate))
        if self.observer is not None:
            self.observer.sent(self.now, parcel, "all" if target is None else "", fates)

    def refuse(self, member: Member, datagrams: Iterable[bytes]) -> None:
        """Datagrams reach a member that is dead: its system tells their senders, if it lives."""
        if not self._refuse:
            return
        senders = {source_of(data) for data in datagrams}
        for sender in self.running:
            if sender.me in senders and self.network.reaches(member.name, sender.name):
                sender.refusals.append(member.peer.endpoint)
                self._calendar.wake(self.now, sender)

    # Faults ---------------------------------------------------------------------------------------

    def partition(self, *sides: Iterable[Member | str]) -> None:
        """Cut these groups off from each other; members in none of them are one more group."""
        names = [[m if isinstance(m, str) else m.name for m in side] for side in sides]
        self.network.partitions.split(names)
        self.done(None, "partition " + " | ".join(" ".join(side) for side in names))

    def heal(self) -> None:
        """All members reach each other again; loss and rules stay."""
        self.network.partitions.heal()
        self.done(None, "heal")

    def drop(self, rule: Rule) -> Drop:
        """Drop the frames for which the rule is true, receiver by receiver, until `remove`."""
        return Drop(rule, self.network.rules)

    def link(self, source: Member | str, target: Member | str) -> Link:
        """The settings of the one link from source to target, to be changed."""
        ends = [end if isinstance(end, str) else end.name for end in (source, target)]
        return self.network.link(*ends)

    @property
    def loss(self) -> float:
        """The chance that a datagram is lost on its way to a receiver; sets all links."""
        return self.network.default.loss

    @loss.setter
    def loss(self, chance: float) -> None:
        self.network.set_all("loss", chance)

    # What is known --------------------------------------------------------------------------------

    def check(self) -> list[BrokenGuarantee]:
        """The violations of the guarantees up to now; an empty list is good."""
        self._look_at_windows()
        done = {member.me for member in self.running if member.has_reported}
        self.checker.find_untold(done.__contains__)
        return list(self.checker.violations)

    def _look_at_windows(self) -> None:
        for member in self.running:
            for problem in member.probe.out_of_bounds():
                self.checker.report(member.name, problem)
        for name, problem in out_of_bounds(self.running):
            self.checker.report(name, problem)

    @property
    def trace_hash(self) -> str:
        """A hash of all that has happened: the same seed gives the same one, on every machine."""
        return self.trace.hexdigest()

    def given(self, member: Member, event: Event) -> None:
        """An application was given an event."""
        self.trace.given(self.now, member.number, event)
        self.checker.took(member.record, event)
        if self.observer is not None:
            self.observer.given(self.now, member, event)

    def done(self, member: Member | None, what: str) -> None:
        """Something was done to a member, or to the world."""
        self.changed()
        self.trace.done(self.now, 0 if member is None else member.number, what)
        if self.observer is not None:
            self.observer.done(self.now, member, what)


def _checked(seconds: object) -> float:
    """Virtual time that comes to an end. Raises LocalError."""
    if not (isinstance(seconds, int | float) and 0 <= seconds < math.inf):
        raise LocalError(f"seconds is {seconds!r}: give a number, 0 or more")
    return seconds
