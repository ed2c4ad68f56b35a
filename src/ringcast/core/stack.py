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

from ringcast.core.address import Address, Peer
from ringcast.core.batch import CALL, Batch, Payload, common_size
from ringcast.core.blocktimes import BlockTimes
from ringcast.core.codec import decode, group_id
from ringcast.core.env import Dice, Env
from ringcast.core.events import Event, Suspected, ViewChange
from ringcast.core.express import RunReader, read_pair
from ringcast.core.frames import Frame
from ringcast.core.inbox import Desk, Inbox
from ringcast.core.landing import LANDED
from ringcast.core.outbox import Datagram
from ringcast.core.part import Installation, Part, Spec
from ringcast.core.ports import Ports
from ringcast.core.view import NO_VIEW, View
from ringcast.core.wiring import build
from ringcast.errors import Closed, NotMember, RemoteError, TooLarge


class Stack:
    """One member's protocols, built from specs; see the module's docstring for the verbs."""

    def __init__(
        self, specs: Sequence[Spec], peer: Peer, group: str, rng: Dice, clock_offset: float = 0.0
    ) -> None:
        self.group = group
        self.view: View | None = None
        self.closed: str | None = None
        """Why the stack is closed; None while it runs."""
        self.env = Env(peer, rng, clock_offset)
        self._group_id = group_id(group)
        self._reader = RunReader(self._group_id)
        self.landing = self.env.landing
        """Where the next datagram may be written to; LANDED stands for one that was."""
        self.landing.group = self._group_id
        self._inbox = Inbox(self.env)
        self._built = build(specs, self.env, self._inbox, self._group_id)
        self._top = self._built.top
        self._owners: dict[type[Frame], Part] = {
            kind: part for part in self._built.parts for kind in part.kinds
        }
        built = self._built
        self._ports = Ports(
            self,
            built.flush,
            built.membership,
            built.discovery,
            built.table,
            self._inbox,
            built.numbering,
            built.tracker,
            built.brakes,
            built.failure,
        )
        for part in self._built.parts:
            part.connect(self._ports)
        self._listeners = [part for part in self._built.parts if part.hears]

    def seat(self, desk: Desk) -> None:
        """Have somebody read letters and calls, beside the application; before `start`."""
        self._built.parts.append(desk)
        self._inbox.desk = desk
        desk.connect(self._ports)

    # The verbs -----------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin to look for the group; the first ViewChange among the events says that it is
        joined."""
        self.env.now = now
        for part in self._built.parts:
            part.on_start()

    def receive(self, datagrams: Iterable[bytes | memoryview], now: float) -> None:
        """Take all datagrams that are there. What is not right in them is counted and dropped.

        Each is done with when the next is asked for: of a memoryview, what is kept is copied.
        """
        self.env.now = max(now, self.env.now)
        gate, reader, landing = self._built.gate, self._reader, self.landing
        view = NO_VIEW if self.view is None else self.view.id
        for datagram in datagrams:
            if gate is not None and not gate.admit():
                continue
            if datagram is LANDED:
                if not landing.goes_on(reader.run):
                    run = landing.begin(view)
                    self._take_run()
                    reader.run = run
                if landing.offer is None:
                    self._take_run()  # It was the last fragment of its message.
            elif not reader.goes_on(datagram):
                self._take_run()
                if not reader.begin(datagram, view):
                    self._take_datagram(datagram)
                elif landing.is_used and reader.begins_message:
                    self._take_run()  # So that the next one can land.
            del datagram  # Its memory is for the next one, which may be read only now.
        self._take_run()

    def _take_run(self) -> None:
        run, self._reader.run = self._reader.run, None
        if run is not None:
            self._take((run,), run.origin)

    def _take_datagram(self, datagram: bytes | memoryview) -> None:
        pair = read_pair(datagram, self._group_id, self.env.me)
        if pair is not None:
            self._take((pair[1],), pair[0])
            return
        try:
            source, frames = decode(datagram, self._group_id, self.env.me)
            self._take(frames, source)
        except RemoteError as error:
            self.env.counters[f"dropped_{error.reason}"] += 1

    def _take(self, frames: Sequence[Frame], source: Address) -> None:
        if source == self.env.me or self.closed is not None:
            return
        for part in self._listeners:
            part.on_heard(source)
        for frame in frames:
            owner = self._owners.get(type(frame))
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
        self.env.now = max(now, self.env.now)
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
        if flags & CALL and to is None and self._inbox.desk is not None:
            self._inbox.desk.sent(payloads)
        self._top.down(Batch(self.env.me, payloads, nbytes, dest=to, flags=flags, size=size))
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
        """It is so late, for what the owner does with the desk next."""
        self.env.now = max(now, self.env.now)

    def leave(self, now: float) -> None:
        """Leave in order; `closed` says when it is done."""
        self.env.now = max(now, self.env.now)
        if self.closed is None:
            self._built.membership.leave()

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
        named = (member for part in self.parts for member in getattr(part, "waits_for", ()))
        return list(dict.fromkeys(named))

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

    def snapshot(self) -> dict[str, object]:
        """View, marks and counters as plain data."""
        view = self.view
        out: dict[str, object] = {
            "me": str(self.env.me),
            "view": None if view is None else str(view.id),
            "members": [] if view is None else [view.name(member) for member in view],
            "counters": dict(self.env.counters),
            "closed": self.closed,
        }
        for part in self._built.parts:
            state = part.snapshot()
            if state:
                out[type(part).__name__.lower()] = state
        return out

    # What parts ask of the stack (ports.Control) -------------------------------------------------

    def install(self, installation: Installation) -> None:
        """Give a view to every part, then to the application."""
        self.view = installation.view
        for peer in installation.view.peers:
            self.env.out.learn(peer)
        self._inbox.push(ViewChange(installation.view, installation.joined, installation.left))
        for part in self._built.parts:
            part.on_view(installation)
        self._inbox.may_send = True

    @property
    def drained(self) -> bool:
        """Whether all that this member sent, to the group or to one member, was delivered."""
        return self._built.bottom.drained

    def emit(self, event: Event) -> None:
        """Queue an event for the application."""
        self._inbox.push(event)

    def suspect(self, member: Address, suspected: bool) -> None:
        """Tell every part that a member is suspected, or no longer."""
        if suspected:
            self._inbox.push(Suspected(member))
        for part in self._built.parts:
            part.on_suspect(member, suspected)

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
        if to is not None and (self.view is None or to not in self.view):
            raise NotMember(f"{to} is not in the view; send to one of view.members")
        largest = self._built.max_message
        if size > largest:
            raise TooLarge(
                f"a message of {size:,} bytes is larger than the {largest:,} that this stack"
                " carries; split it, or use a stack with Fragment and a larger max_message"
            )
