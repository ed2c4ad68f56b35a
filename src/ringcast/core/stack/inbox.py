"""The inbox: what has arrived for the application, in order, until it takes it.

A message counts as delivered when the application has taken it, not when it has arrived; so the
inbox tells the reliable layers how far each sender's messages were taken, and they ack no more than
that. Its size is bounded by their windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, SERVICE, Batch, Payload
from ringcast.core.model.events import Event, Skipped
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Layer, Part
from ringcast.core.stack.ports import Delivery, Taker, Unpack

UNPACKED_BYTES = 16_000_000
"""A packed batch is unpacked for the application only while it has fewer new bytes in hand."""


class ServicePart(Part):
    """Reads what is not for the application: service messages, and calls before they are queued."""

    role_name = "services"

    def sent(self, payloads: Iterable[Payload]) -> None:
        """Calls of this member are on their way to all members in the view."""
        raise NotImplementedError

    def service_messages(self, batch: Batch) -> None:
        """Handle service messages; they count as taken once handed to `Inbox.absorbed`."""
        raise NotImplementedError

    def calls(self, batch: Batch) -> Batch:
        """Handle calls that have arrived; returns what is to be queued in their place."""
        raise NotImplementedError


class _Place(NamedTuple):
    """What taking one event means for the layer that delivered it."""

    sender: Address
    is_group: bool
    last: int
    nbytes: int


class Inbox(Layer):
    """The top of the ladder; at its side the correlator, for what is not for the application."""

    reads_payloads = False

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.special_flags = _FOR_SERVICES
        """Flags that no layer takes off a batch: the services', and those of protocols that this
        stack does not have."""
        self.events: deque[Event | _Place] = deque()
        """What waits; a place alone stands for messages that a layer below has kept (fragments)."""
        self.group: Delivery
        self.pairs: Delivery
        self.takers: tuple[Taker, ...] = ()
        self.correlator: ServicePart | None = None
        self.early = 0
        """Bytes of messages for this member alone that may count as delivered as they come: while
        it waits for the group's state, which comes the same way and must not wait behind them."""
        self.nbytes = 0
        """Bytes that wait for the application."""
        self.may_send = False
        """Set when the layers below may have room again; the runtime clears it."""
        self.ignores = False
        """Set for an application that wants no messages: they count as delivered as they come."""
        self._packed = 0
        """The flag of batches that wait here packed, and are unpacked when they are taken."""
        self._unpack: Unpack
        self._taken: list[_Place] = []
        self._last_of_group: dict[Address, int] = {}
        self._last_of_pair: dict[Address, int] = {}
        """Per sender that has something waiting here: the seqno of the last of it."""

    def up(self, batch: Batch) -> None:
        """Queue a batch for the application."""
        if batch.flags & self.special_flags:
            if batch.flags & self.special_flags & ~_FOR_SERVICES:
                # Of a protocol that this stack lacks: the payloads may not be what they seem.
                self.env.counters["dropped_unknown_flags"] += len(batch)
                self.absorbed(batch)
                return
            if self.correlator is None:
                self.env.counters["dropped_no_services"] += len(batch)
                self.absorbed(batch)
                return
            if batch.flags & SERVICE:
                self.correlator.service_messages(batch)
                return
            batch = self.correlator.calls(batch)
        elif self.ignores and batch.sender not in self._lasts(batch.dest is None):
            self._deliver(_place(batch))
            return
        self.events.append(batch)
        self.nbytes += batch.nbytes
        if batch.dest is None:
            self._last_of_group[batch.sender] = batch.last
            return
        self._last_of_pair[batch.sender] = batch.last
        if self.early > 0:
            self.early -= batch.nbytes
            self._deliver(_place(batch))

    def skipped(self, event: Skipped) -> None:
        """Queue the news that messages will not come."""
        self.push(event)

    def absorbed(self, batch: Batch) -> None:
        """A layer below keeps this batch (fragments): it counts as taken once all before it is."""
        if self.env.tracer is not None and batch.dest is None:
            self.env.tracer.absorbed(batch)
        place = _place(batch)
        is_early = self.early > 0 and batch.dest is not None
        lasts = self._lasts(place.is_group)
        if is_early or batch.sender not in lasts:
            self._deliver(place)
            return
        self.events.append(place)
        lasts[batch.sender] = place.last

    def unpack_with(self, flag: int, unpack: Unpack) -> None:
        """Batches with this flag wait here packed: unpack them when they are taken."""
        assert not self._packed, "one layer packs"
        self._packed, self._unpack = flag, unpack

    def resume(self) -> None:
        """There may be room to send again."""
        self.may_send = True

    def abandon(self, member: Address) -> int:
        """Nothing: what is to be sent does not wait here."""
        return 0

    @property
    def drained(self) -> bool:
        """Always: what is to be sent does not wait here."""
        return True

    @property
    def pausing(self) -> bool:
        """Never: nothing is sent from here."""
        return False

    def push(self, event: Event) -> None:
        """Queue something that is not a batch."""
        self.events.append(event)
        if self.env.listener is not None:
            self.env.listener(event)
        if isinstance(event, Skipped):
            self._lasts(not event.direct)[event.sender] = event.last

    def take(self, limit: int) -> list[Event]:
        """The next events, with up to `limit` messages in them; `consumed` says when they are done
        with."""
        out: list[Event] = []
        events, taken, unpacked = self.events, self._taken, 0
        while events and limit > 0:
            event = events.popleft()
            if isinstance(event, Batch) and event.flags & self._packed:
                if unpacked >= UNPACKED_BYTES:
                    events.appendleft(event)
                    break
                unpacked += self._open(event, limit, UNPACKED_BYTES - unpacked)
                continue
            if isinstance(event, _Place):
                taken.append(event)
                continue
            if isinstance(event, Batch):
                if len(event) > limit:
                    event = self._split(event, limit)
                elif event.dest is None or event.sender == self.env.me:
                    # A window may keep it as well: the application gets a list of its own.
                    event = event.copy()
                limit -= len(event.payloads)
                self.nbytes -= event.nbytes
                taken.append(_place(event))
            elif isinstance(event, Skipped):
                taken.append(_Place(event.sender, not event.direct, event.last, 0))
            out.append(event)
        return out

    def _open(self, packed: Batch, limit: int, most: int) -> int:
        """Put what a packed batch holds to the head of the queue; how many bytes that is."""
        opened, rest = self._unpack(packed, limit, most)
        if rest is not None:
            self.events.appendleft(rest)
        self.events.extendleft(reversed(opened))
        nbytes = sum(event.nbytes for event in opened if isinstance(event, Batch))
        self.nbytes += nbytes - packed.nbytes + (0 if rest is None else rest.nbytes)
        if self.env.listener is not None:
            for event in opened:
                if isinstance(event, Skipped):
                    self.env.listener(event)
        return nbytes

    def consumed(self) -> None:
        """The application is done with everything it was handed."""
        while self._taken:
            taken, self._taken = self._taken, []
            for place in taken:
                sender, is_group, last, _ = place
                lasts = self._last_of_group if is_group else self._last_of_pair
                if lasts.get(sender) == last:
                    del lasts[sender]
                self._deliver(place)
            while self.events and isinstance(kept := self.events[0], _Place):
                self._taken.append(kept)
                self.events.popleft()

    def _split(self, batch: Batch, limit: int) -> Batch:
        """The first `limit` messages; the rest goes back to the head of the queue."""
        middle = batch.first + limit
        self.events.appendleft(batch.part(middle, batch.last))
        return batch.part(batch.first, middle - 1)

    def _lasts(self, is_group: bool) -> dict[Address, int]:
        return self._last_of_group if is_group else self._last_of_pair

    def _deliver(self, place: _Place) -> None:
        sender, is_group, last, nbytes = place
        if is_group:
            for taker in self.takers:
                taker.taken(sender, last)
        layer = self.group if is_group else self.pairs
        layer.deliver(sender, last, nbytes)


_FOR_SERVICES = CALL | SERVICE


def _place(batch: Batch) -> _Place:
    return _Place(batch.sender, batch.dest is None, batch.last, batch.nbytes)
