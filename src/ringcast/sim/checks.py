"""The guarantees, checked while a world runs: every batch is compared with what its sender sent.

What is checked, over all members and all views (strict view synchrony):

- A message is delivered in the view in which it was sent, by whoever delivers it; once, without
  gaps, in its sender's order from its first message of that view on; byte for byte. Nothing comes
  from somebody outside the view.
- Members that go together from one view to the next have delivered the same messages in the former.
- Views are installed in rising order, contain who installs them, and have the same members
  everywhere.
- A sender frees only what every member of its view has delivered; windows stay within their bounds.
- Messages to one member: see `pairs`.

All of it works on runs: the payloads that a sender's stack accepted are kept until every member of
the view has them (as long as the sender's own window keeps them), and a delivered batch is compared
with them list by list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT, Batch, Payload
from ringcast.core.events import Event, Skipped, ViewChange
from ringcast.core.fragments import read_header
from ringcast.core.frames import Data
from ringcast.core.view import View, ViewId
from ringcast.sim.meter import Meter
from ringcast.sim.pairs import Pairs
from ringcast.sim.promises import Promises
from ringcast.sim.streams import Accepted, Reader, Stream

VIOLATIONS_MAX = 1_000
"""More than that say nothing new, and would fill the memory."""


class Violation(NamedTuple):
    """A guarantee that did not hold."""

    time: float
    member: str
    text: str

    def __str__(self) -> str:
        return f"{self.time:.6f} {self.member}: {self.text}"


class Witness:
    """What the checks know of one member's life, from its start to its crash."""

    def __init__(self, name: str, address: Address) -> None:
        self.name = name
        self.address = address
        self.view: View | None = None
        """The view that its application was told of last."""
        self.joined: dict[Address, int] = {}
        """With which view each of the others came last, from its point of view."""
        self.readers: dict[Address, Reader] = {}
        """How far its application has come with each sender's messages of the view."""
        self.accepted = Accepted()
        self.numbered = 0
        """The last seqno that it has given to a message."""
        self.largest = 0
        """The size of the largest message that it has sent to the group."""
        self.purged = 0
        self.gone = False
        """Crashed, left or restarted."""


class Checker:
    """Watches all members; `violations` is what it found."""

    def __init__(self, promises: Promises) -> None:
        self.violations: list[Violation] = []
        self.now = 0.0
        self.promises = promises
        self.meter: Meter | None = None
        """Who measures how long messages take, if anybody does."""
        self.pairs = Pairs(self.report)
        self._witnesses: dict[Address, Witness] = {}
        self._views: dict[ViewId, View] = {}
        self._streams: dict[ViewId, dict[Address, Stream]] = {}
        self._passages: dict[ViewId, dict[ViewId, tuple[Witness, dict[Address, int]]]] = {}

    def add(self, witness: Witness) -> None:
        """One more member lives."""
        self._witnesses[witness.address] = witness

    # What the world reports -----------------------------------------------------------------------

    def accepted(
        self, witness: Witness, payloads: Sequence[Payload], asked_at: float = 0.0
    ) -> None:
        """The stack has accepted a run for the group, that its application wanted to send at
        `asked_at`; a layer may still hold it back."""
        witness.accepted.add(payloads)
        witness.largest = max(witness.largest, *map(len, payloads))
        if self.meter is not None:
            self.meter.accepted(witness.address, len(payloads), asked_at, self.now)

    def sent(self, witness: Witness, frame: Data) -> None:
        """A member sends a run: new seqnos are the next ones of what it has accepted."""
        last = frame.first + len(frame.payloads) - 1
        if last <= witness.numbered:
            return
        if frame.first != witness.numbered + 1:
            self.report(witness.name, f"sent {frame.first} after {witness.numbered}")
        if frame.flags & FRAGMENT:
            for seqno, payload in enumerate(frame.payloads, frame.first):
                header = read_header(payload)
                if header is not None and header.index == header.count - 1:
                    self._numbered(witness, frame.view, 1, seqno)
        elif list(self._numbered(witness, frame.view, len(frame.payloads), last)) != list(
            frame.payloads
        ):
            self.report(
                witness.name, f"sent {frame.first}-{last} with other bytes than it was given"
            )
        witness.numbered = last

    def _numbered(self, witness: Witness, view: ViewId, count: int, last: int) -> Sequence[Payload]:
        """So many of the accepted messages have their seqnos, and belong to this view."""
        payloads = witness.accepted.take(count)
        if len(payloads) < count:
            self.report(witness.name, f"sent {count} messages up to {last} that it was not given")
        streams = self._streams.setdefault(view, {})
        stream = streams.get(witness.address)
        if stream is None:
            stream = streams[witness.address] = Stream(witness.numbered)
        stream.append(payloads, last)
        if self.meter is not None:
            self.meter.numbered(view, witness.address, len(payloads))
        if stream.crowded and view in self._views:
            stream.prune(self._slowest(self._views[view], witness.address))
        return payloads

    def took(self, witness: Witness, event: Event) -> None:
        """The application was given an event."""
        if isinstance(event, Batch):
            if event.dest is None:
                self._delivered(witness, event)
            else:
                self.pairs.delivered(witness.name, event)
        elif isinstance(event, ViewChange):
            self._installed(witness, event)
        elif isinstance(event, Skipped):
            self._skipped(witness, event)

    def purged(self, witness: Witness, low: int) -> None:
        """A sender's window is freed up to here: does everybody in its view have that much?"""
        witness.purged, view = low, witness.view
        if view is None or not self.promises.complete:
            return
        for member in view:
            other = self._witnesses[member]
            if self._is_past(other, view):
                continue
            needed = [view]
            if other.view is not None and other.view.id != view.id:
                # A newcomer needs nothing of what was sent before it came, though its
                # application may not have heard yet that it was away.
                came = witness.joined.get(member, 0) > other.view.id.number
                needed += [] if came else [other.view]
            for where in needed:
                wanted = self._wanted(other, where, witness.address)
                if wanted is not None and wanted <= low:
                    text = f"freed its messages up to {low}, but {other.name} waits for {wanted}"
                    self.report(witness.name, text)

    def _wanted(self, witness: Witness, view: View, sender: Address) -> int | None:
        """The next message of a sender that a member needs in a view, as far as there is one."""
        stream = self._streams.get(view.id, {}).get(sender)
        return None if stream is None else stream.seqno(self._count(witness, view, sender))

    # Batches --------------------------------------------------------------------------------------

    def _delivered(self, witness: Witness, batch: Batch) -> None:
        sender, view = batch.sender, witness.view
        if view is None or sender not in view:
            self.report(witness.name, f"was given {batch} by somebody who is not in its view")
            return
        stream = self._streams.get(view.id, {}).get(sender)
        if stream is None:
            self.report(witness.name, f"was given {batch}, not sent in view {view.id}")
            return
        reader = self._reader(witness, sender)
        span = range(reader.count, reader.count + len(batch))
        problem = reader.read(stream, batch)
        if problem:
            self.report(witness.name, f"was given {view.name(sender)}'s {problem}")
        elif self.meter is not None:
            self.meter.delivered(view.id, sender, witness.address, span, self.now)

    def _skipped(self, witness: Witness, event: Skipped) -> None:
        view = None if event.direct else witness.view
        stream = None if view is None else self._streams.get(view.id, {}).get(event.sender)
        if self.promises.complete:
            self.report(
                witness.name,
                f"skipped {event.first}-{event.last} of {event.sender}: {event.reason}",
            )
        if stream is not None:
            self._reader(witness, event.sender).skip(stream, event.last)

    def _reader(self, witness: Witness, sender: Address) -> Reader:
        reader = witness.readers.get(sender)
        if reader is None:
            reader = witness.readers[sender] = Reader()
        return reader

    # Views ----------------------------------------------------------------------------------------

    def _installed(self, witness: Witness, event: ViewChange) -> None:
        view, old = event.view, witness.view
        known = self._views.setdefault(view.id, view)
        if known != view:
            self.report(witness.name, f"installed {view}, others know it as {known}")
        if witness.address not in view:
            self.report(witness.name, f"installed {view} and is not in it")
        if old is not None and view.id.number <= old.id.number:
            self.report(witness.name, f"installed {view} after {old}")
        self._check_change(witness, event, () if old is None else old.members)
        if old is not None:
            self._passed(witness, old, view)
        witness.view = view
        witness.joined.update(dict.fromkeys(event.joined, view.id.number))
        witness.readers = {}
        for member in event.left:
            self.pairs.parted(witness.address, member)
        if old is not None:
            self._forget(old)

    def _check_change(self, witness: Witness, event: ViewChange, before: Sequence[Address]) -> None:
        """Is everybody who came or went named? Who went and came with one view is named twice."""
        joined, left, now = set(event.joined), set(event.left), set(event.view)
        came, went = now.difference(before), set(before).difference(now)
        if joined - came != left - went or not (came <= joined <= now and went <= left):
            self.report(witness.name, f"was told of the wrong joiners or leavers of {event.view}")

    def _passed(self, witness: Witness, old: View, new: View) -> None:
        """A member goes from one view to the next: has it what the others that do so have?"""
        counts = {
            sender: reader.count for sender, reader in witness.readers.items() if reader.count
        }
        own = self._streams.get(old.id, {}).get(witness.address)
        if own is not None and not self.promises.loopback:
            counts[witness.address] = own.count
        if own is not None and counts.get(witness.address, 0) < own.count:
            self.report(witness.name, f"left {old} before it had all of its own messages")
        passages = self._passages.setdefault(old.id, {})
        other, theirs = passages.setdefault(new.id, (witness, counts))
        for sender in old:
            mine, expected = counts.get(sender, 0), theirs.get(sender, 0)
            excused = not self.promises.complete or (
                not self.promises.agreement and sender not in new
            )
            if mine != expected and not excused:
                self.report(
                    witness.name,
                    f"delivered {mine} messages of {old.name(sender)} in {old},"
                    f" but {other.name}, which goes on to {new} as well, {expected}",
                )

    def _forget(self, view: View) -> None:
        """Let go of a view that nobody is in any more."""
        if all(self._is_past(self._witnesses[member], view) for member in view):
            self._streams.pop(view.id, None)
            self._passages.pop(view.id, None)
            self._views.pop(view.id, None)
            if self.meter is not None:
                self.meter.forget(view.id)

    def _is_past(self, witness: Witness, view: View) -> bool:
        if witness.gone:
            return True
        return witness.view is not None and witness.view.id.number > view.id.number

    def _slowest(self, view: View, sender: Address) -> int:
        """How many of a sender's messages of this view everybody who still needs them has."""
        waiting = (self._witnesses[member] for member in view)
        return min(
            (self._count(w, view, sender) for w in waiting if not self._is_past(w, view)), default=0
        )

    def _count(self, witness: Witness, view: View, sender: Address) -> int:
        """How many of a sender's messages of this view an application has."""
        if sender == witness.address and not self.promises.loopback:
            stream = self._streams.get(view.id, {}).get(sender)
            return 0 if stream is None else stream.count
        if witness.view is None or witness.view.id != view.id or sender not in witness.readers:
            return 0
        return witness.readers[sender].count

    def behind(self, view: View, members: Sequence[Witness]) -> list[str]:
        """What these members, who are in this view, lack of each other's messages."""
        lacking: list[str] = []
        for sender in members:
            if sender.accepted.count:
                lacking.append(f"{sender.name} holds {sender.accepted.count} messages back")
            stream = self._streams.get(view.id, {}).get(sender.address)
            total = 0 if stream is None else stream.count
            for member in members:
                count = self._count(member, view, sender.address)
                if count < total:
                    lacking.append(
                        f"{member.name} has {count} of {total} messages of {sender.name}"
                    )
        return lacking

    def report(self, member: str, text: str) -> None:
        """Something did not hold."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(Violation(self.now, member, text))
