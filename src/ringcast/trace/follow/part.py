"""What one member did in one view, condensed to what the checks and the figures need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ringcast.trace import schema
from ringcast.trace.follow.sums import GroupSums, Purges
from ringcast.trace.judging.history import agreement_of, agreement_order
from ringcast.trace.judging.summary import Agreement, ViewKey
from ringcast.trace.latencies import bucket
from ringcast.trace.row_rules import NUMBER_MAX, row_problem
from ringcast.trace.schema import Row, signed
from ringcast.trace.violations import Violation


class ViewInstall(NamedTuple):
    """A row of a view."""

    at: int
    members: list[int]
    names: list[str]


class WindowSample(NamedTuple):
    """A sample of a window."""

    at: int
    low: int
    delivered: int
    high: int

    @property
    def room(self) -> tuple[int, int, int]:
        """The order of samples in which the fullest is first."""
        return self.low - self.high, self.at, self.low


def _install_order(install: ViewInstall) -> tuple[int, list[int]]:
    """As the checks have it: of two rows of one moment the same one counts."""
    return install.at, [signed(member) for member in install.members]


class MemberPart:
    """The rows of one member in one view. Parts of it add up, in any order."""

    def __init__(self, member: int, view: ViewKey) -> None:
        self.member, self.view = member, view
        self.rows = 0
        self.installs: list[ViewInstall] = []
        self.closed = False
        self.agreed: Agreement | None = None
        """What it says of the majority that has agreed on the view."""
        self.sent: GroupSums | None = None
        self.delivered: dict[int, GroupSums] = {}
        """By sender."""
        self.purged: int | None = None
        """Up to where the member forgot its own messages."""
        self.purges = Purges()
        """When it forgot them."""
        self.acked: dict[int, int] = {}
        """By peer, up to where that one has acked."""
        self.wrong: dict[int, WindowSample] = {}
        """By sender, the first sample with marks out of order."""
        self.full: dict[int, WindowSample] = {}
        """By sender, the fullest sample."""
        self.problems: list[tuple[str, int | None]] = []
        """Causes why rows can't be used, with the sender that these name."""
        self.counts = Counter[str]()
        self.latencies = Counter[int]()
        """Messages from others, by bucket of latency."""
        self.times: list[int] = []
        """The first and the last time of a message, a view or an end."""
        self.files: list[tuple[int, int]] = []
        """The first and the last number of the files that these rows are from, where they have
        numbers."""

    # --- from rows --------------------------------------------------------------------------------

    def add(self, row: Row, skew_us: int = 0) -> None:
        """Add a row of this member and view; `tidy` has to follow the last one."""
        self.rows += 1
        if problem := row_problem(row):
            if (problem, row.sender) not in self.problems:
                self.problems.append((problem, row.sender))
            return
        match row.kind:
            case schema.DELIVERED | schema.SKIPPED:
                self.delivered.setdefault(row.sender or 0, GroupSums()).add(row, skew_us)
                self._count_delivered(row)
            case schema.SENT:
                self.sent = self.sent or GroupSums()
                self.sent.add(row, skew_us)
                self.counts.update(sent_messages=row.count)
            case schema.VIEW | schema.AGREED | schema.CLOSED:
                self._add_view(row)
            case schema.ACKED:
                peer = row.peer or 0
                self.acked[peer] = max(self.acked.get(peer, 0), row.seqno or 0)
            case schema.WINDOW:
                self._sample(row)
            case schema.PURGED:
                self._sample(row)
                self.purged = max(self.purged or 0, row.low or 0)
                self.purges.add(row.low or 0, row.at)
            case schema.REQUESTED | schema.RESENT:
                self.counts.update({f"{row.kind}_messages": row.count})
            case schema.BLOCKED:
                self.counts.update(stalled_us=row.at - (row.sent_at or row.at))
        if row.kind in (*schema.MESSAGE_KINDS, schema.VIEW, schema.CLOSED):
            self._note_time(row.at, row.at)

    def _agree(self, told: Agreement) -> None:
        self.agreed = min(self.agreed or told, told, key=agreement_order)

    def _add_view(self, row: Row) -> None:
        members = [*(row.members or ())]
        if row.kind == schema.VIEW:
            self.installs.append(ViewInstall(row.at, members, [*(row.names or ())]))
        elif row.kind == schema.AGREED:
            self._agree(agreement_of(row))
        else:
            self.closed = True

    def tidy(self) -> None:
        """Make what was added small."""
        for sums in self._sums():
            sums.tidy()
        self.purges.tidy()
        self.installs.sort(key=_install_order)

    def _count_delivered(self, row: Row) -> None:
        if row.kind == schema.SKIPPED:
            self.counts.update(skipped_messages=row.count)
            return
        self.counts.update(delivered_messages=row.count, delivered_bytes=row.nbytes or 0)
        if row.sender != row.member and row.sent_at is not None and row.at >= row.sent_at:
            self.latencies[bucket(row.at - row.sent_at)] += row.count

    def _sample(self, row: Row) -> None:
        sender = row.sender or 0
        self._compare(sender, WindowSample(row.at, row.low or 0, row.delivered or 0, row.high or 0))

    def _compare(self, sender: int, marks: WindowSample) -> None:
        if not marks.low <= marks.delivered <= marks.high:
            self.wrong[sender] = min(self.wrong.get(sender, marks), marks)
        fullest = self.full.get(sender, marks)
        self.full[sender] = min(fullest, marks, key=lambda sample: sample.room)

    def _note_time(self, first: int, last: int) -> None:
        times = self.times or [first, last]
        self.times = [min(times[0], first), max(times[1], last)]

    def _sums(self) -> Iterator[GroupSums]:
        yield from self.delivered.values()
        if self.sent is not None:
            yield self.sent

    # --- from other parts -------------------------------------------------------------------------

    def merge(self, other: MemberPart) -> None:
        """Add another part of the same member and view."""
        self.rows += other.rows
        self.installs = sorted(self.installs + other.installs, key=_install_order)
        self.closed |= other.closed
        if other.agreed is not None:
            self._agree(other.agreed)
        if other.sent is not None:
            self.sent = self.sent or GroupSums()
            self.sent.merge(other.sent)
        for sender, sums in other.delivered.items():
            self.delivered.setdefault(sender, GroupSums()).merge(sums)
        if other.purged is not None:
            self.purged = max(self.purged or 0, other.purged)
        self.purges.merge(other.purges)
        for peer, seqno in other.acked.items():
            self.acked[peer] = max(self.acked.get(peer, 0), seqno)
        for samples in (other.wrong, other.full):
            for sender, marks in samples.items():
                self._compare(sender, marks)
        self.problems += [problem for problem in other.problems if problem not in self.problems]
        self.counts.update(other.counts)
        self.latencies.update(other.latencies)
        self.files += other.files
        if other.times:
            self._note_time(*other.times)

    def plain(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "rows": self.rows,
            "installs": self.installs,
            "closed": self.closed,
            "agreed": self.agreed and [*(self.agreed.before or (None, None)), self.agreed.left],
            "sent": self.sent.plain() if self.sent else None,
            "delivered": [[sender, sums.plain()] for sender, sums in self.delivered.items()],
            "purged": self.purged,
            "purges": self.purges.plain(),
            "acked": [*self.acked.items()],
            "wrong": [*self.wrong.items()],
            "full": [*self.full.items()],
            "problems": self.problems,
            "counts": self.counts,
            "latencies": [*self.latencies.items()],
            "times": self.times,
            "files": self.files,
        }

    @classmethod
    def of(cls, member: int, view: ViewKey, plain: dict[str, Any]) -> MemberPart:
        """From plain data."""
        part = cls(member, view)
        part.rows, part.closed, part.times = plain["rows"], plain["closed"], plain["times"]
        if told := plain.get("agreed"):  # Earlier checkpoints do not have it.
            number, by, left = told
            before = None if number is None or by is None else (number, by)
            part.agreed = Agreement(before, tuple(left))
        part.installs = [ViewInstall(*install) for install in plain["installs"]]
        part.sent = GroupSums.of(plain["sent"]) if plain["sent"] else None
        part.delivered = {sender: GroupSums.of(sums) for sender, sums in plain["delivered"]}
        part.purged, part.purges = plain["purged"], Purges.of(plain["purges"])
        part.acked = dict(plain["acked"])
        part.wrong = {sender: WindowSample(*marks) for sender, marks in plain["wrong"]}
        part.full = {sender: WindowSample(*marks) for sender, marks in plain["full"]}
        part.problems = [(cause, sender) for cause, sender in plain["problems"]]
        part.counts = Counter(plain["counts"])
        part.latencies = Counter(dict(plain["latencies"]))
        part.files = [(first, last) for first, last in plain.get("files", [])]
        return part

    # --- to the checks ----------------------------------------------------------------------------

    def condensed_rows(self) -> Iterator[Row]:
        """Few rows, in which the checks find what they find in all of them.

        What the checks read from single rows is not in them: `early`, `skipped`, `places` and the
        times of deliveries and purges.
        """
        where = self.member, *self.view
        for at, members, names in self.installs:
            views = tuple(members), tuple(names)
            yield Row(*where, None, schema.VIEW, at=at, members=views[0], names=views[1])
        if self.closed:
            yield Row(*where, None, schema.CLOSED)
        if self.agreed is not None:
            number, by = self.agreed.before or (None, None)
            agreed = Row(*where, None, schema.AGREED, seqno=number, peer=by)
            yield agreed._replace(members=self.agreed.left)
        if self.sent is not None:
            yield from self._messages(schema.SENT, self.member, self.sent)
        for sender, sums in self.delivered.items():
            yield from self._messages(schema.DELIVERED, sender, sums)
        for peer, seqno in self.acked.items():
            yield Row(*where, self.member, schema.ACKED, seqno=seqno, peer=peer)
        if self.purged is not None:
            low = self.purged
            purged = Row(*where, self.member, schema.PURGED, seqno=low, at=NUMBER_MAX)
            yield purged._replace(low=low, delivered=low, high=low)
        for samples in (self.wrong, self.full):
            for sender, (at, low, delivered, high) in samples.items():
                sample = Row(*where, sender, schema.WINDOW, at=at)
                yield sample._replace(low=low, delivered=delivered, high=high)

    def _messages(self, kind: str, sender: int, sums: GroupSums) -> Iterator[Row]:
        """One row for each run; the first has the sums of all."""
        digest, nbytes = sums.digest, sums.nbytes
        for first, last, pos in sums.runs:
            yield Row(
                *(self.member, *self.view, sender, kind, first, last - first + 1, pos),
                *(nbytes, digest),
            )
            digest, nbytes = (None if digest is None else 0), 0

    def unreadable(self) -> Iterator[Violation]:
        """The rows that can't be used."""
        for cause, sender in self.problems:
            yield Violation(cause, self.member or 0, *self.view, sender)
