"""A member of a simulated world: a real stack, the application above it, and the process around it.

The application takes everything as soon as it comes, unless it is `busy`; what it sends waits in a
queue while the window is full. The process may crash, be paused (no CPU: datagrams pile up in its
socket, timers fire late), leave, and start again under its old name as a new member.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from ringcast.closed.inspected import InspectedSeal
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.model.events import Event, Skipped
from ringcast.core.model.view import View
from ringcast.core.wire.outbox import MTU
from ringcast.errors import Closed, LocalError, Timeout
from ringcast.layers.fragment.layer import FragmentLayer
from ringcast.layers.large import LargeMessagesLayer
from ringcast.layers.majority import MajorityLayer
from ringcast.services.calls import PendingCall, Wait
from ringcast.sim.checks.guarantees import MemberRecord
from ringcast.sim.checks.memory import MemoryUse
from ringcast.sim.checks.probe import WindowMarks
from ringcast.sim.engine.log import Delivered, Log
from ringcast.sim.engine.network import RECEIVE_BUFFER
from ringcast.sim.engine.placement import PlainBuffers, place
from ringcast.sim.engine.sending import SendQueue
from ringcast.sim.engine.services import Service
from ringcast.spec import StackSpec

if TYPE_CHECKING:
    from ringcast.sim.engine.world import World

TAKE_MAX = 1 << 30
"""An application that is not busy takes all that there is."""


class ProcessState(Enum):
    """What the process of a member is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    CRASHED = "crashed"
    LEFT = "left"


class Member:
    """One process of the world, by its name. Made by `World.join` and `World.start`."""

    def __init__(
        self, world: World, name: str, spec: StackSpec, seeks: bool = False, mtu: int = MTU
    ) -> None:
        self.name = name
        self.spec = spec
        self.mtu = mtu
        """Bytes of the largest datagram that its interface sends; may be changed at any time. The
        network's links have their own."""
        self._world = world
        self._seeks = seeks
        self._begin()

    def _begin(self) -> None:
        """A new process with a new identity."""
        world = self._world
        self.peer: Peer
        self.number, self.peer, self.stack = world.build(self.name, self.spec, self.mtu)
        self.stack.env.buffers = PlainBuffers()
        self.state = ProcessState.RUNNING
        layers = (part for part in self.stack.parts if isinstance(part, MajorityLayer))
        self.majority = next(layers, None)
        """The layer that says whether sends are allowed, in a stack with one."""
        self.record = MemberRecord(self.name, self.peer.address)
        self.probe = WindowMarks(self.stack)
        self.memory = MemoryUse(self.stack)
        self.log = Log(world.keep)
        self.known: dict[Address, str] = {}
        """Where members are reached, as far as the stack has told its transport."""
        self.wake_at = float("inf")
        """The time of the earliest wake-up that the world has noted."""
        self.refusals: list[str] = []
        """Endpoints whose system has said that no process listens there."""
        self.leaving = False
        self.timeouts: list[Timeout] = []
        """What those sends have ended with that found no room in time."""
        self._seen: View | None = None
        self._busy = False
        self._queue = SendQueue(self.stack, world.checker, self.record)
        self.service = Service(self.stack, self._queue, self.log, self._seeks)
        """Calls and states; see there."""
        self._backlog: list[bytes] = []
        self._backlog_size = 0
        world.checker.add(self.record)
        self._note("starts")
        self.stack.start(world.now)
        self._after()

    # What a user looks at -------------------------------------------------------------------------

    @property
    def me(self) -> Address:
        """The identity of this life."""
        return self.peer.address

    @property
    def view(self) -> View | None:
        """The view that the stack has installed."""
        return self.stack.view

    @property
    def delivered(self) -> Delivered:
        """What the application was given in this life, in order."""
        return self.log.delivered

    @property
    def views(self) -> list[View]:
        """The views that the application was told of."""
        return self.log.views

    @property
    def skipped(self) -> list[Skipped]:
        """What the application was told would not come."""
        return self.log.skipped

    @property
    def events(self) -> list[Event]:
        """Everything that the application was given, batches only when the world keeps them."""
        return self.log.events

    @property
    def blocked(self) -> bool:
        """Whether messages wait for room in a window."""
        return bool(self._queue)

    @property
    def queued(self) -> int:
        """How many messages wait for room."""
        return self._queue.count

    @property
    def refused(self) -> int:
        """How many messages were queued when the group was closed, or who they were for left."""
        return self._queue.refused

    @property
    def alive(self) -> bool:
        """Whether the process exists and belongs to the group or wants to; it may be paused."""
        return self.state in (ProcessState.RUNNING, ProcessState.PAUSED)

    @property
    def has_reported(self) -> bool:
        """Whether its application was told of every large message that another member lacks."""
        for part in self.stack.parts:
            if isinstance(part, LargeMessagesLayer) and part.unacked:
                return False
            if isinstance(part, FragmentLayer) and part.holding:
                return False
        return not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether the application takes nothing."""
        return self._busy

    def stats(self) -> dict[str, object]:
        """Counters and window marks as plain data."""
        return self.stack.snapshot().plain() | {"queued": self.queued, "state": self.state.value}

    # What a user does -----------------------------------------------------------------------------

    def send(
        self, payload: Payload | Sequence[Payload], to: Address | Member | None = None
    ) -> None:
        """Send one message or a run of them; what finds no room is queued.

        Raises Closed, TooLarge. What waits longer than its stack allows ends up in `timeouts`.
        """
        payloads = [payload] if isinstance(payload, bytes | memoryview) else [*payload]
        if not all(isinstance(each, bytes | memoryview) for each in payloads):
            raise TypeError("a message is bytes: encode it first")
        if not self.alive or self.stack.closed is not None:
            raise Closed(f"{self.name} is not in the group any more: {self._reason}")
        if not payloads:
            return
        target = to.me if isinstance(to, Member) else to
        self._queue.add(payloads, target)
        if self.state is ProcessState.RUNNING:
            self._after()

    def send_many(self, payloads: Sequence[Payload], to: Address | Member | None = None) -> None:
        """Send a run of messages."""
        self.send(payloads, to)

    def try_send(self, payload: Payload, to: Address | Member | None = None) -> bool:
        """Send one message if there is room for it now; False when there is not."""
        target = to.me if isinstance(to, Member) else to
        if self.state is not ProcessState.RUNNING or target in self._queue:
            return False
        if not self.stack.writable(target):
            return False
        self.send(payload, target)
        return True

    def call(
        self,
        payload: Payload,
        to: Sequence[Member] | None = None,
        wait: Wait = "all",
        timeout: float = 10.0,
    ) -> PendingCall:
        """Call these members, or all members; `done` says when there are `replies`."""
        members = None if to is None else [member.me for member in to]
        self.stack.reach(self._world.now)
        call = self.service.correlator.call(payload, members, wait, timeout)
        self._after()
        return call

    def busy(self) -> None:
        """The application stops taking messages; the stack goes on."""
        self._busy = True
        self._note("is busy")

    def idle(self) -> None:
        """The application takes messages again."""
        self._busy = False
        self._note("is idle")
        if self.state is ProcessState.RUNNING:
            self._after()

    def pause(self) -> None:
        """The process gets no CPU until `resume`."""
        self._expect(ProcessState.RUNNING, "paused")
        self.state = ProcessState.PAUSED
        self._note("is paused")

    def resume(self) -> None:
        """The process goes on: first it finds what is in its socket, and its timers are late."""
        self._expect(ProcessState.PAUSED, "resumed")
        self.state = ProcessState.RUNNING
        self._note("goes on")
        datagrams, self._backlog, self._backlog_size = self._backlog, [], 0
        self.step(datagrams)

    def crash(self) -> None:
        """The process is gone, at once and for good, or until `restart`."""
        if self.alive:
            self._end(ProcessState.CRASHED, "crashes")

    def leave(self) -> None:
        """Leave the group in order; it is done when `state` is LEFT."""
        self._expect(ProcessState.RUNNING, "asked to leave")
        self._note("leaves")
        self.leaving = True
        self.stack.leave(self._world.now)
        self._after()

    def restart(self) -> None:
        """A new process with a new identity, under the old name; the old one crashes first."""
        self.crash()
        self._begin()

    def use_keys(self, *keys: bytes) -> None:
        """Seal with the first of these keys from now on, and open with all of them."""
        seal = self.stack.env.seal
        sealer = seal.sealer if isinstance(seal, InspectedSeal) else None
        if not isinstance(sealer, GroupSeal):
            raise LocalError(f"{self.name} has no key to replace: make its world with a key")
        sealer.use(tuple(map(Key, keys)))
        self._note(f"uses the keys {', '.join(sealer.key_ids)}")

    # What the world does --------------------------------------------------------------------------

    def step(self, datagrams: list[bytes]) -> None:
        """Take what has arrived and do what is due."""
        if self.state is ProcessState.PAUSED:
            self._pile_up(datagrams)
            return
        if self.state is not ProcessState.RUNNING:
            self._world.refuse(self, datagrams)
            return
        now = self._world.now
        if self.refusals:
            self.stack.hint(self.refusals, now)
        if datagrams:
            self._world.trace.arrived(now, self.number, datagrams)
            is_open = self.stack.env.seal is None
            placed = place(datagrams, self.stack.receiver.placement) if is_open else datagrams
            self.stack.receive(placed, now)
        if self.stack.deadline <= now:
            self.stack.wake(now)
        self._after()

    def _after(self) -> None:
        """What follows each step: send, let the application take and send, set the alarm."""
        world, stack = self._world, self.stack
        if world.measure:
            self.memory.look()
        world.transmit(self)
        while True:
            took = not self._busy and bool(stack.waiting)
            if took:
                self._take()
            served = self.service.run()
            sent = bool(self._queue) and self._queue.flush(world.now)
            if sent and world.measure:
                self.memory.look()
            if not took and not sent and not served:
                break
            world.transmit(self)
        if self.majority is not None:
            world.checker.majorities.look(self.name, self.majority)
        if stack.view is not self._seen:
            self._seen = stack.view
            world.changed()
        if stack.closed is not None:
            self._end(ProcessState.LEFT, f"is out: {stack.closed}")
            return
        if self.probe.low > self.record.purged and stack.view is self.record.view:
            world.checker.purged(self.record, self.probe.low)
        deadline = stack.deadline
        if self._queue and stack.block_times:
            self.timeouts += self._queue.expire(world.now)
            deadline = min(deadline, self._queue.deadline)
        if deadline < self.wake_at:
            world.wake(self, deadline)

    def _take(self) -> None:
        world, now = self._world, self._world.now
        for event in self.stack.take(TAKE_MAX, now):
            world.given(self, event)
            self.service.give(event)
        self.stack.consumed(now)

    def _pile_up(self, datagrams: list[bytes]) -> None:
        for data in datagrams:
            if self._backlog_size + len(data) <= RECEIVE_BUFFER:
                self._backlog.append(data)
                self._backlog_size += len(data)

    def _end(self, state: ProcessState, what: str) -> None:
        self.state = state
        self.record.gone = True
        self._queue.close()
        self._backlog.clear()
        self._note(what)

    @property
    def _reason(self) -> str:
        return self.stack.closed or f"it has {self.state.value}"

    def _expect(self, state: ProcessState, what: str) -> None:
        if self.state is not state:
            raise LocalError(f"{self.name} cannot be {what}: it is {self.state.value}")

    def _note(self, what: str) -> None:
        self._world.done(self, what)

    def __repr__(self) -> str:
        return f"Member({self.name}, {self.state.value}, {self.view})"
