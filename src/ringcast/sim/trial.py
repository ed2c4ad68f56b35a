"""One simulated run, from settings to figures: a call of `ringcast sim`, a row of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from math import inf
from random import Random
from time import perf_counter

from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Ack, Data, UnicastData, Whole
from ringcast.errors import ConfigError
from ringcast.sim.checks.meter import Meter
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.network import MTU
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.engine.settling import outstanding
from ringcast.sim.engine.shortfall import lacking, outpaced, reported
from ringcast.sim.engine.world import World
from ringcast.spec import StackSpec

SLICE = 0.01
"""How often progress and memory are looked at, in virtual seconds."""
SIZE_MAX = 256_000_000
"""Bytes of a message, at the most."""
MEMBERS_MAX = 10_000
MESSAGES_MAX = 100_000_000
HEAL = "heal"
ACTIONS = ("crash", "pause", "resume", "busy", "idle", "leave", "restart", "partition", HEAL)
"""What may happen to members; healing is for all of them."""
DATA_KINDS = (Data.kind, UnicastData.kind)
ACK_KINDS = (Ack.kind, Whole.kind)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that happens to members at a time after the group has formed."""

    at: float
    action: str
    """One of ACTIONS."""
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{','.join(self.names)}@{self.at!r}" if self.names else repr(self.at)


def parse_fault(action: str, text: str) -> Fault:
    """The fault that an action and a text as "m1,m2@0.5" mean; to heal, "0.5" is enough.

    Raises ConfigError.
    """
    names, at, time = text.rpartition("@")
    if (action == HEAL) == bool(at):
        how = f"{HEAL} 0.5" if action == HEAL else f"{action} m1@0.5"
        raise ConfigError(f"{action} {text} has {'members' if at else 'no time'}: write {how}")
    try:
        when = float(time)
    except ValueError:
        when = -1.0
    if not 0 <= when < inf:
        raise ConfigError(f"{action} {text} has no time: give seconds, say 0.5")
    return Fault(at=when, action=action, names=tuple(names.split(",")) if at else ())


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The settings of one run."""

    spec: StackSpec
    seed: int = 0
    members: int = 4
    messages: int = 1_000
    """In total, from all senders together."""
    size: int = 100
    """Bytes of each message."""
    batch: int = 64
    """Messages that a sender sends at once."""
    senders: int | None = None
    """How many of the members send; None for all."""
    still: int = 0
    """How many of the members, the last ones, get nothing of what is sent to the group."""
    duration: float = 0.0
    """Virtual seconds over which the sending is spread; 0 sends as fast as the windows let it."""
    loss: float = 0.0
    delay: tuple[float, float] = (0.0001, 0.0005)
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    bandwidth: float | None = None
    """Bytes per second of each sender's uplink."""
    packet_loss: float = 0.0
    mtu: int = MTU
    downlink: float | None = None
    """Bytes per second of each receiver's downlink."""
    shared: float | None = None
    """Bytes per second of the link that all members share."""
    queue: int | None = None
    """Bytes that wait at each of these before what arrives is dropped."""
    faults: tuple[Fault, ...] = ()
    timeout: float = 600.0
    """Virtual seconds after which the run is given up."""

    def __post_init__(self) -> None:
        for name in ("members", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: give at least 1")
        for name in ("messages", "size", "duration"):
            if not 0 <= getattr(self, name) < inf:
                raise ConfigError(f"{name} is {getattr(self, name)}: give 0 or more")
        for name, most in (("members", MEMBERS_MAX), ("messages", MESSAGES_MAX)):
            if getattr(self, name) > most:
                raise ConfigError(f"{name} is {getattr(self, name):,}: give at most {most:,}")
        if self.size > SIZE_MAX:
            raise ConfigError(f"size is {self.size:,}: give at most {SIZE_MAX:,} bytes")
        if not self.timeout > 0:
            raise ConfigError(f"timeout is {self.timeout}: give seconds above 0")
        if self.senders is not None and not 1 <= self.senders <= self.members:
            raise ConfigError(f"senders is {self.senders}: give 1 to {self.members}")
        if not 0 <= self.still < self.members:
            raise ConfigError(f"still is {self.still}: give 0 to {self.members - 1}")
        known = set(self.names)
        for fault in self.faults:
            unknown = [name for name in fault.names if name not in known]
            if unknown:
                raise ConfigError(
                    f"there is no member {unknown[0]}: they are m1 to m{self.members}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """What the members are called."""
        return tuple(f"m{number}" for number in range(1, self.members + 1))


@dataclass(frozen=True, kw_only=True)
class TrialOutcome:
    """The outcome of one run."""

    violations: list[str]
    outstanding: list[str]
    """What was not done when the run ended; nothing when it is complete."""
    trace_hash: str
    sent: int
    delivered: int
    expected: int
    """Deliveries that there should be, over all members."""
    retransmitted: int
    control_per_delivered: float
    """Frames that carry no messages, for each message delivered to an application."""
    frames: dict[str, int]
    lost: dict[str, int]
    """Datagrams that did not arrive as they were sent, by reason."""
    acks: int
    """Frames that ack messages to the group."""
    lacking: dict[str, int]
    """Messages that members were not given, by their names."""
    reported: dict[str, int]
    """Messages that were freed before these members had said that they have them."""
    outpaced: dict[str, float]
    """Seconds that members had held senders back when those went on without them."""
    window_bytes_max: int
    """The most that all windows of one member held at a time."""
    sender_bytes_max: int
    """The most that a member held of its own messages: in its window, or on the way there."""
    sender_bytes_bound: int
    receiver_bytes_max: int
    """The most that a member held of the messages of all others: in windows, in the making, waiting
    for the application."""
    receiver_bytes_bound: int
    """What it may hold of those that wait for it."""
    latency_p50: float | None
    """Virtual seconds that half of all deliveries to others took; None when there were none."""
    latency_p99: float | None
    latency_max: float | None
    throughput: float | None
    """Messages that a member was given a virtual second, on average, from the first that was sent
    to the last that was delivered."""
    views: int
    """Views that were installed after all members had joined."""
    virtual_seconds: float
    join_seconds: float
    """Virtual seconds until all members were in one view."""
    real_seconds: float
    members: list[str]
    view: str

    @property
    def complete(self) -> bool:
        """Whether everything was delivered and every guarantee held."""
        return not self.violations and not self.outstanding and self.delivered == self.expected


Progress = Callable[[int, int, float], None]
"""Called now and then with deliveries, expected deliveries, and virtual seconds."""


def run(
    trial: Trial,
    observer: WorldListener | None = None,
    progress: Progress | None = None,
    keep: bool = False,
) -> TrialOutcome:
    """Run a trial to its end."""
    return _TrialRun(trial, observer, progress, keep).run()


class _TrialRun:
    def __init__(
        self, trial: Trial, observer: WorldListener | None, progress: Progress | None, keep: bool
    ) -> None:
        self._trial = trial
        self._progress = progress
        self._world = World(
            trial.seed,
            trial.spec,
            loss=trial.loss,
            delay=trial.delay,
            duplicate=trial.duplicate,
            reorder=trial.reorder,
            corrupt=trial.corrupt,
            bandwidth=trial.bandwidth,
            packet_loss=trial.packet_loss,
            mtu=trial.mtu,
            downlink=trial.downlink,
            shared=trial.shared,
            queue=trial.queue,
            keep=keep,
            observer=observer,
            measure=True,
        )
        self._meter = self._world.checker.meter = Meter(paced=trial.duration > 0)
        self._peak = 0
        self._expected = trial.messages * (trial.members - trial.still)
        self._views_before = set[ViewId]()

    def run(self) -> TrialOutcome:
        began = perf_counter()
        world = self._world
        members = world.join(*self._trial.names, seconds=self._trial.timeout)
        joined = world.now
        self._views_before = self._views
        if self._trial.still:
            still = self._trial.names[-self._trial.still :]
            world.drop(lambda frame: frame.kind == Data.kind and frame.target in still)
        self._work(members)
        left = self._finish()
        return self._outcome(left, joined, perf_counter() - began)

    def _work(self, members: list[Member]) -> None:
        """Send everything, and let the faults happen, each at its time."""
        start = self._world.now
        plan = [(start + fault.at, index, fault) for index, fault in enumerate(self._trial.faults)]
        plan.sort()
        for time, member, run in self._sends(members, start):
            while plan and plan[0][0] <= time:
                self._until(plan[0][0])
                self._strike(plan.pop(0)[2])
            self._until(time)
            if member.alive:
                member.send(run)
                self._peak = max(self._peak, member.probe.nbytes)
        for time, _, fault in plan:
            self._until(time)
            self._strike(fault)

    def _sends(
        self, members: list[Member], start: float
    ) -> Iterator[tuple[float, Member, list[bytes]]]:
        """The sender and the time of each run: turn by turn, evenly over the duration; no two
        payloads alike.

        Payloads of less than eight bytes repeat after a while.
        """
        trial = self._trial
        payload = Random(trial.seed).randbytes(trial.size)
        whole, rest = divmod(trial.messages, trial.batch)
        sizes = [trial.batch] * whole + ([rest] if rest else [])
        turns = islice(cycle(members[: trial.senders]), len(sizes))
        width = min(8, trial.size)
        rest_of_payload, sent = payload[width:], 0
        step = trial.duration / len(sizes) if sizes else 0.0
        for number, (member, size) in enumerate(zip(turns, sizes, strict=True)):
            numbers = range(sent, sent + size)
            sent += size
            heads = (n.to_bytes(8, "big")[8 - width :] for n in numbers)
            yield start + number * step, member, [head + rest_of_payload for head in heads]

    def _strike(self, fault: Fault) -> None:
        world = self._world
        if fault.action == HEAL:
            world.heal()
        elif fault.action == "partition":
            world.partition(fault.names)
        else:
            for name in fault.names:
                getattr(world.members[name], fault.action)()

    def _finish(self) -> list[str]:
        """Run until nothing is outstanding; what still is when the time is up."""
        world = self._world
        until = world.now + self._trial.timeout
        while left := outstanding(world):
            if world.now >= until:
                return left
            self._until(world.now + SLICE)
        return []

    def _until(self, time: float) -> None:
        world = self._world
        while (left := time - world.now) > 1e-9:
            world.run(min(SLICE, left))
            self._look()

    def _look(self) -> None:
        members = self._world.running
        self._peak = max(self._peak, *(member.probe.nbytes for member in members), 0)
        if self._progress is not None:
            self._progress(self._delivered, self._expected, self._world.now)

    @property
    def _delivered(self) -> int:
        return sum(len(member.delivered) for member in self._world.members.values())

    @property
    def _views(self) -> set[ViewId]:
        return {view.id for member in self._world.members.values() for view in member.views}

    def _throughput(self, joined: float) -> float | None:
        last_at = self._meter.last_at
        if last_at is None or last_at <= joined:
            return None
        return self._delivered / self._trial.members / (last_at - joined)

    def _received_bound(self, members: list[Member]) -> int:
        senders = [member for member in members if member.record.largest]
        others = len(senders) - (len(senders) == len(members) > 1)
        return others * members[0].memory.received_bound(self._trial.size)

    def _outcome(self, left: list[str], joined: float, real: float) -> TrialOutcome:
        world, delivered = self._world, self._delivered
        members = list(world.members.values())
        counters = [member.stack.counters for member in members]
        control = sum(n for kind, n in world.frames.items() if kind not in DATA_KINDS)
        # Who crashes or is cut off is owed nothing: then all that the survivors lack is
        # outstanding.
        expected = self._expected if not self._trial.faults else delivered + len(left)
        views = [member.view for member in world.running]
        latency = self._meter.latency
        return TrialOutcome(
            violations=[str(violation) for violation in world.check()],
            outstanding=left,
            trace_hash=world.trace_hash,
            sent=sum(member.probe.high for member in members),
            delivered=delivered,
            expected=expected,
            retransmitted=sum(counter["resent"] for counter in counters),
            control_per_delivered=control / delivered if delivered else 0.0,
            frames=dict(sorted(world.frames.items())),
            lost=dict(sorted(world.lost.items())),
            acks=sum(world.frames[kind] for kind in ACK_KINDS),
            lacking={} if self._trial.faults else lacking(members, self._trial.messages),
            reported=reported(members),
            outpaced=outpaced(members),
            window_bytes_max=self._peak,
            sender_bytes_max=max(member.memory.peak.sent for member in members),
            sender_bytes_bound=members[0].memory.sent_bound(self._trial.size),
            receiver_bytes_max=max(member.memory.peak.received for member in members),
            receiver_bytes_bound=self._received_bound(members),
            latency_p50=latency.quantile(0.5),
            latency_p99=latency.quantile(0.99),
            latency_max=latency.longest if latency.count else None,
            throughput=self._throughput(joined),
            views=len(self._views - self._views_before),
            virtual_seconds=world.now,
            join_seconds=joined,
            real_seconds=real,
            members=[member.name for member in world.running],
            view=str(views[0]) if views else "",
        )
