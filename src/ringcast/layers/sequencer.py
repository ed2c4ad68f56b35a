"""Total order: all members deliver the messages to the group in the same order.

The coordinator of a view is its sequencer, and the sequencer's own stream of messages is the
script that all members follow. Senders multicast directly, as without this layer. The sequencer
adds ORDER messages to its stream: "here, deliver the messages of b up to 17, then those of c up to
9". A member delivers

- the sequencer's own messages where they stand in its stream, without an ORDER;
- messages of the others when an ORDER in that stream names them; until then they wait here.

So a group in which the coordinator sends alone pays nothing, and other senders cost one small
message for each step in which the sequencer has received some of theirs.

A view's end needs no agreement of its own. Members that go together to the next view have received
the same messages in the old one, ORDERs among them (view synchrony). `flush` delivers what is left
in an order that depends on nothing else: the rest of the script, then the messages that no ORDER
names, by the seniority of their senders. It follows that a sequencer that crashes loses nothing,
and that members which do not go on together may differ in the last messages, as they may in which
messages they have.

The sequencer's messages never wait for an ORDER that is still to be sent, so a full window cannot
lock the group up: it drains, and `resume` sends the ORDER before the application gets the room.

Rejected: to send everything through the sequencer (JGroups' SEQUENCER), which halves the rate of
all others and doubles the bytes; to ask for a number first (SEQUENCER2), a round trip per batch.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.model.batch import INTERNAL, Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.stack.counters import declare
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Holding
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.errors import ConfigError

_ENTRY = struct.Struct("!QQ")
ENTRIES_MAX = 1_024


declare("orders_sent", "messages", "ORDER messages that this sequencer sent.")
declare("dropped_bad_order", "entries", "Entries of ORDER messages that name no other member.")


@protocol(role="order", over="compress", offers=(Holding,))
@dataclass(frozen=True, kw_only=True)
class Sequencer(Spec):
    """One order for all messages to the group, set by the coordinator."""

    alike_beside: ClassVar[Mapping[str, tuple[str, ...]]] = {"multicast": ("capacity",)}

    order_entries: int = 64
    """The most runs that one ORDER message names. More makes fewer, larger messages when the
    sequencer's window is full."""

    def __post_init__(self) -> None:
        if not 1 <= self.order_entries <= ENTRIES_MAX:
            raise ConfigError(
                f"Sequencer.order_entries is {self.order_entries}: give 1 to {ENTRIES_MAX}"
            )

    def check(self, others: Mapping[str, Spec]) -> None:
        """One order needs members that end a view with the same messages."""
        multicast = others["multicast"]
        values, name = multicast.values(), type(multicast).__name__
        for setting, needed in (("retain", True), ("discard_delivered", False)):
            if values.get(setting, needed) != needed:
                raise ConfigError(
                    f"Sequencer needs survivors that agree: set {name}.{setting} to {needed}"
                )
        if not values.get("loopback", True):
            raise ConfigError(
                f"Sequencer needs own messages in their place: set {name}.loopback to True"
            )
        slow = others.get("slow")
        if "large" in others or (slow is not None and slow.values().get("policy") == "skip"):
            raise ConfigError(
                "Sequencer needs all messages: leave out LargeMessages, and"
                ' SlowMembers(policy="skip")'
            )

    def build(self, env: Env) -> SequencerLayer:
        """The layer with these settings."""
        return SequencerLayer(env, self)


class _Kept:
    """Messages that a layer keeps: they only have to be counted, in their place."""

    __slots__ = ("batch", "first", "last")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.first, self.last = batch.first, batch.last


class _Order(_Kept):
    """An ORDER message, and what it names that was not delivered yet."""

    __slots__ = ("entries",)

    def __init__(self, batch: Batch, entries: Iterable[tuple[Address, int]]) -> None:
        super().__init__(batch)
        self.entries = deque(entries)
        """Sender and the last seqno of it to deliver here, in order."""


_Item = Batch | Skipped | _Kept
"""What a stream consists of, in its sender's order."""


@dataclass(frozen=True, kw_only=True)
class SequencerSnapshot(PartSnapshot):
    """The order."""

    sequencer: Address | None
    """The member that orders; None outside of the group."""
    held: int
    """Messages that wait for their place."""


class SequencerLayer(Layer):
    """Holds messages until the sequencer's stream says that it is their turn (ports.Holding)."""

    reads_payloads = False

    def __init__(self, env: Env, spec: Sequencer) -> None:
        super().__init__(env)
        self.spec = spec
        self._members: tuple[Address, ...] = ()
        """Of the view, by seniority; the first is the sequencer."""
        self._script: deque[_Item] = deque()
        """What arrived of the sequencer's stream; the first waits for messages that it names."""
        self._held: dict[Address, deque[_Item]] = {}
        """Per other sender: what arrived and was not delivered."""
        self._arrived: dict[Address, int] = {}
        """Per other sender: the last seqno of the view that arrived."""
        self._unnamed: dict[Address, int] = {}
        """At the sequencer, per sender, in order of arrival: the seqno up to which the next ORDER
        names messages."""

    # Following the script -------------------------------------------------------------------------

    def up(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.above.up(batch)
        elif batch.flags & INTERNAL:
            self._on_order(batch)
        else:
            self._on_arrived(batch.sender, batch)

    def skipped(self, event: Skipped) -> None:
        if event.direct:
            self.above.skipped(event)
        else:
            self._on_arrived(event.sender, event)

    def absorbed(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.above.absorbed(batch)
        else:
            self._on_arrived(batch.sender, _Kept(batch))

    def _on_order(self, batch: Batch) -> None:
        if batch.sender != self._members[0]:
            self.env.counters["dropped_bad_order"] += len(batch)
            self._on_arrived(batch.sender, _Kept(batch))
            return
        others = frozenset(self._members[1:])
        named = [entry for payload in batch.payloads for entry in _read(payload)]
        known = [entry for entry in named if entry[0] in others]
        self.env.counters["dropped_bad_order"] += len(named) - len(known)
        self._script.append(_Order(batch, known))
        self._follow_script()

    def _on_arrived(self, sender: Address, item: _Item) -> None:
        if sender == self._members[0]:
            self._script.append(item)
            if len(self._script) > 1:
                return  # What stands before it in the script waits for messages of others.
        else:
            self._arrived[sender] = item.last
            held = self._held.setdefault(sender, deque())
            if isinstance(item, _Kept) and not held:
                # Fragments wait for no ORDER: one may come only when the last of them is here, and
                # they may be more than the sender's window holds.
                self._pass_up(item)
                return
            held.append(item)
            if self.env.me == self._members[0] and not isinstance(item, _Kept):
                self._unnamed.pop(sender, None)
                self._unnamed[sender] = item.last
                self.env.timers.set_earlier(self, "order", self.env.now)
        self._follow_script()

    def _follow_script(self) -> None:
        """Deliver as far as the script and the messages that have arrived allow."""
        script, arrived = self._script, self._arrived
        while script:
            item = script[0]
            if isinstance(item, _Order):
                entries = item.entries
                while entries and arrived.get(entries[0][0], 0) >= entries[0][1]:
                    self._deliver_held(*entries.popleft())
                if entries:
                    return
            script.popleft()
            self._pass_up(item)

    def _deliver_held(self, sender: Address, up_to: int) -> None:
        held = self._held.get(sender, ())
        while held and (held[0].last <= up_to or isinstance(held[0], _Kept)):
            self._pass_up(held.popleft())
        if held and isinstance(run := held[0], Batch) and run.first <= up_to:
            held[0] = run.part(up_to + 1, run.last)
            self.above.up(run.part(run.first, up_to))

    def _pass_up(self, item: _Item) -> None:
        if isinstance(item, Batch):
            self.above.up(item)
        elif isinstance(item, Skipped):
            self.above.skipped(item)
        else:
            self.above.absorbed(item.batch)

    # Writing the script, at the sequencer ---------------------------------------------------------

    def on_timer(self, name: str) -> None:
        self._send_order()

    def resume(self) -> None:
        self._send_order()
        self.above.resume()

    def _send_order(self) -> None:
        """Name all that has arrived since the last ORDER, as far as there is room."""
        unnamed = self._unnamed
        while unnamed and self.below.room(None)[0] > 0:
            chosen = list(islice(unnamed.items(), self.spec.order_entries))
            for sender, _ in chosen:
                del unnamed[sender]
            payload = b"".join(_ENTRY.pack(sender, up_to) for sender, up_to in chosen)
            self.env.counters["orders_sent"] += 1
            batch = Batch(self.env.me, [payload], len(payload), flags=INTERNAL, size=len(payload))
            self.below.down(batch)

    # What is not delivered yet (ports.Holding) ----------------------------------------------------

    def held_from(self) -> dict[Address, int]:
        first = {sender: items[0].first for sender, items in self._held.items() if items}
        return first | ({self._members[0]: self._script[0].first} if self._script else {})

    # Views ----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Deliver what is left of a view, in the order that all members which go on share."""
        while self._script:
            item = self._script.popleft()
            if isinstance(item, _Order):
                for entry in item.entries:
                    self._deliver_held(*entry)
            self._pass_up(item)
        for sender in self._members:
            held = self._held.get(sender, ())
            while held:
                self._pass_up(held.popleft())
        assert not any(self._held.values())

    def on_view(self, installation: Installation) -> None:
        assert not self._script
        assert not any(self._held.values())
        self._members = installation.view.members
        self._held.clear()
        self._arrived.clear()
        self._unnamed.clear()

    def snapshot(self) -> SequencerSnapshot:
        runs = (run for items in self._held.values() for run in items if isinstance(run, Batch))
        sequencer = self._members[0] if self._members else None
        return SequencerSnapshot(sequencer=sequencer, held=sum(map(len, runs)))


def _read(payload: Payload) -> Iterator[tuple[Address, int]]:
    """The entries of an ORDER message; a torn one at its end is left out."""
    whole = len(payload) - len(payload) % _ENTRY.size
    for sender, up_to in _ENTRY.iter_unpack(payload[:whole]):
        yield Address(sender), up_to
