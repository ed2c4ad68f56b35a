"""The stack: one member's protocols as a function of what comes in and when.

Its owner (the driver over sockets, the simulator over a heap) calls a few verbs, and after each of
them sends what `drain` returns, takes events when the application wants some, and wakes the stack
at `deadline`:

    start(now)   receive(datagrams, now)   send(payloads, to, now)   wake(now)   take(limit, now)
    leave(now)

Nothing here blocks, reads a clock or calls the application.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence, Sized
from itertools import accumulate

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import CALL, Batch, Payload, common_size
from ringcast.core.model.block_times import BlockTimes
from ringcast.core.model.events import Event, Suspected, ViewChange
from ringcast.core.model.view import NO_VIEW, View
from ringcast.core.stack.blocked_time import BlockedTime
from ringcast.core.stack.datagram_size import SIZE_MIN
from ringcast.core.stack.env import Dice, Env
from ringcast.core.stack.inbox import Inbox, ServicePart
from ringcast.core.stack.part import Installation, Part, Receipt, Spec
from ringcast.core.stack.ports import FailureWatch, GroupDelivery, PathWatch, StableMarks
from ringcast.core.stack.snapshot import StackSnapshot
from ringcast.core.stack.wiring import build
from ringcast.core.wire.codec import group_id
from ringcast.core.wire.frames import Frame, Suspect
from ringcast.core.wire.outbox import MTU, Datagram
from ringcast.core.wire.receiver import Receiver
from ringcast.core.wire.seal import Seal
from ringcast.core.wire.segments import Received
from ringcast.errors import Closed, NotMember, TooLarge


class Stack:
    """One member's protocols, built from specs; see the module's docstring for the verbs."""

    def __init__(
        self,
        specs: Sequence[Spec],
        peer: Peer,
        group: str,
        rng: Dice,
        clock_offset: float = 0.0,
        mtu: int = MTU,
        seal: Seal | None = None,
    ) -> None:
        self.group = group
        self.view: View | None = None
        self._members: frozenset[Address] = frozenset()
        """Of the view."""
        self.closed: str | None = None
        """Why the stack is closed; None while it runs."""
        self.env = Env(peer, rng, clock_offset, mtu, seal)
        number = group_id(group)
        self.receiver = Receiver(number, peer.address, self._take, self.env.counters, seal)
        self._inbox = Inbox(self.env)
        self._built = build(specs, self.env, self._inbox, self, number, self.receiver.placement)
        self._top = self._built.top
        self.blocked_time = BlockedTime(self.env, self._built.ladder)
        """To be told by the owner of the queue when sends to the group begin to wait."""
        self._owners: dict[type[Frame], Part] = {
            kind: part for part in self._built.parts for kind in part.kinds
        }
        self._forming = frozenset(
            kind
            for part in self._built.parts
            if part.role_name in ("discovery", "membership")
            for kind in part.kinds
        )
        """What groups form and merge with."""
        self._listeners = [part for part in self._built.parts if part.hears]

    def attach(self, correlator: ServicePart) -> None:
        """Attach the part that reads service messages and calls; before `start`."""
        self._built.parts.append(correlator)
        self._owners.update(dict.fromkeys(correlator.kinds, correlator))
        self._inbox.correlator = correlator
        correlator.connect(self._built.ports)

    @property
    def unread_bytes(self) -> int:
        """Bytes that wait for the application."""
        return self._inbox.nbytes

    # The verbs -----------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin to look for the group; the first ViewChange among the events says that it is
        joined."""
        self.env.now = now
        for part in self._built.parts:
            part.on_start()

    def receive(self, datagrams: Iterable[Received], now: float) -> None:
        """Take all datagrams that have arrived. Malformed ones are counted and dropped."""
        self.env.now = max(now, self.env.now)
        view = NO_VIEW if self.view is None else self.view.id
        gate = self._built.gate
        if gate is not None:
            datagrams = (one for one in datagrams if gate.admit())
        self.receiver.receive(datagrams, view)

    def _take(self, frames: Sequence[Frame], source: Address) -> None:
        if source == self.env.me or self.closed is not None:
            return
        if source not in self._members and self.view is not None:
            self.env.counters["received_strangers"] += 1
            if not frames or type(frames[0]) in self._forming:
                self.env.counters["received_joiners"] += 1
        for part in self._listeners:
            part.on_heard(source)
        owners = self._owners
        for frame in frames:
            owner = owners.get(type(frame))
            if owner is None:
                self.env.counters["dropped_unowned"] += 1
            else:
                owner.on_frame(frame, source)

    def send(
        self,
        payloads: Sequence[Payload],
        to: Address | None,
        now: float,
        flags: int = 0,
        size: int | None = None,
    ) -> int:
        """Send as many of the payloads as there is room for, as one run; returns how many that was.

        size: what `common_size` says of them, if the caller knows it.
        The caller keeps the rest until `writable`. Raises Closed, TooLarge and NotMember.
        """
        env = self.env
        env.now = max(now, env.now)
        if size is None:
            size = common_size(payloads)
        self._check_sendable(size or max(map(len, payloads), default=0), to)
        room, space = self._top.room(to)
        count = min(len(payloads), room)
        if count <= 0:
            return 0
        if size:
            count = min(count, max(1, space // size))
            nbytes = count * size
        else:
            ends = list(accumulate(map(len, payloads[:count])))
            count = min(count, max(1, bisect_right(ends, space)))
            nbytes = ends[count - 1]
        if count < len(payloads):
            payloads = payloads[:count]
        if to is None:
            if flags & CALL and self._inbox.correlator is not None:
                self._inbox.correlator.sent(payloads)
            if env.tracer is not None:
                env.tracer.given(payloads)
            if self.blocked_time.reason:
                self.blocked_time.end()
        self._top.down(Batch(env.me, payloads, nbytes, dest=to, flags=flags, size=size))
        return count

    def wake(self, now: float) -> None:
        """Do what is due by now."""
        self.env.now = max(now, self.env.now)
        timers = self.env.timers
        while self.closed is None and (due := timers.pop_due(self.env.now)) is not None:
            part, name = due
            part.on_timer(name)

    def take(self, limit: int, now: float) -> list[Event]:
        """The application's next events, with up to `limit` messages; call `consumed` when it is
        done with them."""
        self.env.now = max(now, self.env.now)
        return self._inbox.take(limit)

    def consumed(self, now: float) -> None:
        """The application is done with everything that `take` gave it: now it counts as
        delivered."""
        self.env.now = max(now, self.env.now)
        self._inbox.consumed()

    def reach(self, now: float) -> None:
        """It is so late, for what the owner does with the correlator next."""
        self.env.now = max(now, self.env.now)

    def leave(self, now: float) -> None:
        """Leave in order; `closed` says when it is done."""
        self.env.now = max(now, self.env.now)
        if self.closed is None:
            self._built.membership.leave()

    def hint(self, endpoints: list[str], now: float) -> None:
        """The transport has signs that the members at these endpoints have crashed: connections
        were refused or reset. Each is asked at once, and suspected only if it stays silent. Empties
        the list."""
        self.env.now = max(now, self.env.now)
        while endpoints:
            endpoint = endpoints.pop()
            for peer in () if self.view is None or self.closed is not None else self.view.peers:
                if peer.endpoint == endpoint and peer.address != self.env.me:
                    self._built.ports[FailureWatch].hint(peer.address, is_refusal=True)

    def shrink(self, size: int, now: float) -> None:
        """The transport sends no datagrams above this size any more."""
        self.env.now = max(now, self.env.now)
        watch = self._built.ports.get(PathWatch)
        if self.env.datagram_size.is_given or size >= self.env.datagram_size.size:
            return
        if watch is not None:
            watch.shrunk(max(SIZE_MIN, size))
        else:
            self.bound_path(max(SIZE_MIN, size), is_refused=True)

    def farewell(self) -> list[Datagram]:
        """What tells the other members that this one is gone, when it has failed in the middle of a
        step and can do nothing else any more."""
        self.env.out.frames = [(None, Suspect((self.env.me,)))]
        return self.drain()

    def ignore_messages(self) -> None:
        """The application wants no messages: they count as delivered as they come."""
        self._inbox.ignores = True

    # What the owner reads ------------------------------------------------------------------------

    def drain(self) -> list[Datagram]:
        """The datagrams to be sent, in order; they are the caller's from here on."""
        return self._built.wire.pack(self.env.out)

    @property
    def learned(self) -> list[Peer]:
        """Members whose whereabouts the transport should know; the caller empties it."""
        return self.env.out.learned

    @property
    def deadline(self) -> float:
        """When `wake` is to be called next."""
        return self.env.timers.deadline if self.closed is None else float("inf")

    @property
    def waiting(self) -> Sized:
        """What `take` has to give, to be looked at for its length only; always the same object."""
        return self._inbox.events

    @property
    def waits_for(self) -> list[Address]:
        """The members without whom nothing more can be sent, as far as a layer knows any."""
        named = (member for part in self.parts for member in part.waits_for)
        return list(dict.fromkeys(named))

    @property
    def block_text(self) -> str:
        """Why nothing can be sent, where a layer can say that; else empty."""
        return next((layer.block_text for layer in self._built.ladder if layer.block_text), "")

    @property
    def block_times(self) -> BlockTimes:
        """How long a message may wait until it is `writable`, by its size."""
        return self._built.block_times

    def writable(self, to: Address | None = None) -> bool:
        """Whether `send` would take at least one message now."""
        return self.closed is None and self._top.room(to)[0] > 0

    @property
    def max_message(self) -> int:
        """The largest message that can be sent, in bytes."""
        return self._built.max_message

    @property
    def counters(self) -> dict[str, int]:
        """How often each thing happened, by name."""
        return self.env.counters

    @property
    def parts(self) -> list[Part]:
        """The parts from the top of the ladder to the control parts, to be looked at only."""
        return self._built.parts

    @property
    def stability(self) -> StableMarks | None:
        """The part that knows what is stable; `transmit` is due after `begin_round`."""
        return self._built.ports.get(StableMarks)

    def snapshot(self) -> StackSnapshot:
        """View, marks and counters; what parts say by their roles."""
        view = self.view
        parts = {part.role_name: part.snapshot() for part in self._built.parts}
        return StackSnapshot(
            roles={role: said for role, said in parts.items() if role and said is not None},
            me=self.env.me,
            view=None if view is None else view.id,
            members=() if view is None else tuple(view.name(member) for member in view),
            counters=dict(self.env.counters),
            closed=self.closed,
        )

    # What parts ask of the stack (ports.Control) -------------------------------------------------

    def install(self, installation: Installation) -> None:
        """Give a view to every part, then to the application."""
        for layer in reversed(self._built.ladder):
            layer.flush()
        self.view = installation.view
        self._members = frozenset(installation.view)
        for peer in installation.view.peers:
            self.env.out.learn(peer)
        self.env.datagram_size.fit(installation.view.peers)
        self._resize()
        self._inbox.push(ViewChange(installation.view, installation.joined, installation.left))
        for part in self._built.parts:
            part.on_view(installation)
        self._inbox.may_send = True

    @property
    def drained(self) -> bool:
        """Whether all that this member sent, to the group or to one member, was delivered."""
        return self._built.bottom.drained

    def receipts(self, now: float) -> list[Receipt] | None:
        """What tells later who lacks something that this member has sent up to now; None while a
        layer holds some of it."""
        self.env.now = max(now, self.env.now)
        multicast: object = self._built.ports[GroupDelivery]
        if not all(layer.above.drained for layer in self._built.ladder if layer is multicast):
            return None
        found = (layer.receipt() for layer in self._built.ladder)
        return [receipt for receipt in found if receipt is not None]

    def emit(self, event: Event) -> None:
        """Queue an event for the application."""
        self._inbox.push(event)

    def suspect(self, member: Address, suspected: bool) -> None:
        """Tell every part that a member is suspected, or no longer."""
        if suspected:
            self._inbox.push(Suspected(member))
        for part in self._built.parts:
            part.on_suspect(member, suspected)

    def bound_path(self, size: int | None, is_refused: bool = False) -> None:
        """Send no larger datagrams than these, since larger ones do not arrive."""
        self.env.datagram_size.path, self.env.datagram_size.is_refused = size, is_refused
        self._resize()

    def _resize(self) -> None:
        if self._built.wire.resize():
            for part in self._built.parts:
                part.on_resize()

    def finish(self, reason: str) -> None:
        """Close for good."""
        if self.closed is None:
            self.closed = reason

    # ---------------------------------------------------------------------------------------------

    def check(self, payloads: Sequence[Payload], to: Address | None) -> None:
        """Raise what `send` would raise for these, now or later, whether there is room or not."""
        self._check_sendable(max(map(len, payloads), default=0), to)

    def _check_sendable(self, size: int, to: Address | None) -> None:
        if self.closed is not None:
            raise Closed(f"the group is closed: {self.closed}")
        if to is not None and to not in self._members:
            raise NotMember(f"{to} is not in the view; send to one of view.members")
        largest = self._built.max_message
        if size > largest:
            raise TooLarge(
                f"a message of {size:,} bytes is larger than the {largest:,} that this stack"
                " carries; split it, or use a stack with Fragment and a larger max_message"
            )
