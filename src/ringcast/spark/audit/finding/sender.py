"""Judges the lines of one sender: pure, so that it runs on the driver or in a task of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from ringcast.spark.audit import tables
from ringcast.spark.audit.tables import GroupLine, SuspectGroup
from ringcast.trace.judging.history import misplaced
from ringcast.trace.judging.judge import judge_messages
from ringcast.trace.judging.summary import Group, Range, Source, Summary, ViewKey
from ringcast.trace.rules import Rules, window_bound
from ringcast.trace.violations import Violation

LATENCIES_MAX = 50
"""Receivers of a sender whose shortest latency is kept: those with the least and with the largest,
which tell of clocks."""

Lines = list[dict[str, Any]]

UNSOUND = ("problem", "member", "view", "view_by", "sender")
"""What is told of rows that can't be used."""


@dataclass
class Walked:
    """What the walks found about a sender's groups."""

    groups: set[Group] = field(default_factory=set)
    """The groups of deliveries that were walked."""
    extents: dict[Group, Range] = field(default_factory=dict)
    wrong: set[Group] = field(default_factory=set)
    """Groups of deliveries with a finding."""


@dataclass
class SenderFindings:
    """The findings in the lines of one sender."""

    found: list[Violation] = field(default_factory=list)
    """What shows in its groups alone."""
    sendings: list[Group] = field(default_factory=list)
    """Groups that have to be walked before the sender can be judged."""
    deliveries: list[SuspectGroup] = field(default_factory=list)
    owed: list[Violation] = field(default_factory=list)
    """What members owe each other; empty until the walks are done."""
    extents: dict[Source, Range] = field(default_factory=dict)
    purges: int = 0
    """How many purges there were."""
    purged: int = 0
    """How many messages these forgot."""
    latencies: dict[tuple[int, int], int] = field(default_factory=dict)
    """The shortest latency by receiver and sender, in microseconds."""
    unsound: Lines = field(default_factory=list)
    """Lines of rows that can't be used."""

    @property
    def is_doubtful(self) -> bool:
        """Whether groups have to be walked first."""
        return bool(self.sendings or self.deliveries)

    def plain(self) -> dict[str, Any]:
        """As data for JSON; the ranges that a sender sent are the same for all its suspects."""
        return {
            "found": [astuple(v) for v in self.found],
            "sendings": self.sendings,
            "deliveries": [(s.group, s.own, s.complete) for s in self.deliveries],
            "ranges": self.deliveries[0].ranges if self.deliveries else [],
            "owed": [astuple(v) for v in self.owed],
            "extents": [(*source, *reach) for source, reach in self.extents.items()],
            "purges": (self.purges, self.purged),
            "latencies": [(*pair, least) for pair, least in self.latencies.items()],
            "unsound": [{name: line[name] for name in UNSOUND} for line in self.unsound],
        }

    @classmethod
    def of(cls, plain: dict[str, Any]) -> SenderFindings:
        """What `plain` gave."""
        ranges = [((view[0], view[1]), Range(*reach)) for view, reach in plain["ranges"]]
        return cls(
            [Violation(*values) for values in plain["found"]],
            [_group(group) for group in plain["sendings"]],
            [
                SuspectGroup(_group(group), Range(*own) if own else None, ranges, complete)
                for group, own, complete in plain["deliveries"]
            ],
            [Violation(*values) for values in plain["owed"]],
            {((v[0], v[1]), sender): Range(*reach) for v, sender, *reach in plain["extents"]},
            purges=plain["purges"][0],
            purged=plain["purges"][1],
            latencies={(member, sender): least for member, sender, least in plain["latencies"]},
            unsound=plain["unsound"],
        )


def _group(plain: list[Any]) -> Group:
    member, (number, by), sender = plain
    return member, (number, by), sender


def look_at(views: Summary, rules: Rules, lines: Lines, marks: Lines) -> SenderFindings:
    """What is wrong with the groups of one sender, and what is owed unless some must be walked."""
    known = [tables.group_line(row) for row in lines]
    causes = [views.misplaced(*line.group, sending=line.sending) for line in known]
    both = list(zip(known, causes, strict=True))
    told = {misplaced(cause, line.group, line.reach) for line, cause in both if cause}
    placed = [line for line, cause in both if cause is None]
    summary = views.of_sender()
    summary.sent.update((line.group[1:], line.reach) for line in placed if line.sending)
    made = SenderFindings([*told, *_skips(rules, placed), *_before_sent(placed)])
    made.sendings = [line.group for line in placed if line.sending and not line.tile]
    made.deliveries = list(_suspects(summary, placed))
    made.latencies = _latencies(known)
    if not made.is_doubtful:
        _judge(views, rules, lines, marks, Walked(), made)
    return made


def judge_sender(
    views: Summary, rules: Rules, lines: Lines, marks: Lines, walked: Walked
) -> SenderFindings:
    """What members owe each other of one sender's messages, after its groups were walked."""
    made = SenderFindings()
    _judge(views, rules, lines, marks, walked, made)
    return made


def _judge(
    views: Summary,
    rules: Rules,
    lines: Lines,
    marks: Lines,
    walked: Walked,
    made: SenderFindings,
) -> None:
    """Note in `made` what members owe each other of one sender's messages."""
    summary = views.of_sender()
    _fill(summary, lines, walked)
    made.owed = [*_windows(summary, rules, marks), *judge_messages(summary)]
    made.extents = dict(summary.extents)
    for row in marks:
        if row["purges"]:
            made.purges += row["purges"]
            made.purged += row["purged_messages"]


def _fill(summary: Summary, rows: Lines, walked: Walked) -> None:
    """Fill in what a sender sent, and what all members delivered of it."""
    for line in map(tables.group_line, rows):
        if summary.misplaced(*line.group, sending=line.sending) is not None:
            continue
        if line.sending:
            summary.sent[line.group[1:]] = line.reach
        elif line.group not in walked.groups:
            summary.delivered[line.group] = line.reach
        elif line.group in walked.extents:
            summary.delivered[line.group] = walked.extents[line.group]
        sound = not line.sending and not line.skipped and line.group not in walked.wrong
        if line.places is not None and sound:
            summary.places[line.group] = line.places
        if line.payloads is None or line.skipped:
            continue
        if line.sending and line.tile:
            summary.sent_sums[line.group[1:]] = line.payloads
        elif not line.sending and line.group not in walked.wrong:
            summary.delivered_sums[line.group] = line.payloads


def _windows(summary: Summary, rules: Rules, marks: Lines) -> Iterator[Violation]:
    """Windows out of bounds; notes in passing what was acked and purged."""
    for row in marks:
        group = tables.group_of(row)
        if row["acked"] is not None and row["peer"] is not None:
            summary.acked[group[1], group[0], row["peer"]] = row["acked"]
        if row["purges"]:
            summary.purged[group[1], group[0]] = row["purged"]
        if wrong := row["wrong"]:
            yield violation("marks", group, Range(wrong["low"] + 1, wrong["high"]))
        if (full := row["full"]) and rules.capacity is not None:
            reach = Range(full["low"] + 1, full["high"])
            if full["high"] - full["low"] > window_bound(rules.capacity, group[0], group[2]):
                yield violation("capacity", group, reach)


def _skips(rules: Rules, placed: Iterable[GroupLine]) -> Iterator[Violation]:
    cause = "skip-own" if rules.skips else "skip-forbidden"
    for line in placed:
        member, _, sender = line.group
        if line.skipped and (not rules.skips or member == sender):
            yield violation(cause, line.group, line.skipped)


def _before_sent(placed: Iterable[GroupLine]) -> Iterator[Violation]:
    for line in placed:
        if line.early is not None:
            yield violation("before-sent", line.group, line.early)


def _suspects(summary: Summary, placed: Iterable[GroupLine]) -> Iterator[SuspectGroup]:
    """The groups that are no tiles, or have messages that were not sent in their view."""
    ranges: list[tuple[ViewKey, Range]] = [(v, reach) for (v, _), reach in summary.sent.items()]
    for line in placed:
        _, view, sender = line.group
        own, complete = summary.sent.get((view, sender)), summary.is_complete(view, sender)
        inside = own is not None and own.first <= line.reach.first and line.reach.last <= own.last
        doubtful = complete or len(ranges) > (own is not None)
        if not line.sending and (not line.tile or (not inside and doubtful)):
            yield SuspectGroup(line.group, own, ranges, complete)


def _latencies(lines: Iterable[GroupLine]) -> dict[tuple[int, int], int]:
    least: dict[tuple[int, int], int] = {}
    for line in lines:
        if line.latency_min is not None:
            pair = line.group[0], line.group[2]
            least[pair] = min(least.get(pair, line.latency_min), line.latency_min)
    if len(least) <= 2 * LATENCIES_MAX:
        return least
    order = sorted(least.items(), key=lambda item: item[1])
    return dict([*order[:LATENCIES_MAX], *order[-LATENCIES_MAX:]])


def violation(cause: str, group: Group, reach: Range) -> Violation:
    """A violation in a group."""
    member, view, sender = group
    return Violation(cause, member, *view, sender, None, *reach)


def walked_by_sender(walked: Walked, senders: Iterable[int]) -> Mapping[int, Walked]:
    """What the walks found, by sender; of some, that all is well."""
    parts = {sender: Walked() for sender in senders}
    for group in walked.groups:
        parts.setdefault(group[2], Walked()).groups.add(group)
    for group, reach in walked.extents.items():
        parts.setdefault(group[2], Walked()).extents[group] = reach
    for group in walked.wrong:
        parts.setdefault(group[2], Walked()).wrong.add(group)
    return parts
