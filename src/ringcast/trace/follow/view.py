"""Follows one view until it is over, and judges it then.

A view is over when every member of it has gone on to a later one or has closed. From the first
that did on, the others have `grace` to be heard of; then they are taken to have crashed. The
checks are those of `ringcast.trace.check`, over condensed rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ringcast.trace.check import check_history
from ringcast.trace.follow.audit_row import LATE, OPEN, VIEW, VIOLATION, AuditRow
from ringcast.trace.follow.member import Reaches
from ringcast.trace.follow.part import MemberPart
from ringcast.trace.judging.history import History
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.latencies import quantiles
from ringcast.trace.rules import Rules
from ringcast.trace.schema import DELIVERED, SENT, Row
from ringcast.trace.schema import VIEW as INSTALL
from ringcast.trace.violations import Violation

BEFORE: ViewKey = (-1, 0)
"""Stands for all earlier views together."""
REMEMBERED_MS = 24 * 3_600_000
"""How long a judged view is remembered, to tell rows that come late."""
KEPT_MS = 7 * 24 * 3_600_000
"""How long a view or a member is kept that nobody writes about any more."""


class ViewTrack:
    """One view. Its state is as large as it has members times senders, until it is judged."""

    def __init__(self, view: ViewKey, rules: Rules, grace_ms: int) -> None:
        self.view = view
        self._rules, self._grace = rules, grace_ms
        self._parts: dict[int, MemberPart] = {}
        self._passed: dict[int, list[Any]] = {}
        """Member → number, coordinator, time and members of the view that it went on to."""
        self._before: dict[int, Reaches] = {}
        """Member → what it sent and delivered in earlier views."""
        self._partial = set[int]()
        """Members of which later files have been read and earlier ones have not."""
        self._opened = self._judged = False
        self.due: int | None = None
        """When something has to be done at the latest, in milliseconds since 1970."""

    # --- what happens -----------------------------------------------------------------------------

    def hear(self, messages: Iterable[tuple[int, dict[str, Any]]], now: int) -> Iterator[AuditRow]:
        """Take what is new: who tells it, and what `MemberTrack` made of it."""
        if not self._opened:
            self._opened = True
            yield AuditRow(OPEN, *self.view, "is judged when it is over")
        for member, message in messages:
            part = MemberPart.of(member, self.view, message["part"]) if "part" in message else None
            if self._judged:
                if part is not None:
                    yield self._late(part)
            elif part is not None:
                self._parts.setdefault(member, MemberPart(member, self.view)).merge(part)
            elif "passed" in message:
                self._passed[member] = message["passed"]
            elif "whole" in message:
                (self._partial.discard if message["whole"] else self._partial.add)(member)
            else:
                self._before[member] = Reaches.of(message["before"])
        if not self._judged:
            self._set_due(now)

    def expire(self, now: int) -> Iterator[AuditRow]:
        """Do what is due by now: judge the view, or forget that it was judged."""
        if self.due is None or now < self.due:
            return
        if self._judged:
            self.due = None
            return
        found = self.judge()
        for violation in found:
            yield self._row(violation)
        yield self._figures(len(found))
        self._parts, self._passed, self._before, self._partial = {}, {}, {}, set()
        self._judged, self.due = True, now + REMEMBERED_MS

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing of it has to be kept."""
        return self._judged and self.due is None

    def _set_due(self, now: int) -> None:
        ended = {member for member, part in self._parts.items() if part.closed} | {*self._passed}
        if (members := self._members) and members <= ended - self._partial:
            self.due = now
        elif ended or not members:
            due = now + self._grace - self._elapsed(now)
            self.due = min(self.due or due, due)
        else:
            self.due = now + KEPT_MS

    def _elapsed(self, now: int) -> int:
        """How much of the grace is over by now: it begins when the first member goes on, by that
        member's clock, and not when a file of it is read; at most a third of it earlier."""
        went_on = min((passed[2] // 1_000 for passed in self._passed.values()), default=now)
        return max(0, min(now - went_on, self._grace // 3))

    @property
    def _members(self) -> set[int]:
        """The members, as those that installed the view know them."""
        installs = (install for part in self._parts.values() for install in part.installs)
        return {member for install in installs for member in install.members}

    # --- judging ----------------------------------------------------------------------------------

    def judge(self) -> list[Violation]:
        """What is wrong in this view; [] is good."""
        history = History([*self._rows()], checked=True)
        wrong = {(v.member, (v.view, v.view_by), v.sender) for v in history.violations}
        found = list[Violation]()
        for member, part in self._parts.items():
            found += part.unreadable()
            for sender, sums in part.delivered.items():
                group = member, self.view, sender
                if group not in history.summary.delivered:
                    continue
                if sums.places is not None and not sums.skipped and group not in wrong:
                    history.summary.places[group] = sums.places
                if sums.skipped and (not self._rules.skips or member == sender):
                    cause = "skip-own" if self._rules.skips else "skip-forbidden"
                    where = member, *self.view, sender, None
                    found.append(Violation(cause, *where, *sums.skipped))
                if sums.early and member != sender:
                    where = member, *self.view, sender, None
                    found.append(Violation("before-sent", *where, *sums.early))
        found += self._early_purges(history)
        found += check_history(history, self._rules)
        own = (v for v in found if (v.view, v.view_by) == self.view)
        owed = {v for v in own if not self._rules.excuses(v.cause)}
        return sorted(owed, key=lambda v: v.order)

    def _rows(self) -> Iterator[Row]:
        for member, part in self._parts.items():
            yield from part.condensed_rows()
            if not part.installs:
                continue
            if member in self._passed:
                number, by, at, members = self._passed[member]
                yield Row(member, number, by, None, INSTALL, at=at, members=tuple(members))
            if member in self._before:
                yield from _earlier(member, self._before[member])

    def _early_purges(self, history: History) -> Iterator[Violation]:
        """Messages that a member delivered after their sender forgot them."""
        summary = history.summary
        for sender, part in self._parts.items():
            begin = summary.begins.get((self.view, sender))
            theirs = summary.progress.get((sender, self.view))
            for member in theirs.members if theirs and begin is not None else ():
                sums = self._parts[member].delivered.get(sender) if member in self._parts else None
                if sums is None or (member, self.view, sender) not in summary.delivered:
                    continue
                early = [
                    number
                    for number, at in sums.points.times.items()
                    if number >= (begin or 0)
                    and at - self._rules.skew_us > (part.purges.at(number) or at)
                ]
                if early:
                    reach = min(early), max(early)
                    yield Violation("purged-before", sender, *self.view, sender, member, *reach)

    # --- rows -------------------------------------------------------------------------------------

    def _row(self, v: Violation) -> AuditRow:
        return AuditRow(
            *(VIOLATION, v.view, v.view_by, v.what, v.member, self._name(v.member), v.sender),
            *(v.peer, v.guarantee, v.cause, v.first, v.last),
        )

    def _late(self, part: MemberPart) -> AuditRow:
        what = f"{part.rows} rows came after the view was judged: give it more grace"
        return AuditRow(LATE, *self.view, what, part.member, rows=part.rows)

    def _figures(self, violations: int) -> AuditRow:
        parts = list(self._parts.values())
        counts, latencies = Counter[str](), Counter[int]()
        for part in parts:
            counts.update(part.counts)
            latencies.update(part.latencies)
        times = [time for part in parts for time in part.times]
        members = self._members
        ended = {part.member for part in parts if part.closed} | {*self._passed}
        known = dict(quantiles(latencies))
        what = f"{violations} violations" if violations else "clean"
        return AuditRow(
            *(VIEW, *self.view, what),
            rows=sum(part.rows for part in parts),
            violations=violations,
            members=len(members),
            unfinished=len(members - ended),
            began=min(times, default=None),
            ended=max(times, default=None),
            sent_messages=counts["sent_messages"],
            delivered_messages=counts["delivered_messages"],
            delivered_bytes=counts["delivered_bytes"],
            skipped_messages=counts["skipped_messages"],
            requested_messages=counts["requested_messages"],
            resent_messages=counts["resent_messages"],
            stalled_us=counts["stalled_us"],
            latency_p50=known.get("p50"),
            latency_p99=known.get("p99"),
            latency_max=known.get("max"),
        )

    def _name(self, member: int) -> str | None:
        for part in self._parts.values():
            for _, members, names in part.installs:
                if member in members and len(names) == len(members):
                    return names[members.index(member)]
        return None

    # --- as plain data ----------------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "parts": [[member, part.plain()] for member, part in self._parts.items()],
            "passed": [*self._passed.items()],
            "before": [[member, reaches.plain()] for member, reaches in self._before.items()],
            "partial": [*self._partial],
            "opened": self._opened,
            "judged": self._judged,
            "due": self.due,
        }

    def load(self, plain: dict[str, Any]) -> None:
        """Go on from plain data."""
        self._parts = {m: MemberPart.of(m, self.view, part) for m, part in plain["parts"]}
        self._passed = dict(plain["passed"])
        self._before = {member: Reaches.of(reaches) for member, reaches in plain["before"]}
        # Earlier checkpoints do not have these.
        self._partial, self._opened = set(plain.get("partial", ())), plain.get("opened", True)
        self._judged, self.due = plain["judged"], plain["due"]


def _earlier(member: int, before: Reaches) -> Iterator[Row]:
    """The rows of all earlier views as those of one; the checks look for numbers in both."""
    where = member, *BEFORE
    yield Row(*where, None, INSTALL, members=(member, *before.delivered))
    if before.sent:
        first, last = before.sent
        yield Row(*where, member, SENT, seqno=first, count=last - first + 1)
    for sender, (first, last) in before.delivered.items():
        yield Row(*where, sender, DELIVERED, seqno=first, count=last - first + 1, pos=0)
