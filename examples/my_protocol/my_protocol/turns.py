"""Total order in one file: the coordinator says in its own stream whose messages come next.

Messages are held until the coordinator has named them. It names what has arrived there by messages
of this layer among those of its application (`INTERNAL`): pairs of a sender and a seqno.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ringcast import Address, Batch, Skipped
from ringcast.protocols import (
    INTERNAL,
    Env,
    Installation,
    Layer,
    Payload,
    Sequencer,
    Spec,
    ports,
    protocol,
)

TURN = 64
"""The bit of `Batch.flags` that tells this layer's messages from those of other layers."""
PAIRS_MAX = 64
"""Pairs in one message, which has to fit a datagram."""
_PAIR = struct.Struct("!QQ")


@protocol(role="order", over="compress", flags=TURN, offers=(ports.Holding,))
@dataclass(frozen=True, kw_only=True)
class Turns(Spec):
    """All members deliver all messages to the group in one order."""

    def check(self, others: Mapping[str, Spec]) -> None:
        """It needs of the other protocols what Ringcast's own total order needs."""
        Sequencer().check(others)

    def build(self, env: Env) -> TurnsLayer:
        """The layer."""
        return TurnsLayer(env)


class _Kept(NamedTuple):
    """Messages that no application gets: fragments of larger ones, and those of this layer."""

    batch: Batch
    first: int
    last: int


_Item = Batch | Skipped | _Kept


class TurnsLayer(Layer):
    """Holds what arrives, and hands it up when the coordinator has named it (ports.Holding)."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._members: tuple[Address, ...] = ()
        self._held: dict[Address, deque[_Item]] = {}
        """By sender: what has arrived and was not handed up."""
        self._arrived: dict[Address, int] = {}
        """By sender: the last seqno that has arrived."""
        self._turns: deque[tuple[Address, int]] = deque()
        """The order: hand up the messages of this sender up to this seqno, then the next."""
        self._unnamed: deque[tuple[Address, int]] = deque()
        """At the coordinator: what it has to name."""

    def up(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.above.up(batch)
        elif batch.flags & TURN:
            self._arrive(batch.sender, _Kept(batch, batch.first, batch.last))
            if batch.sender == self._members[0]:
                for payload in batch.payloads:
                    self._turns.extend(_read(payload))
            self._follow()
        else:
            self._arrive(batch.sender, batch)

    def absorbed(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.above.absorbed(batch)
        else:
            self._arrive(batch.sender, _Kept(batch, batch.first, batch.last))

    def skipped(self, event: Skipped) -> None:
        if event.direct:
            self.above.skipped(event)
        else:
            self._arrive(event.sender, event)

    def _arrive(self, sender: Address, item: _Item) -> None:
        self._held.setdefault(sender, deque()).append(item)
        self._arrived[sender] = item.last
        coordinator = self._members[0]
        if sender == coordinator:  # Its own messages are named by where they stand.
            self._turns.append((sender, item.last))
        elif self.env.me == coordinator:
            self._unnamed.append((sender, item.last))
            self.env.timers.set_earlier(self, "turn", self.env.now)
        self._follow()

    def _follow(self) -> None:
        turns = self._turns
        while turns and self._arrived.get(turns[0][0], 0) >= turns[0][1]:
            self._hand_up(*turns.popleft())

    def _hand_up(self, sender: Address, up_to: int) -> None:
        held = self._held.get(sender, deque())
        while held and (held[0].last <= up_to or isinstance(held[0], _Kept)):
            item = held.popleft()
            if isinstance(item, Batch):
                self.above.up(item)
            elif isinstance(item, Skipped):
                self.above.skipped(item)
            else:
                self.above.absorbed(item.batch)
        if held and isinstance(run := held[0], Batch) and run.first <= up_to:
            held[0] = run.part(up_to + 1, run.last)
            self.above.up(run.part(run.first, up_to))

    # At the coordinator

    def on_timer(self, name: str) -> None:
        while self._unnamed and self.below.room(None)[0] > 0:
            pairs = [self._unnamed.popleft() for _ in range(min(PAIRS_MAX, len(self._unnamed)))]
            payload = b"".join(_PAIR.pack(*pair) for pair in pairs)
            self.below.down(Batch(self.env.me, [payload], len(payload), flags=INTERNAL | TURN))

    def resume(self) -> None:
        self.on_timer("turn")
        self.above.resume()

    # Views

    def flush(self) -> None:
        """All that go on have the same messages: hand up the rest in an order that follows."""
        for turn in self._turns:
            self._hand_up(*turn)
        for sender in self._members:
            self._hand_up(sender, self._arrived.get(sender, 0))

    def on_view(self, installation: Installation) -> None:
        self._members = installation.view.members
        for kept in (self._held, self._arrived, self._turns, self._unnamed):
            kept.clear()

    def held_from(self) -> dict[Address, int]:
        return {sender: items[0].first for sender, items in self._held.items() if items}


def _read(payload: Payload) -> Iterator[tuple[Address, int]]:
    for sender, up_to in _PAIR.iter_unpack(payload):
        yield Address(sender), up_to
