"""The guarantees, checked while a world runs: every batch is compared with what its sender sent.

What is checked, over all members and all views (strict view synchrony):

- A message is delivered in the view in which it was sent, by each member that delivers it;
  once, without gaps, in its sender's order from its first message of that view on; byte for byte.
  Nothing arrives from a sender outside the view.
- Members that go together from one view to the next have delivered the same messages in the former.
- Views are installed in rising order, contain who installs them, and have the same members
  everywhere.
- A sender frees only what every member of its view has delivered; windows stay within their bounds.
- Where messages may be given up, no loss is silent: see `losses`.
- Messages to one member: see `pairs`. Total order, where the stack promises it: see
  `total_order`.

Bytes are compared at the top of the ladder, and seqnos are taken at the multicast: layers between
may change payloads.

All of it works on runs: the payloads that a sender's stack accepted are kept until every member of
the view has them (as long as the sender's own window keeps them), and a delivered batch is compared
with them list by list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, INTERNAL, Batch, Payload
from ringcast.core.model.events import Event, Skipped, Undelivered, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.fragments import read_header
from ringcast.core.wire.frames import Data
from ringcast.guarantees import Promises
from ringcast.sim.checks.losses import Losses
from ringcast.sim.checks.majorities import Majorities
from ringcast.sim.checks.meter import Meter
from ringcast.sim.checks.pairs import Pairs
from ringcast.sim.checks.streams import Accepted, Reader, Stream
from ringcast.sim.checks.total_order import TotalOrder

VIOLATIONS_MAX = 1_000
"""More than that say nothing new, and would fill the memory."""


class BrokenGuarantee(NamedTuple):
    """A guarantee that did not hold."""

    time: float
    member: str
    text: str

    def __str__(self) -> str:
        return f"{self.time:.6f} {self.member}: {self.text}"


class MemberRecord:
    """What the checks know of one member's life, from its start to its crash."""

    def __init__(self, name: str, address: Address) -> None:
        self.name = name
        self.address = address
        self.view: View | None = None
        """The view that its application was told of last."""
        self.joined: dict[Address, int] = {}
        """By member: the view with which it joined last, from this member's point of view."""
        self.readers: dict[Address, Reader] = {}
        """Up to where its application has taken each sender's messages of the view."""
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
        self.violations: list[BrokenGuarantee] = []
        self.now = 0.0
        self.promises = promises
        self.meter: Meter | None = None
        """Measures how long messages take, if that is asked for."""
        self.pairs = Pairs(self.report)
        self.losses = Losses()
        self.majorities = Majorities(self.report)
        self.order = TotalOrder(self.report) if promises.total_order else None
        self._records: dict[Address, MemberRecord] = {}
        self._views: dict[ViewId, View] = {}
        self._streams: dict[ViewId, dict[Address, Stream]] = {}
        self._passages: dict[ViewId, dict[ViewId, tuple[MemberRecord, dict[Address, int]]]] = {}

    def add(self, record: MemberRecord) -> None:
        """One more member lives."""
        self._records[record.address] = record

    # What the world reports -----------------------------------------------------------------------

    def accepted(
        self, record: MemberRecord, payloads: Sequence[Payload], asked_at: float = 0.0
    ) -> None:
        """The stack has accepted a run for the group, that its application wanted to send at
        `asked_at`; a layer may still hold it back."""
        record.accepted.add(payloads)
        record.largest = max(record.largest, *map(len, payloads))
        if self.meter is not None:
            self.meter.accepted(record.address, len(payloads), asked_at, self.now)

    def sent(self, record: MemberRecord, frame: Data) -> None:
        """A member sends a run: new seqnos are the next ones of what it has accepted. Only seqnos
        are read: layers above the multicast may have changed the payloads."""
        last = frame.first + len(frame.payloads) - 1
        if last <= record.numbered:
            return
        if frame.first != record.numbered + 1:
            self.report(record.name, f"sent {frame.first} after {record.numbered}")
        if frame.flags & INTERNAL:
            pass  # A layer's own: no application gave it, and none gets it.
        elif frame.flags & FRAGMENT:
            for seqno, payload in enumerate(frame.payloads, frame.first):
                header = read_header(payload)
                if header is not None and header.index == header.count - 1:
                    self._numbered(record, frame.view, 1, seqno)
        else:
            self._numbered(record, frame.view, len(frame.payloads), last)
        record.numbered = last

    def _numbered(self, record: MemberRecord, view: ViewId, count: int, last: int) -> None:
        """This many of the accepted messages have their seqnos, and belong to this view."""
        payloads = record.accepted.take(count)
        if len(payloads) < count:
            self.report(record.name, f"sent {count} messages up to {last} that it was not given")
        streams = self._streams.setdefault(view, {})
        stream = streams.get(record.address)
        if stream is None:
            stream = streams[record.address] = Stream(record.numbered)
        stream.append(payloads, last)
        if self.meter is not None:
            self.meter.numbered(view, record.address, len(payloads))
        if stream.crowded and view in self._views:
            stream.prune(self._slowest(self._views[view], record.address))

    def took(self, record: MemberRecord, event: Event) -> None:
        """The application was given an event."""
        if not isinstance(event, Batch) and not self.promises.complete:
            self.losses.took(record.address, event)
        if isinstance(event, Batch):
            if event.dest is None:
                self._delivered(record, event)
            else:
                self.pairs.delivered(record.name, event)
        elif isinstance(event, ViewChange):
            self._installed(record, event)
        elif isinstance(event, Skipped):
            self._skipped(record, event)
        elif isinstance(event, Undelivered) and event.direct:
            self.pairs.told(record.address, event)

    def purged(self, record: MemberRecord, low: int) -> None:
        """A sender's window is freed up to here: do all members of its view have that much?"""
        record.purged, view = low, record.view
        if view is None or not self.promises.complete:
            return
        for member in view:
            other = self._records[member]
            if self._is_past(other, view):
                continue
            needed = [view]
            if other.view is not None and other.view.id != view.id:
                # A newcomer needs nothing of what was sent before it came, though its
                # application may not have heard yet that it was away.
                came = record.joined.get(member, 0) > other.view.id.number
                needed += [] if came else [other.view]
            for where in needed:
                wanted = self._wanted(other, where, record.address)
                if wanted is not None and wanted <= low:
                    text = f"freed its messages up to {low}, but {other.name} waits for {wanted}"
                    self.report(record.name, text)

    def _wanted(self, record: MemberRecord, view: View, sender: Address) -> int | None:
        """The next message of a sender that a member needs in a view, as far as there is one."""
        stream = self._streams.get(view.id, {}).get(sender)
        return None if stream is None else stream.seqno(self._count(record, view, sender))

    # Batches --------------------------------------------------------------------------------------

    def _delivered(self, record: MemberRecord, batch: Batch) -> None:
        sender, view = batch.sender, record.view
        if view is None or sender not in view:
            self.report(record.name, f"was given {batch} by a sender that is not in its view")
            return
        stream = self._streams.get(view.id, {}).get(sender)
        if stream is None:
            self.report(record.name, f"was given {batch}, not sent in view {view.id}")
            return
        reader = self._reader(record, sender)
        span = range(reader.count, reader.count + len(batch))
        problem = reader.read(stream, batch)
        if problem:
            self.report(record.name, f"was given {view.name(sender)}'s {problem}")
            return
        if self.order is not None:
            self.order.delivered(record.name, record.address, view.id, batch)
        if self.meter is not None:
            self.meter.delivered(view.id, sender, record.address, span, self.now)

    def _skipped(self, record: MemberRecord, event: Skipped) -> None:
        view = None if event.direct else record.view
        stream = None if view is None else self._streams.get(view.id, {}).get(event.sender)
        if self.promises.complete:
            self.report(
                record.name,
                f"skipped {event.first}-{event.last} of {event.sender}: {event.reason}",
            )
        if stream is not None:
            self._reader(record, event.sender).skip(stream, event.last)

    def _reader(self, record: MemberRecord, sender: Address) -> Reader:
        reader = record.readers.get(sender)
        if reader is None:
            reader = record.readers[sender] = Reader()
        return reader

    # Views ----------------------------------------------------------------------------------------

    def _installed(self, record: MemberRecord, event: ViewChange) -> None:
        view, old = event.view, record.view
        known = self._views.setdefault(view.id, view)
        if known != view:
            self.report(record.name, f"installed {view}, others know it as {known}")
        if record.address not in view:
            self.report(record.name, f"installed {view} and is not in it")
        if old is not None and view.id.number <= old.id.number:
            self.report(record.name, f"installed {view} after {old}")
        self._check_change(record, event, () if old is None else old.members)
        if old is not None:
            self._passed(record, old, view)
        record.view = view
        record.joined.update(dict.fromkeys(event.joined, view.id.number))
        record.readers = {}
        for member in event.left:
            self.pairs.parted(record.address, member)
        if old is not None:
            self._forget(old)

    def _check_change(
        self, record: MemberRecord, event: ViewChange, before: Sequence[Address]
    ) -> None:
        """Is each member that joined or left named? One that did both is named twice."""
        joined, left, now = set(event.joined), set(event.left), set(event.view)
        came, went = now.difference(before), set(before).difference(now)
        if joined - came != left - went or not (came <= joined <= now and went <= left):
            self.report(record.name, f"was told of the wrong joiners or leavers of {event.view}")

    def _passed(self, record: MemberRecord, old: View, new: View) -> None:
        """A member goes from one view to the next: has it what the others that do so have?"""
        counts = {sender: reader.count for sender, reader in record.readers.items() if reader.count}
        if self.order is not None:
            self.order.passed(record.name, record.address, old.id, new.id)
        own = self._streams.get(old.id, {}).get(record.address)
        if own is not None and not self.promises.loopback:
            counts[record.address] = own.count
        if own is not None and counts.get(record.address, 0) < own.count:
            self.report(record.name, f"left {old} before it had all of its own messages")
        passages = self._passages.setdefault(old.id, {})
        other, theirs = passages.setdefault(new.id, (record, counts))
        for sender in old:
            mine, expected = counts.get(sender, 0), theirs.get(sender, 0)
            excused = not self.promises.complete or (
                not self.promises.agreement and sender not in new
            )
            if mine != expected and not excused:
                self.report(
                    record.name,
                    f"delivered {mine} messages of {old.name(sender)} in {old},"
                    f" but {other.name}, which goes on to {new} as well, {expected}",
                )

    def _forget(self, view: View) -> None:
        """Let go of a view that no member is in any more."""
        if all(self._is_past(self._records[member], view) for member in view):
            self._streams.pop(view.id, None)
            self._passages.pop(view.id, None)
            self._views.pop(view.id, None)
            if self.order is not None:
                self.order.forget(view.id)
            if self.meter is not None:
                self.meter.forget(view.id)

    def _is_past(self, record: MemberRecord, view: View) -> bool:
        if record.gone:
            return True
        return record.view is not None and record.view.id.number > view.id.number

    def _slowest(self, view: View, sender: Address) -> int:
        """How many of a sender's messages of this view all members that still need them have."""
        waiting = (self._records[member] for member in view)
        return min(
            (self._count(w, view, sender) for w in waiting if not self._is_past(w, view)), default=0
        )

    def _count(self, record: MemberRecord, view: View, sender: Address) -> int:
        """How many of a sender's messages of this view an application has."""
        if sender == record.address and not self.promises.loopback:
            stream = self._streams.get(view.id, {}).get(sender)
            return 0 if stream is None else stream.count
        if record.view is None or record.view.id != view.id or sender not in record.readers:
            return 0
        return record.readers[sender].count

    def behind(self, view: View, members: Sequence[MemberRecord]) -> list[str]:
        """What these members of this view lack of each other's messages."""
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

    def find_untold(self, is_done: Callable[[Address], bool]) -> None:
        """Report the losses that their senders, if they are done, were not told of."""
        for loss in self.losses.untold(is_done):
            self.report(self._records[loss.receiver].name, str(loss))
        for silence in self.pairs.silences(is_done):
            self.report(self._records[silence.sender].name, str(silence))

    def compare_orders(self) -> None:
        """Compare what members that are in one view have delivered so far."""
        if self.order is not None:
            for view in self._views.values():
                inside = (self._records[m] for m in view if not self._records[m].gone)
                here = [w.address for w in inside if w.view is not None and w.view.id == view.id]
                self.order.compare(view.id, here)

    def report(self, member: str, text: str) -> None:
        """Something did not hold."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(BrokenGuarantee(self.now, member, text))
