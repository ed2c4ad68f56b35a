"""Sorts the rows of a history by what they are about, and sums them up for the judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ringcast.trace import schema
from ringcast.trace.judging.summary import (
    Agreement,
    Group,
    MemberList,
    PayloadSum,
    Range,
    ReceiverProgress,
    Source,
    Summary,
    ViewKey,
)
from ringcast.trace.judging.walk import walk_deliveries, walk_sendings
from ringcast.trace.row_rules import row_problem
from ringcast.trace.schema import Row, signed
from ringcast.trace.violations import Violation


class History:
    """The rows of all members, found again by what they are about."""

    def __init__(self, rows: Iterable[Row], *, checked: bool = False) -> None:
        """checked: the rows were made of rows that can be used, and have larger numbers."""
        self.deliveries = defaultdict[Group, list[Row]](list)
        """Rows of messages that were delivered or skipped."""
        self.sendings = defaultdict[Source, list[Row]](list)
        self.purges = defaultdict[Source, list[Row]](list)
        self.samples: list[Row] = []
        """Rows with window marks."""
        self._acks: dict[tuple[ViewKey, int, int], int] = {}
        self._unreadable = set[Violation]()
        self._known = set[Violation]()
        """What was told of misplaced groups."""
        self._agreed: dict[tuple[int, ViewKey], Agreement] = {}
        installs, closed = self._sort(rows, checked)
        self.summary = Summary(
            make_progress(installs, closed),
            agreed=self._agreed,
            reinstalled=find_reinstalled(installs),
        )
        self.violations: list[Violation] = list(self._unreadable)
        """What is wrong with single rows and single groups."""
        self._leave_out_misplaced()
        self._walk_sendings()
        self._walk_deliveries()
        self.summary.acked.update(self._acks)
        for source, purges in self.purges.items():
            self.summary.purged[source] = max(row.low or 0 for row in purges)

    def _sort(
        self, rows: Iterable[Row], checked: bool
    ) -> tuple[list[Row], set[tuple[int, ViewKey]]]:
        installs, closed = [], set[tuple[int, ViewKey]]()
        for row in rows:
            if not checked and (problem := row_problem(row)):
                self._unreadable.add(unreadable(problem, row))
                continue
            view = row.view, row.view_by
            match row.kind:
                case schema.DELIVERED | schema.SKIPPED:
                    self.deliveries[row.member, view, row.sender or 0].append(row)
                case schema.SENT:
                    self.sendings[view, row.member].append(row)
                case schema.VIEW:
                    installs.append(row)
                case schema.CLOSED:
                    closed.add((row.member, view))
                case schema.AGREED:
                    note_agreement(self._agreed, (row.member, view), agreement_of(row))
                case schema.ACKED:
                    assert row.peer is not None, "row_problem has seen to it"
                    heard = view, row.member, row.peer
                    self._acks[heard] = max(self._acks.get(heard, 0), row.seqno or 0)
                case schema.WINDOW:
                    self.samples.append(row)
                case schema.PURGED:
                    self.samples.append(row)
                    self.purges[view, row.member].append(row)
        return installs, closed

    def _leave_out_misplaced(self) -> None:
        """Keep misplaced rows out of all other checks: they would be told again and again."""
        for (member, view, sender), rows in list(self.deliveries.items()):
            if cause := self.summary.misplaced(member, view, sender, sending=False):
                del self.deliveries[member, view, sender]
                self._misplaced(cause, (member, view, sender), rows)
        for (view, sender), rows in list(self.sendings.items()):
            if self.summary.is_ahead(sender, view):
                del self.sendings[view, sender]  # A missing view is told where it has deliveries.
            elif cause := self.summary.misplaced(sender, view, sender, sending=True):
                del self.sendings[view, sender]
                self._misplaced(cause, (sender, view, sender), rows)

    def _misplaced(self, cause: str, group: Group, rows: list[Row]) -> None:
        violation = misplaced(cause, group, reach_of(rows))
        if violation not in self._known:
            self._known.add(violation)
            self.violations.append(violation)

    def _walk_sendings(self) -> None:
        for (view, sender), rows in self.sendings.items():
            self.summary.sent[view, sender] = reach_of(rows)
            findings = walk_sendings(rows)
            for cause, first, last in findings:
                self._tell(cause, (sender, view, sender), Range(first, last))
            if not findings and (found := _payload_sum(rows)) is not None:
                self.summary.sent_sums[view, sender] = found

    def _walk_deliveries(self) -> None:
        ranges = defaultdict[int, list[tuple[ViewKey, Range]]](list)
        for (view, sender), reach in self.summary.sent.items():
            ranges[sender].append((view, reach))
        for group, rows in self.deliveries.items():
            _, view, sender = group
            others = [reach for v, reach in ranges[sender] if v != view]
            own, complete = self.summary.sent.get(group[1:]), self.summary.is_complete(view, sender)
            findings, extent = walk_deliveries(rows, own, others, complete)
            for cause, first, last in findings:
                self._tell(cause, group, Range(first, last))
            if extent is not None:
                self.summary.delivered[group] = extent
            if not findings and (found := _payload_sum(rows)) is not None:
                self.summary.delivered_sums[group] = found
            if not findings and (places := _places(rows)):
                self.summary.places[group] = places

    def _tell(self, cause: str, group: Group, reach: Range) -> None:
        member, view, sender = group
        self.violations.append(Violation(cause, member, *view, sender, None, *reach))


def unreadable(problem: str, row: Row) -> Violation:
    """The violation of a row that can't be used: one for a member, view and sender."""
    return Violation(problem, row.member or 0, row.view or 0, row.view_by or 0, row.sender)


def misplaced(cause: str, group: Group, reach: Range) -> Violation:
    """The violation of a group that can't be where it is; a missing view is told once."""
    member, view, sender = group
    if cause == "unrecorded-view":
        return Violation(cause, member, *view)
    return Violation(cause, member, *view, sender, None, *reach)


def make_progress(
    installs: Iterable[Row], closed: set[tuple[int, ViewKey]]
) -> dict[tuple[int, ViewKey], ReceiverProgress]:
    """Each member's part in each view that it installed."""
    by_member = defaultdict[int, dict[ViewKey, Row]](dict)
    for row in sorted(installs, key=_install_order):
        by_member[row.member].setdefault((row.view, row.view_by), row)
    progress = {}
    lists: dict[tuple[int, ...], MemberList] = {}
    for member, views in by_member.items():
        order = sorted(views, key=lambda v: (v[0], views[v].at, signed(v[1])))
        for view, following in zip(order, [*order[1:], None], strict=True):
            told = tuple(views[view].members or ())
            members = lists.setdefault(told, MemberList(told))
            progress[member, view] = ReceiverProgress(members, following, (member, view) in closed)
    return progress


def _install_order(row: Row) -> tuple[int, list[int]]:
    """By time. Of two rows of one moment the same one counts, in whatever order they are read."""
    return row.at, [signed(member) for member in row.members or ()]


def note_agreement(
    agreed: dict[tuple[int, ViewKey], Agreement], of: tuple[int, ViewKey], told: Agreement
) -> None:
    """Note what a member says of a view. Of two rows that differ the same one counts, in whatever
    order they are read."""
    agreed[of] = min(agreed.get(of, told), told, key=agreement_order)


def agreement_order(agreement: Agreement) -> tuple[list[int], list[int]]:
    """The order in which the first of several rows counts."""
    number, by = agreement.before or (-1, -1)
    return [number, signed(by)], [signed(member) for member in agreement.left]


def agreement_of(row: Row) -> Agreement:
    """What a row says about the majority that has agreed on its view."""
    before = None if row.seqno is None or row.peer is None else (row.seqno, row.peer)
    return Agreement(before, tuple(row.members or ()))


def find_reinstalled(installs: Iterable[Row]) -> list[tuple[int, ViewKey]]:
    """Members that installed a view more than once, and which; the first row counts elsewhere."""
    times = Counter((row.member, (row.view, row.view_by)) for row in installs)
    return [install for install, count in times.items() if count > 1]


def reach_of(rows: list[Row]) -> Range:
    """The first and the last message of these rows."""
    firsts = [row.seqno or 0 for row in rows]
    lasts = [first + row.count - 1 for first, row in zip(firsts, rows, strict=True)]
    return Range(min(firsts), max(lasts))


def _payload_sum(rows: list[Row]) -> PayloadSum | None:
    """The sums over a group; None where a row has no digest, or messages were skipped."""
    digest = nbytes = 0
    for row in rows:
        if row.digest is None or row.kind == schema.SKIPPED:
            return None
        digest, nbytes = digest + row.digest, nbytes + (row.nbytes or 0)
    return PayloadSum(digest, nbytes)


def _places(rows: list[Row]) -> tuple[tuple[int, int, int], ...]:
    """First seqno, the one after the last, and how far the place is behind the seqno: of each
    stretch of messages over which that stays the same. Nothing where messages were skipped."""
    stretches: list[tuple[int, int, int]] = []
    for row in sorted(rows, key=lambda row: row.seqno or 0):
        if row.kind == schema.SKIPPED:
            return ()
        if row.place is None:
            continue
        first = row.seqno or 0
        begin, shift = first, first - row.place
        if stretches and stretches[-1][1:] == (first, shift):
            begin = stretches.pop()[0]
        stretches.append((begin, first + row.count, shift))
    return tuple(stretches)
