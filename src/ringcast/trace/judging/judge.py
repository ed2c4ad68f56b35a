"""Judges what members owe each other: beginnings, ends and contents of what they delivered.

How a member's part in a view ends decides what it owes:

- It went on to another view: all that those sent who went along, and of the other senders as
  much as any member that went along delivered.
- It closed: all that those sent who did not crash.
- It crashed, which is to say that its trace just ends: nothing, since the last rows of a member
  that crashed may be lost as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from itertools import pairwise

from ringcast.layers.majority import has_majority
from ringcast.trace.judging.checks import MESSAGES, VIEWS, audit_check, checks
from ringcast.trace.judging.summary import PayloadSum, Range, Source, Summary, ViewKey
from ringcast.trace.schema import signed, unsigned
from ringcast.trace.violations import Violation


def judge(summary: Summary) -> Iterator[Violation]:
    """Yield how the guarantees between members were broken."""
    yield from judge_views(summary)
    yield from judge_messages(summary)


def judge_messages(summary: Summary) -> Iterator[Violation]:
    """The part that is about messages. A summary may have those of some senders only."""
    for check in checks(MESSAGES):
        yield from check(summary)


def judge_views(summary: Summary) -> Iterator[Violation]:
    """The part that is about views."""
    for check in checks(VIEWS):
        yield from check(summary)


@audit_check(VIEWS)
def _views(summary: Summary) -> Iterator[Violation]:
    """Members that installed a view which they are not in, or which others know otherwise."""
    installed = defaultdict[ViewKey, list[int]](list)
    for member, view in summary.progress:
        installed[view].append(member)
    for view, members in installed.items():
        # The coordinator's own word counts, or else that of the member with the lowest address.
        witness = view[1] if view[1] in members else min(members, key=signed)
        expected = summary.progress[witness, view].members
        for member in members:
            known = summary.progress[member, view].members
            if member not in known:
                yield Violation("outsider", member, *view)
            if known != expected:
                yield Violation("membership", member, *view)
    for member, view in summary.reinstalled:
        yield Violation("reinstalled", member, *view)


@audit_check(VIEWS)
def _majorities(summary: Summary) -> Iterator[Violation]:
    """Views that a majority has agreed on, without one of the agreed view before them. Groups that
    began apart have chains of their own."""
    said = sorted(summary.agreed.items(), reverse=True)
    told = {view: (member, agreement) for (member, view), agreement in said}
    members = {view: part.members for (_, view), part in summary.progress.items()}
    chains = defaultdict[ViewKey, list[ViewKey]](list)
    chain_of: dict[ViewKey, ViewKey] = {}
    for view in sorted(told, key=_view_order):
        before = told[view][1].before or view
        chain_of[view] = chain_of.get(before, before)
        chains[chain_of[view]].append(view)
    for chain in chains.values():
        for earlier, later in pairwise(chain):
            member, agreement = told[later]
            known = earlier in members and later in members
            if known and not has_majority(members[later], members[earlier], agreement.left):
                yield Violation("two-majorities", member, *later)


def _view_order(view: ViewKey) -> ViewKey:
    return view[0], unsigned(view[1])


@audit_check(MESSAGES)
def _unagreed(summary: Summary) -> Iterator[Violation]:
    """Messages that were sent in a view before a majority had agreed on it, or without one."""
    for (view, sender), reach in summary.sent.items():
        if (sender, view) not in summary.agreed and summary.is_complete(view, sender):
            yield Violation("unagreed", sender, *view, sender, None, *reach)


@audit_check(MESSAGES)
def _numbers(summary: Summary) -> Iterator[Violation]:
    """Numbers that a sender gave out in two views, or that a member delivered in two.

    Numbers go on from view to view. Within a view the walk has found this already.
    """
    sent = defaultdict[tuple[int, int], list[tuple[ViewKey, Range]]](list)
    for (view, sender), reach in summary.sent.items():
        sent[sender, sender].append((view, reach))
    delivered = defaultdict[tuple[int, int], list[tuple[ViewKey, Range]]](list)
    for (member, view, sender), reach in summary.delivered.items():
        if known := _vouched(summary, view, sender, reach):
            delivered[member, sender].append((view, known))
    for cause, numbers in (("numbered-again", sent), ("repeated-later", delivered)):
        for (member, sender), ranges in numbers.items():
            for view, reach in _again(ranges):
                yield Violation(cause, member, *view, sender, None, *reach)


def _vouched(summary: Summary, view: ViewKey, sender: int, reach: Range) -> Range | None:
    """What of a range the sender says it sent there; all of it where its rows are not complete."""
    if not summary.is_complete(view, sender):
        return reach
    sent = summary.sent.get((view, sender), Range(0, -1))
    both = Range(max(reach.first, sent.first), min(reach.last, sent.last))
    return both if both.first <= both.last else None


def _again(ranges: list[tuple[ViewKey, Range]]) -> Iterator[tuple[ViewKey, Range]]:
    """The parts of ranges that one of an earlier view has as well."""
    reached: int | None = None
    for view, reach in sorted(ranges, key=lambda of: (of[0][0], signed(of[0][1]))):
        if reached is not None and reach.first <= reached:
            yield view, Range(reach.first, min(reach.last, reached))
        reached = reach.last if reached is None else max(reached, reach.last)


@audit_check(MESSAGES)
def _heads(summary: Summary) -> Iterator[Violation]:
    for (member, view, sender), reach in summary.delivered.items():
        begin = summary.begins[view, sender]
        if reach.first > begin:
            yield Violation("head", member, *view, sender, None, begin, reach.first - 1)


@audit_check(MESSAGES)
def _tails(summary: Summary) -> Iterator[Violation]:
    """What members owed at the end of a view, and did not deliver."""
    for (member, view), part in summary.progress.items():
        for sender in summary.senders.get(view, ()):
            if sender not in part.members or part.crashed:
                continue
            reached = summary.reached(member, view, sender)
            cause, due = _due(summary, member, view, sender)
            if reached is not None and due is not None and reached < due:
                yield Violation(cause, member, *view, sender, None, reached + 1, due)


def _due(summary: Summary, member: int, view: ViewKey, sender: int) -> tuple[str, int | None]:
    """Up to which message a member that did not crash owes this sender's messages of a view."""
    ours, theirs = summary.progress[member, view], summary.progress.get((sender, view))
    sent = summary.sent.get((view, sender))
    if ours.next is None:
        owed = sent is not None and summary.is_complete(view, sender)
        return "tail", sent.last if sent is not None and owed else None
    if sent is not None and theirs is not None and theirs.next == ours.next:
        return "tail", sent.last
    return "survivors", summary.farthest.get((view, ours.next, sender))


@audit_check(MESSAGES)
def _contents(summary: Summary) -> Iterator[Violation]:
    """Members that delivered the same messages as others, but not with the same payloads."""
    alike = defaultdict[tuple[ViewKey, int, Range], list[tuple[int, PayloadSum]]](list)
    for (member, view, sender), found in summary.delivered_sums.items():
        reach = summary.delivered[member, view, sender]
        alike[view, sender, reach].append((member, found))
    for (view, sender, reach), sums in alike.items():
        expected = None
        if summary.sent.get((view, sender)) == reach:
            expected = summary.sent_sums.get((view, sender))
        if expected is None:
            expected = _most_common(found for _, found in sums)
        for member, found in sums:
            if found != expected:
                cause = "contents" if found.digest != expected.digest else "sizes"
                yield Violation(cause, member, *view, sender, None, *reach)


@audit_check(MESSAGES)
def _orders(summary: Summary) -> Iterator[Violation]:
    """Members that delivered a sender's messages elsewhere among those of all others than most did
    that saw the same end of the view. If two places are as frequent, the lowest address counts."""
    alike = defaultdict[tuple[Source, Range, ViewKey | None], list[tuple[int, Hashable]]](list)
    for (member, view, sender), places in summary.places.items():
        part, reach = summary.progress[member, view], summary.delivered[member, view, sender]
        if not part.crashed:
            alike[(view, sender), reach, part.next].append((member, places))
    for ((view, sender), reach, _), found in alike.items():
        found.sort(key=lambda pair: signed(pair[0]))
        votes = Counter(places for _, places in found)
        expected = max(votes, key=lambda places: votes[places])
        for member, places in found:
            if places != expected:
                yield Violation("another-order", member, *view, sender, None, *reach)


def _most_common(sums: Iterator[PayloadSum]) -> PayloadSum:
    """The sum that most members have, else the smallest: the answer does not depend on order."""
    votes = Counter(sums)
    return min(votes, key=lambda found: (-votes[found], found))


@audit_check(MESSAGES)
def _purges(summary: Summary) -> Iterator[Violation]:
    """Messages that a sender forgot, and that a member which saw the end of the view lacks."""
    for (view, sender), top in summary.purged.items():
        begin = summary.begins.get((view, sender))
        if begin is None or top < begin or (sender, view) not in summary.progress:
            continue
        for member in summary.progress[sender, view].members:
            part = summary.progress.get((member, view))
            if part is None or part.crashed or sender not in part.members:
                continue
            reached = summary.reached(member, view, sender)
            if reached is not None and reached < top:
                cause = "purged-undelivered"
                yield Violation(cause, sender, *view, sender, member, reached + 1, top)


@audit_check(MESSAGES)
def _acks(summary: Summary) -> Iterator[Violation]:
    """Messages that a member which saw the end of the view acked there, and never delivered.

    Before the sender's first message of a view, acks say again what was delivered before.
    """
    for (view, sender, peer), top in summary.acked.items():
        begin, part = summary.begins.get((view, sender)), summary.progress.get((peer, view))
        if begin is None or top < begin or part is None or part.crashed:
            continue
        reached = summary.reached(peer, view, sender)
        if sender in part.members and reached is not None and reached < top:
            yield Violation("acked-undelivered", sender, *view, sender, peer, reached + 1, top)
