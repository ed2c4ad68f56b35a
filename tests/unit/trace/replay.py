"""Plays the rows of a trace to the simulator's own checks, as if a world had just done all that.

The simulator knows what senders really sent. A trace of a member that crashed may have lost its
last rows, so what others have delivered of it counts as sent as well.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Skipped, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.frames import Data
from ringcast.guarantees import Promises
from ringcast.sim.checks.guarantees import BrokenGuarantee, Checker, MemberRecord
from ringcast.trace.judging.history import make_progress
from ringcast.trace.judging.summary import Range, ReceiverProgress, ViewKey
from ringcast.trace.schema import Row

ALTERED = 1
"""The digest of a run whose contents were changed on purpose."""

KINDS = {
    r"was given .* messages \d+-\d+ when \d+ was due": "place",
    r"was given .* though \d+ was its last": "place",
    r"was given .* by a sender that is not in its view": "foreign",
    r"was given .* not sent in view": "foreign",
    r"was given .* with other bytes": "bytes",
    r"freed its messages": "freed",
    r"delivered \d+ messages of .* but": "differ",
    r"left .* before it had all of its own": "differ",
    r"has \d+ of \d+ messages": "differ",
    r"others know it as|wrong joiners or leavers|installed .* after": "views",
    r"sent \d+ after \d+|sent .* that it was not given|sent .* with other bytes": "sending",
    r"skipped": "skipped",
}

NAMED_BY = {
    "gap": {"place"},
    "duplicate": {"place", "sending", "foreign", "bytes"},
    "order": {"place"},
    "lost-trace-row": {"place", "sending"},
    "missing-head": {"place"},
    "missing-tail": {"differ", "freed"},
    "wrong-view": {"foreign", "place", "freed"},
    "early-purge": {"freed"},
    "disagreement": {"differ", "bytes", "views"},
    "skipped": {"skipped"},
}
"""What the simulator calls that which a trace's check calls by these names. To the simulator a lost
row is a message that did not come: it has no traces that could lose any."""


def kind_of(violation: BrokenGuarantee) -> str:
    """What the simulator complains of, in a word."""
    return next(kind for text, kind in KINDS.items() if re.search(text, violation.text))


def replay(rows: list[Row]) -> list[BrokenGuarantee]:
    """The violations that the simulator's checks find in a history."""
    return Replay(rows).run()


class Event(NamedTuple):
    """A row with when it counts."""

    at: int
    view: int
    """A busy application may be given several views at once."""
    rank: int
    """What comes first among things that happen at the same time in one view."""
    pos: int
    row: Row


RANKS = {"view": 0, "delivered": 1, "skipped": 1, "purged": 2, "closed": 3}


class Replay:
    """One history, played once."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.checker = Checker(Promises())
        self.installs = [row for row in rows if row.kind == "view"]
        self.installed_at = {(r.member, (r.view, r.view_by)): r.at for r in self.installs}
        closed = {(row.member, (row.view, row.view_by)) for row in rows if row.kind == "closed"}
        self.progress = make_progress(self.installs, closed)
        addresses = {a for row in self.installs for a in (row.member, *(row.members or ()))}
        addresses |= {row.sender for row in rows if row.sender is not None}
        self.records = {a: MemberRecord(f"m{a:x}", Address(a)) for a in sorted(addresses)}
        for record in self.records.values():
            self.checker.add(record)

    def run(self) -> list[BrokenGuarantee]:
        for sender in self.records:
            self._send(sender)
        events = sorted(self._events())
        last = {event.row.member: number for number, event in enumerate(events)}
        for number, event in enumerate(events):
            self._play(event.row)
            if last[event.row.member] == number:
                self.records[event.row.member].gone = True
        return self.checker.violations

    # What was sent --------------------------------------------------------------------------------

    def _send(self, sender: int) -> None:
        record = self.records[sender]
        runs = sorted(self._sendings(sender), key=lambda pair: pair[1])
        if runs:
            record.numbered = runs[0][1].first - 1
        for view, reach in runs:
            payloads = [_payload(n) for n in range(reach.first, reach.last + 1)]
            self.checker.accepted(record, payloads)
            size = sum(map(len, payloads))
            first = reach.first
            frame = Data(_id(view), 0, record.address, first, 0, 0, 0, payloads, size)
            self.checker.sent(record, frame)

    def _sendings(self, sender: int) -> Iterator[tuple[ViewKey, Range]]:
        sent = defaultdict[ViewKey, list[Range]](list)
        for row in self.rows:
            if row.kind == "sent" and row.member == sender and row.seqno is not None:
                sent[row.view, row.view_by].append(_reach(row))
        for view, reaches in sent.items():
            yield from ((view, reach) for reach in reaches)
        for view, beyond in self._known_by_others(sender).items():
            end = max((reach.last for reach in sent[view]), default=beyond.first - 1)
            if end < beyond.last:
                yield view, Range(end + 1, beyond.last)

    def _known_by_others(self, sender: int) -> dict[ViewKey, Range]:
        """What others have of a member whose trace just ends, view by view."""
        known: dict[ViewKey, Range] = {}
        for row in self.rows:
            view = row.view, row.view_by
            part = self.progress.get((row.member, view))
            theirs = self.progress.get((sender, view))
            ended = theirs is None or theirs.crashed
            if row.kind == "delivered" and row.sender == sender and ended and _is_in(part, sender):
                reach, so_far = _reach(row), known.get(view, _reach(row))
                known[view] = Range(min(reach[0], so_far[0]), max(reach[1], so_far[1]))
        return known

    # What members did -----------------------------------------------------------------------------

    def _events(self) -> Iterator[Event]:
        reached = defaultdict[tuple[int, ViewKey, int | None], int](int)
        for row in sorted(self.rows, key=lambda row: row.pos or 0):
            if row.kind not in RANKS:
                continue
            view = row.view, row.view_by
            at = self._within(row.at, row.member, view)
            if row.pos is not None:
                # A member's own count says in which order it delivered; times may be the same.
                group = row.member, view, row.sender
                at = reached[group] = max(reached[group], at)
            yield Event(at, row.view or 0, RANKS[row.kind], row.pos or 0, row)

    def _within(self, at: int, member: int, view: ViewKey) -> int:
        """The time, or the nearest one at which the member was in that view."""
        part = self.progress.get((member, view))
        if part is None:
            return at
        end = None if part.next is None else self.installed_at[member, part.next]
        at = max(at, self.installed_at[member, view])
        return at if end is None else min(at, end)

    def _play(self, row: Row) -> None:
        record, view = self.records[row.member], (row.view, row.view_by)
        self.checker.now = row.at
        if row.kind == "view":
            self._install(record, row)
        elif row.kind == "purged":
            self.checker.purged(record, row.low or 0)
        elif row.kind == "closed":
            self._close(record, view)
        elif row.kind == "skipped":
            reach = _reach(row)
            self.checker.took(record, Skipped(Address(row.sender or 0), *reach, "given up"))
        else:
            self.checker.took(record, self._batch(row))

    def _install(self, record: MemberRecord, row: Row) -> None:
        members = row.members or ()
        peers = tuple(Peer(Address(m), f"m{m:x}", "") for m in members)
        before = () if record.view is None else record.view.members
        joined = tuple(peer.address for peer in peers if peer.address not in before)
        left = tuple(address for address in before if address not in members)
        self.checker.took(
            record, ViewChange(View(_id((row.view, row.view_by)), peers), joined, left)
        )

    def _batch(self, row: Row) -> Batch:
        first, last = _reach(row)
        payloads = [_payload(n) for n in range(first, last + 1)]
        if row.digest == ALTERED:
            payloads[-1] = b"something else"
        return Batch(Address(row.sender or 0), payloads, sum(map(len, payloads)), first=first)

    def _close(self, record: MemberRecord, view: ViewKey) -> None:
        """It has all that those sent who did not crash, or it would not say that it closed."""
        if record.view is None or record.view.id != _id(view):
            return
        for sender in record.view:
            part = self.progress.get((sender, view))
            if part is not None and not part.crashed:
                for line in self.checker.behind(record.view, [record, self.records[sender]]):
                    if line.startswith(f"{record.name} has "):
                        self.checker.report(record.name, line)


def _id(view: ViewKey) -> ViewId:
    return ViewId(view[0], Address(view[1]))


def _is_in(part: ReceiverProgress | None, member: int) -> bool:
    return part is not None and member in part.members


def _reach(row: Row) -> Range:
    first = row.seqno or 0
    return Range(first, first + row.count - 1)


def _payload(seqno: int) -> bytes:
    return b"%d" % seqno
